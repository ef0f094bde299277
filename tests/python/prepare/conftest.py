# SPDX-License-Identifier: Apache-2.0
"""Prepared models of each family, made once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ct2_triton.prepared_model import PreparedModel
from support.prepared import prepared_once, proofs_of
from support.tiny import tiny_checkpoint

# Tiny models are slower on several threads, and much slower on a busy machine. Read when torch and
# CTranslate2 are loaded, here and in the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

Prepared = Callable[[str], PreparedModel]


@pytest.fixture(scope="session")
def prepared() -> Prepared:
    """Prepares the tiny model of a family in float32, once. Read it, do not change it."""
    return lambda family: prepared_once(tiny_checkpoint(family), family, 32, quantization="float32")


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
