# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of the compiled core: a tiny model, and the truth about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import EngineTruth
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


@pytest.fixture
def translator(engine_model: Path) -> Any:
    return _core.Translator(str(engine_model), {"compute_type": "float32"})
