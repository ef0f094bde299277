# SPDX-License-Identifier: Apache-2.0
"""Prepared models of each family, made once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepared_model import PreparedModel
from support.prepared import proofs_of
from support.tiny import tiny_checkpoint

# Tiny models are slower on several threads, and much slower on a busy machine. Read when torch and
# CTranslate2 are loaded, here and in the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

Prepared = Callable[[str], PreparedModel]


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Prepares the tiny model of a family in float32, once. Read it, do not change it."""
    repository = tmp_path_factory.mktemp("prepared")
    made: dict[str, PreparedModel] = {}

    def get(family: str) -> PreparedModel:
        if family not in made:
            options = PrepareOptions(
                source=str(tiny_checkpoint(family)),
                model_repository=repository,
                name=family,
                quantization="float32",
            )
            with proofs_of(32):
                made[family] = prepare(options)
        return made[family]

    return get


@pytest.fixture
def short_proofs() -> Iterator[None]:
    """For tests whose subject is not the proof."""
    with proofs_of(4):
        yield


@pytest.fixture
def checkpoint_copy(tmp_path: Path) -> Callable[[str], Path]:
    """Copies the tiny checkpoint of a family, to be changed by the test."""

    def copy(family: str) -> Path:
        return Path(shutil.copytree(tiny_checkpoint(family), tmp_path / f"{family}-checkpoint"))

    return copy
