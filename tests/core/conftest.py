# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of the compiled core: a tiny model, and the truth about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import EngineTruth
from core.loop_helpers import new_loop
from core.loop_matrix import matrix_models
from ct2_triton import _core
from support.tiny import tiny_engine_model
from tiny_models import TinyOptions

# Few enough that a limit can bite, and trained, so that sentences end by themselves.
POSITIONS = 128
MODEL = TinyOptions(train_steps=200, max_positions=POSITIONS)


@pytest.fixture(scope="session")
def engine_model() -> Path:
    """A tiny NLLB model that copies its input, in CTranslate2's format, float32."""
    return tiny_engine_model("nllb", MODEL)


@pytest.fixture(scope="session")
def truth(engine_model: Path) -> EngineTruth:
    return EngineTruth(engine_model)


@pytest.fixture(scope="module")
def loop(engine_model: Path) -> Any:
    return new_loop(engine_model)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The models of core/loop_matrix.py, by kind."""
    return matrix_models(tiny_engine_model, tmp_path_factory.mktemp("matrix"))


@pytest.fixture
def translator(engine_model: Path) -> Any:
    return _core.Translator(str(engine_model), {"compute_type": "float32"})
