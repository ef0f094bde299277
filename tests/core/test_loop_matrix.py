# SPDX-License-Identifier: Apache-2.0
"""The decode loop gives CTranslate2's answers: all kinds of decoders, options, and arrivals.

More rows by command: tests/core/loop_matrix.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core import loop_matrix
from support.fewer import fewer
from tiny_families import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "python" / "ct2_triton" / "demo_model" / "model"
KINDS = [
    *sorted(FAMILIES), "t5-wide-heads", "t5-narrow-heads", "nllb-ends-by-itself",
    "no-stored-positions", "vocabulary-map",
]  # fmt: skip
# Of rows; random models have no clear favourite, so that the last bits of a sum decide often.
INT8_DIFFERENCES = 0.03
# Random rows of a test; `make test-long` repeats it with many.
FEW_OR_MANY = ["few", "many"]


def test_every_kind_is_tested(models: dict[str, Path]) -> None:
    assert sorted(models) == sorted(KINDS)


@pytest.mark.parametrize("rows", [100, 360], ids=FEW_OR_MANY)  # many: 5,040 over all kinds
@pytest.mark.parametrize("kind", KINDS)
def test_float32_answers_are_those_of_the_row_alone(
    models: dict[str, Path], kind: str, rows: int
) -> None:
    model = loop_matrix.MatrixModel(kind, models[kind], "float32")

    tally = loop_matrix.run(model, fewer(rows), seed=11)

    assert tally.different == []
    assert tally.ties <= 1
    assert tally.score_error < 1e-4


@pytest.mark.parametrize("rows", [50, 150], ids=FEW_OR_MANY)
@pytest.mark.parametrize("kind", KINDS)
def test_float32_beams_are_those_of_the_row_alone(
    models: dict[str, Path], kind: str, rows: int
) -> None:
    """All hypotheses and their scores, beside greedy rows."""
    model = loop_matrix.MatrixModel(kind, models[kind], "float32", beams=0.8)

    tally = loop_matrix.run(model, fewer(rows), seed=16)

    assert tally.different == []
    assert tally.ties <= 1
    assert tally.score_error < 1e-4


@pytest.mark.parametrize("compute_type", ["int8", "int8_float32"])
@pytest.mark.parametrize("kind", KINDS)
def test_int8_answers_are_mostly_those_of_the_row_alone(
    models: dict[str, Path], kind: str, compute_type: str
) -> None:
    model = loop_matrix.MatrixModel(kind, models[kind], compute_type)

    tally = loop_matrix.run(model, 100, seed=12)

    assert len(tally.different) <= INT8_DIFFERENCES * tally.rows
    assert tally.score_error < 0.05


@pytest.mark.parametrize("rows", [40, 100], ids=FEW_OR_MANY)
@pytest.mark.parametrize("compute_type", ["float32", "int8"])
@pytest.mark.parametrize("kind", ["m2m100", "marian", "t5", "vocabulary-map"])
def test_answers_do_not_depend_on_the_company(
    models: dict[str, Path], kind: str, compute_type: str, rows: int
) -> None:
    model = loop_matrix.MatrixModel(kind, models[kind], compute_type, beams=0.3)

    assert loop_matrix.composition(model, fewer(rows), seed=13) == 0


@pytest.mark.parametrize("rows", [40, 100], ids=FEW_OR_MANY)
@pytest.mark.parametrize("compute_type", ["float32", "int8"])
@pytest.mark.parametrize("kind", KINDS)
def test_answers_with_drafts_are_those_without(
    models: dict[str, Path], kind: str, compute_type: str, rows: int
) -> None:
    model = loop_matrix.MatrixModel(kind, models[kind], compute_type, beams=0.1)

    found = loop_matrix.drafted(model, fewer(rows), seed=17)

    assert found.different == 0
    assert found.kept > fewer(rows)
    assert found.score_error < 1e-4


@pytest.mark.parametrize("compute_type", ["float32", "int8"])
@pytest.mark.parametrize("kind", [*KINDS, "demo"])
def test_helping_threads_change_no_bit(
    models: dict[str, Path], kind: str, compute_type: str
) -> None:
    """The demo model has more than one group of heads."""
    model = loop_matrix.MatrixModel(kind, {**models, "demo": DEMO}[kind], compute_type, beams=0.3)

    alone, helped = loop_matrix.helped(model, 40, seed=18)

    assert all(answers == alone for answers in helped)


@pytest.mark.parametrize("packed", ["0", "1"])
def test_with_mkl(models: dict[str, Path], packed: str) -> None:
    """CTranslate2 chooses its library of products by processor; here both are run."""
    environment: dict[str, Any] = {"CT2_USE_MKL": "1", "CT2_PACKED_GEMM": packed}
    script = (
        "import sys, pathlib\nfrom core import loop_matrix as m\n"
        "model = m.MatrixModel('t5', pathlib.Path(sys.argv[1]), sys.argv[2])\n"
        "tally = m.run(model, 40, seed=14)\n"
        "assert len(tally.different) <= int(sys.argv[3]), tally.different\n"
    )
    for compute_type, differing in (("float32", 0), ("int8", 2)):
        subprocess.run(
            [sys.executable, "-c", script, str(models["t5"]), compute_type, str(differing)],
            env={**_environment(), **environment}, check=True,
        )  # fmt: skip


@pytest.mark.parametrize("kernels", ["plain", "avx2", "avx512"])
def test_with_each_kernel(models: dict[str, Path], kernels: str, monkeypatch: Any) -> None:
    from ct2_triton import _core

    if kernels not in _core.kernel_names():
        pytest.skip(f"this processor does not run {kernels}")
    monkeypatch.setenv("CT2_TRITON_KERNELS", kernels)
    for kind in ("nllb", "t5-wide-heads"):
        model = loop_matrix.MatrixModel(kind, models[kind], "float32")
        assert loop_matrix.run(model, 40, seed=15).different == []


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path[1:]])}
