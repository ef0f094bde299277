# SPDX-License-Identifier: Apache-2.0
"""Models of text beside a model of ids: each version of theirs is on the files of that of ids."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ct2_triton.prepared_model import CONFIG_NAME, STREAM_SUFFIX, TEXT_SUFFIX
from ct2_triton.version_policy import read_config

if TYPE_CHECKING:
    from pathlib import Path

_FILES = re.compile(r"\.\./([^/]+)/\{version\}/model")


def files_of(name: str) -> str:
    """Give the `model_path` by which a model beside this one takes the files of each version."""
    return f"../{name}/{{version}}/model"


def followers(model: Path) -> list[Path]:
    """Find the models of text that are on a model's files, version by version."""
    beside = (model.with_name(model.name + suffix) for suffix in (TEXT_SUFFIX, STREAM_SUFFIX))
    return [folder for folder in beside if followed_by(folder) == model.name]


def followed_by(folder: Path) -> str | None:
    """Give the name of the model whose versions a model has; None where they are its own."""
    if not (folder / CONFIG_NAME).is_file():
        return None
    path = read_config(folder).parameters["model_path"].string_value
    match = _FILES.fullmatch(path)
    return match[1] if match else None
