# SPDX-License-Identifier: Apache-2.0
"""Reads the configs of a model repository for what Triton itself refuses or does badly.

Three settings fail, or hurt, before our backend is asked. A text that is no config is left to
Triton, which names the place; a setting that this release of the messages lacks is passed over.
"""

from __future__ import annotations

import ctypes
import importlib.util
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import VersionError
from ct2_triton.prepared_model import parse_config
from ct2_triton.serve.errors import ModelRepositoryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
        message: What it says: Triton's `ModelConfig`.
    """

    name: str
    path: Path
    message: Any

    @property
    def is_ours(self) -> bool:
        """Whether the model is one of our backend."""
        return "ctranslate2" in (self.message.backend, self.message.platform)

    @property
    def asks_for_gpu(self) -> bool:
        """Whether it has instances on a GPU."""
        return any(group.kind == group.KIND_GPU for group in self.message.instance_group)

    @property
    def may_call_at_int8(self) -> bool:
        """Whether all rows run in CTranslate2 calls on a CPU, with weights that may be int8."""
        parameters = {name: each.string_value for name, each in self.message.parameters.items()}
        return (
            self.is_ours
            and not self.asks_for_gpu
            and parameters.get("decoding") == "calls"
            and parameters.get("compute_type", "default").startswith(("auto", "default", "int8"))
        )

    @property
    def queue_policy(self) -> str | None:
        """A setting of the dynamic batcher's queue; None if no setting is made."""
        batching = self.message.dynamic_batching
        parts = (batching, batching.default_queue_policy)
        names = [field.name for part in parts for field, _ in part.ListFields()]
        return next((name for name in names if name in _QUEUE_POLICY), None)


def read_model_configs(repositories: Sequence[Path]) -> list[ModelConfig]:
    """Read every config.pbtxt of some repositories, by repository and name."""
    return [config for repository in repositories for config in _configs_of(repository)]


def gpu_complaints(configs: Sequence[ModelConfig]) -> list[str]:
    """Return of each model that asks for a GPU what to change. For a machine without one."""
    return [
        f"model '{config.name}' asks for a GPU and this machine has none: write KIND_CPU for "
        f"KIND_GPU in {config.path}, and a compute_type that a CPU has, such as int8 or float32, "
        "where it says float16"
        for config in configs
        if config.asks_for_gpu
    ]


def warnings(configs: Sequence[ModelConfig]) -> list[str]:
    """Return which settings of models of our backend Triton carries out badly, a sentence each."""
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
        # The folder of models that ct2-serve was told by name holds links.
        place = path.resolve() if path.parent.is_symlink() else path
        with suppress(VersionError):
            yield ModelConfig(path.parent.name, place, parse_config(text, path))


# What CTranslate2 asks the loader for when it first multiplies on a GPU; its wheel has the rest.
CUBLAS = "libcublas.so.12"


def count_gpus() -> int:
    """Ask the CUDA driver for its devices (0 without one); CUDA_VISIBLE_DEVICES is honoured."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def cublas_wheel_folder() -> Path | None:
    """Find cuBLAS 12 in a Python wheel, where the loader does not look by itself."""
    spec = importlib.util.find_spec("nvidia")
    for location in (spec and spec.submodule_search_locations) or ():
        for library in sorted(Path(location).glob(f"*/lib/{CUBLAS}")):
            return library.parent
    return None


def has_cublas() -> bool:
    """Return whether a server started here finds cuBLAS 12, through the loader or in a wheel."""
    if cublas_wheel_folder() is not None:
        return True
    try:
        ctypes.CDLL(CUBLAS)
    except OSError:
        return False
    return True
