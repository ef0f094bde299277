# SPDX-License-Identifier: Apache-2.0
"""The versions of a model in a repository, the record of each, and which of them are served.

`ct2_model.json` in the model's folder is the record of the version that was prepared with it,
and of the tokenizer and config that all versions share. A later version has one of its own:

    <name>/ct2_model.json        of version 1, tokenizer/ and config.pbtxt
    <name>/1/model/
    <name>/2/ct2_model.json      of version 2; its list of files is relative to <name>/2
    <name>/2/model/

A server loads the versions that the `version_policy` in config.pbtxt selects. Text models follow a
token-ID model: each of their versions shares the files of its version.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import PreparedModelError, VersionError
from ct2_triton.prepared_model import (
    CONFIG_NAME,
    MANIFEST_NAME,
    STREAM_SUFFIX,
    TEXT_SUFFIX,
    WEIGHTS_NAME,
    parse_config,
    read_json,
)
from ct2_triton.shared_files import replace_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tritonclient.grpc.model_config_pb2 import ModelConfig

HISTORY_NAME = "ct2_versions.json"
"""File with the history of served versions, next to the model's own record."""

FIRST = 1
"""The version that ct2-prepare writes by default."""

LAST = 2**63 - 1
"""The largest version that Triton can read; a folder with a larger number ends the server."""


def versions_in(model: Path) -> tuple[int, ...]:
    """List the versions of a model.

    Raises VersionError for a folder that no server could take for a version without ending.
    """
    names = (entry.name for entry in model.iterdir() if entry.is_dir())
    versions = sorted(int(name) for name in names if name.isascii() and name.isdigit())
    if versions and versions[-1] > LAST:
        raise VersionError(
            f"{model / str(versions[-1])} ends a server that reads it, because its number is above "
            f"{LAST}, the last possible version: rename it"
        )
    return tuple(versions)


def has_weights(model: Path, version: int) -> bool:
    """Return whether a version of a model of this backend has weights, where it looks for them."""
    config = read_config(model)
    own = model / str(version)
    if path := config.parameters["model_path"].string_value:
        places = [model / path.replace("{version}", str(version))]
    else:
        places = [own / config.default_model_filename, own / "model", own]
    return any((place / WEIGHTS_NAME).is_file() for place in places)


def listed(versions: Sequence[int]) -> str:
    """List versions for a sentence."""
    return ", ".join(map(str, versions)) or "none"


def has_own_record(model: Path, version: int) -> bool:
    """Return whether a version has its own record, from `ct2-prepare --as-version`."""
    return (model / str(version) / MANIFEST_NAME).is_file()


def record_of(model: Path, version: int) -> dict[str, Any]:
    """Read the `ct2_model.json` of a version; empty if ct2-prepare did not write it."""
    if has_own_record(model, version):
        return read_json(model / str(version) / MANIFEST_NAME)
    if version == FIRST and (model / MANIFEST_NAME).is_file():
        return read_json(model / MANIFEST_NAME)
    return {}


def read_history(model: Path) -> list[dict[str, Any]]:
    """Read the history of promotions and rollbacks, oldest first.

    Each entry has `at` (UTC), `action`, and the versions served `before` and `after`.
    """
    path = model / HISTORY_NAME
    if not path.is_file():
        return []
    entries = read_json(path).get("history")
    if not isinstance(entries, list):
        raise PreparedModelError(f"{path} is damaged: it has no history; remove it to start anew")
    for number, entry in enumerate(entries, 1):
        if not _is_entry(entry):
            raise PreparedModelError(
                f"{path} is damaged: entry {number} of its history is neither a promotion nor a "
                "rollback of versions; remove it to start anew"
            )
    return entries


def _is_entry(entry: object) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("at"), str)
        and entry.get("action") in ("promote", "rollback")
        and all(_are_versions(entry.get(key)) for key in ("before", "after"))
    )


def _are_versions(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(version, int) for version in value)


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
