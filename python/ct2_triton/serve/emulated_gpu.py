# SPDX-License-Identifier: Apache-2.0
"""Model repositories for an emulated GPU: Triton refuses KIND_GPU on a machine without one."""

from __future__ import annotations

import os
import tempfile
import weakref
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.prepared_model import CONFIG_NAME
from ct2_triton.serve.model_configs import count_gpus, read_model_configs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ct2_triton.serve.options import ServerOptions

_VARIABLE = "CT2_TRITON_GPU"  # as the backend reads it


def is_emulated(environment: Mapping[str, str]) -> bool:
    """Return whether CT2_TRITON_GPU, here or in `environment`, asks for an emulated GPU."""
    return {**os.environ, **environment}.get(_VARIABLE) == "emulated"


def lacks_gpu(environment: Mapping[str, str]) -> bool:
    """Return whether there is no GPU, not even an emulated one."""
    return count_gpus() == 0 and not is_emulated(environment)


def mapped(options: ServerOptions, owner: object) -> ServerOptions:
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
