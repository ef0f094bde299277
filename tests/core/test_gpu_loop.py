# SPDX-License-Identifier: Apache-2.0
"""The decode loop on our own GPU kernels, run by the emulated GPU: answers are CTranslate2's."""

from __future__ import annotations

from pathlib import Path

import pytest

from core import loop_matrix
from core.test_loop_matrix import KINDS as ALL_KINDS
from ct2_triton import _core
from support import emulated_gpu
from support.fewer import fewer
from support.tiny import tiny_engine_model

KINDS = ("marian", "nllb", "t5")


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    emulated_gpu.load()


@pytest.fixture(autouse=True)
def emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CT2_TRITON_GPU", "emulated")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return loop_matrix.matrix_models(tiny_engine_model, tmp_path_factory.mktemp("matrix"))


@pytest.mark.parametrize("kind", KINDS)
def test_float32_answers_are_those_of_the_row_alone(models: dict[str, Path], kind: str) -> None:
    """Rows of all ages and options share the steps, and join at random ones."""
    model = loop_matrix.MatrixModel(kind, models[kind], "float32")

    tally = loop_matrix.run(model, fewer(12), seed=18)

    assert tally.different == []
    assert tally.ties <= 1
    assert tally.score_error < 1e-4


@pytest.mark.gpu
@pytest.mark.skipif(_core.gpu_count() == 0, reason="no GPU here")
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_float32_answers_on_a_gpu_are_those_of_the_row_alone(
    models: dict[str, Path], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CT2_TRITON_GPU")
    model = loop_matrix.MatrixModel(kind, models[kind], "float32", device="cuda")

    tally = loop_matrix.run(model, 120, seed=18)

    assert tally.different == []
    assert tally.score_error < 1e-3
