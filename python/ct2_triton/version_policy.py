# SPDX-License-Identifier: Apache-2.0
"""Which versions of a model a server loads: the `version_policy` in its config.pbtxt.

Text models follow a token-ID model: each of their versions shares the files of its version.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ct2_triton.errors import VersionError
from ct2_triton.lock import replace_file
from ct2_triton.model_versions import versions_in
from ct2_triton.prepared_model import CONFIG_NAME, STREAM_SUFFIX, TEXT_SUFFIX, parse_config

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tritonclient.grpc.model_config_pb2 import ModelConfig

_MARK = "# Which versions are served: written by ct2-models, which replaces all below.\n"


def read_config(model: Path) -> ModelConfig:
    """Read a model's config.pbtxt; fields that only a newer Triton knows are passed over."""
    return parse_config(_read(model), model / CONFIG_NAME)


def served_versions(model: Path, there: Sequence[int]) -> tuple[int, ...]:
    """Return the existing versions that config.pbtxt selects.

    Without a policy it is the newest.
    """
    policy = read_config(model).version_policy
    if policy.HasField("all"):
        return tuple(there)
    if policy.HasField("specific"):
        return tuple(version for version in there if version in policy.specific.versions)
    count = policy.latest.num_versions or 1
    return tuple(there[-count:])


def versions_served(model: Path) -> tuple[int, ...]:
    """Return the versions of a model that a server loads."""
    return served_versions(model, versions_in(model))


def keep_serving(model: Path) -> None:
    """Write the served versions to config.pbtxt, so that a new version folder is not served."""
    if not has_policy(model):
        serve_versions(model, versions_served(model))


def has_policy(model: Path) -> bool:
    """Return whether config.pbtxt names versions, or leaves the choice to the server's default."""
    return bool(read_config(model).HasField("version_policy"))


def serve_versions(model: Path, versions: Sequence[int]) -> None:
    """Write the versions to serve to config.pbtxt atomically, without changing other lines.

    Raises VersionError for a policy that these commands did not write.
    """
    from google.protobuf import text_format
    from tritonclient.grpc.model_config_pb2 import ModelConfig

    text, path = _read(model), model / CONFIG_NAME
    head = text.partition(_MARK)[0]
    if parse_config(head, path).HasField("version_policy"):
        raise VersionError(
            f"{path} has a version_policy that ct2-models did not write: remove it, and run the "
            "command again"
        )
    policy = ModelConfig()
    policy.version_policy.specific.versions.extend(versions)
    new = f"{head.rstrip()}\n{_MARK}{text_format.MessageToString(policy)}"
    if _without_policy(new, path) != _without_policy(text, path):
        raise VersionError(
            f"{path} has lines after the version_policy that ct2-models wrote: move them to the top"
        )
    replace_text(path, new)


def replace_text(path: Path, text: str) -> None:
    """Replace a file, so that a reader sees the old text or the new one."""
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise VersionError(f"cannot write {path}: {error.strerror}") from error


def _read(model: Path) -> str:
    path = model / CONFIG_NAME
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise VersionError(f"cannot read {path}: {error}") from error


def _without_policy(text: str, path: Path) -> ModelConfig:
    config = parse_config(text, path)
    config.ClearField("version_policy")
    return config


_FILES = re.compile(r"\.\./([^/]+)/\{version\}/model")


def files_of(name: str) -> str:
    """Return the `model_path` by which a model beside this one takes the files of each version."""
    return f"../{name}/{{version}}/model"


def followers(model: Path) -> list[Path]:
    """Find the text models that share a model's files, version by version."""
    beside = (model.with_name(model.name + suffix) for suffix in (TEXT_SUFFIX, STREAM_SUFFIX))
    return [folder for folder in beside if followed_by(folder) == model.name]


def followed_by(folder: Path) -> str | None:
    """Return the name of the model that a model follows; None if it has its own versions."""
    if not (folder / CONFIG_NAME).is_file():
        return None
    path = read_config(folder).parameters["model_path"].string_value
    match = _FILES.fullmatch(path)
    return match[1] if match else None
