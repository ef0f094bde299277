# SPDX-License-Identifier: Apache-2.0
"""Check the configs of a model repository for settings that Triton refuses or handles badly.

Three settings fail, or do harm, before our backend is called. An invalid config is left to Triton,
which names the place; settings that the installed protobuf messages lack are ignored.
"""

from __future__ import annotations

import tempfile
import weakref
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import VersionError
from ct2_triton.prepared_model import CONFIG_NAME, parse_config
from ct2_triton.serve.errors import ModelRepositoryError
from ct2_triton.serve.machine import is_emulated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ct2_triton.serve.options import ServerOptions

_QUEUE_POLICY = {
    "priority_levels",
    "default_priority_level",
    "allow_timeout_override",
    "default_timeout_microseconds",
    "max_queue_size",
    "priority_queue_policy",
}


@dataclass(frozen=True)
class ModelConfig:
    """The config of one model.

    Attributes:
        name: The model's folder.
        path: Its config.pbtxt.
        message: Its content: Triton's `ModelConfig`.
    """

    name: str
    path: Path
    message: Any

    @property
    def is_ours(self) -> bool:
        """Whether the model uses our backend."""
        return "ctranslate2" in (self.message.backend, self.message.platform)

    @property
    def asks_for_gpu(self) -> bool:
        """Whether it has instances on a GPU."""
        return any(group.kind == group.KIND_GPU for group in self.message.instance_group)

    @property
    def may_call_at_int8(self) -> bool:
        """Whether all rows run in CTranslate2 calls on a CPU, with weights that may be int8."""
        return (
            self.is_ours
            and not self.asks_for_gpu
            and self.parameter("decoding") == "calls"
            and (self.parameter("compute_type") or "default").startswith(
                ("auto", "default", "int8")
            )
        )

    def parameter(self, name: str) -> str:
        """Return a parameter of the model; "" if it is not set."""
        if name not in self.message.parameters:
            return ""
        value: str = self.message.parameters[name].string_value
        return value

    @property
    def queue_policy(self) -> str | None:
        """A setting of the dynamic batcher's queue; None if there is none."""
        batching = self.message.dynamic_batching
        parts = (batching, batching.default_queue_policy)
        names = [field.name for part in parts for field, _ in part.ListFields()]
        return next((name for name in names if name in _QUEUE_POLICY), None)


def read_model_configs(repositories: Sequence[Path]) -> list[ModelConfig]:
    """Read every config.pbtxt of some repositories, by repository and name."""
    return [config for repository in repositories for config in _configs_of(repository)]


def other_folders(repository: Path) -> list[Path]:
    """Return the folders of a repository that are no models, at which tritonserver would end.

    Models have a config or a version folder. Others are `lost+found`, or a model that `ct2-prepare`
    is writing, or was, when it was killed.
    """
    if (repository / CONFIG_NAME).exists():
        return []  # the reader of configs has a better message
    folders = (entry for entry in sorted(repository.iterdir()) if entry.is_dir())
    return [folder for folder in folders if folder.name.startswith(".") or not _is_model(folder)]


def _is_model(folder: Path) -> bool:
    try:
        return any(
            entry.name == CONFIG_NAME or entry.name.isdecimal() for entry in folder.iterdir()
        )
    except PermissionError:
        return False


def gpu_complaints(configs: Sequence[ModelConfig]) -> list[str]:
    """Return a sentence for each model that needs a GPU, for a machine without one."""
    return [
        f"model '{config.name}' asks for a GPU and this machine has none: write KIND_CPU for "
        f"KIND_GPU in {config.path}, and a compute_type that a CPU has, such as int8 or float32, "
        "where it says float16"
        for config in configs
        if config.asks_for_gpu
    ]


def tenant_headers(configs: Sequence[ModelConfig]) -> list[str]:
    """Return the headers that name tenants to some of our models."""
    found = {config.parameter("tenant_header") for config in configs if config.is_ours}
    return sorted(found - {""})


def warnings(configs: Sequence[ModelConfig]) -> list[str]:
    """Return a sentence for each setting of our models that Triton handles badly."""
    found = []
    for config in configs:
        if not config.is_ours:
            continue
        if config.message.response_cache.enable:
            found.append(
                f"model '{config.name}' turns on the response cache, whose key ignores request "
                f"parameters and which also stores errors: the backend will refuse to load it; "
                f"remove response_cache from {config.path}"
            )
        if config.queue_policy:
            found.append(
                f"model '{config.name}' has a queue policy ({config.queue_policy} in "
                f"{config.path}): Triton's dynamic batcher can then pause for 500 ms, most often "
                "while its queue is full; docs/guarantees.md says what to use instead"
            )
    return found


def _configs_of(repository: Path) -> Iterator[ModelConfig]:
    if not repository.is_dir():
        raise ModelRepositoryError(
            f"{repository} is not a folder: name a model repository, a folder of model folders, or "
            "a model that is to be prepared, as in ct2-serve demo"
        )
    if (repository / "config.pbtxt").is_file():
        raise ModelRepositoryError(
            f"{repository} is a model: name the model repository, the folder that contains it"
        )
    for path in sorted(repository.glob("*/config.pbtxt")):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelRepositoryError(f"cannot read {path}: {error}") from error
        # The repository of models that ct2-serve was given by name contains links.
        place = path.resolve() if path.parent.is_symlink() else path
        with suppress(VersionError):
            yield ModelConfig(path.parent.name, place, parse_config(text, path))


def mapped_to_cpu(options: ServerOptions, owner: object) -> ServerOptions:
    """Return the options with repositories in which our models have KIND_CPU for KIND_GPU.

    They are links to the user's, and are removed with the owner. Without an emulated GPU, nothing
    is changed.
    """
    if not is_emulated(options.environment):
        return options
    folder = tempfile.TemporaryDirectory(prefix="ct2-triton-emulated-")
    repositories = []
    for number, repository in enumerate(options.model_repositories):
        repositories.append(Path(folder.name) / str(number))
        _link_repository(repository, repositories[-1])
    weakref.finalize(owner, folder.cleanup)
    return replace(options, model_repositories=repositories)


def _link_repository(repository: Path, linked: Path) -> None:
    linked.mkdir()
    asking = {
        config.name: config.message
        for config in read_model_configs([repository])
        if config.is_ours and config.asks_for_gpu
    }
    for entry in repository.iterdir():
        message = asking.get(entry.name)
        if message is None:
            (linked / entry.name).symlink_to(entry.absolute())
            continue
        for group in message.instance_group:
            if group.kind == group.KIND_GPU:
                group.kind = group.KIND_CPU
                del group.gpus[:]
        _link_model(entry, linked / entry.name, str(message))


def _link_model(model: Path, linked: Path, config: str) -> None:
    linked.mkdir()
    for entry in model.iterdir():
        if entry.name != CONFIG_NAME:
            (linked / entry.name).symlink_to(entry.absolute())
    (linked / CONFIG_NAME).write_text(config, encoding="utf-8")
