# SPDX-License-Identifier: Apache-2.0
"""Packed layers behind the decode loop: the bits of CTranslate2's layers, the loop's answers."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core import loop_matrix
from core.library_layer import library_layer
from core.test_products import ACTIVATIONS, NAMES, random_rows, same_bits
from ct2_triton import _core
from ct2_triton.prepare.shipped import FOLDER
from support.fewer import fewer

DEMO = FOLDER / "model"
SCOPES = [
    "encoder/layer_0/self_attention/linear_0",
    "encoder/layer_0/ffn/linear_0",
    "decoder/layer_0/attention/linear_1",
    "decoder/layer_0/ffn/linear_1",
    "decoder/projection",
]


@pytest.fixture(params=NAMES)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param not in _core.kernels():
        pytest.skip(f"this processor does not have the instructions of {request.param}")
    monkeypatch.setenv("CT2_TRITON_KERNELS", request.param)
    return request.param


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("scope", SCOPES)
def test_a_layer_has_the_librarys_bits(kernel: str, scope: str, activation: str) -> None:
    """A trained model's, with biases; 1 to 37 rows of several magnitudes."""
    packed = _core.ModelLayer(str(DEMO), "int8", scope, activation)
    assert packed.packing.startswith(f"1 layers packed for {kernel}, ")
    rows, expected = library_layer(DEMO, "int8", scope, activation)
    for count in (1, 5, 13, 37):
        assert same_bits(packed.apply(rows[:count]), expected[:count])
    residual = random_rows(37, expected.shape[1], seed=5)
    assert same_bits(packed.apply(rows, residual), expected + residual)


def test_selected_outputs_have_the_librarys_bits(kernel: str) -> None:
    outputs = [5, 0, 700, *range(100, 237)]
    packed = _core.ModelLayer(str(DEMO), "int8", "decoder/projection")
    packed.select(outputs)
    rows, expected = library_layer(DEMO, "int8", "decoder/projection", "none")
    assert same_bits(packed.apply(rows), np.ascontiguousarray(expected[:, outputs]))


def answers(model: loop_matrix.MatrixModel, seed: int) -> list[Any]:
    """Of random rows with random options, which join at random steps."""
    rng = random.Random(f"{model.name} {seed}")
    cases = [model.draw(rng) for _ in range(80)]
    found = loop_matrix.decode(model, cases, rng)
    return [[h["ids"] for h in row["hypotheses"]] for row in found]


@pytest.mark.parametrize("kind", ["nllb", "t5"])
def test_each_kernel_gives_the_loops_answers(models: dict[str, Path], kind: str) -> None:
    """Of int8 weights: sums of integers are exact, and all rounds alike."""
    found = {}
    for kernel in _core.kernels():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CT2_TRITON_KERNELS", kernel)
            model = loop_matrix.MatrixModel(kind, models[kind], "int8")
            assert f"layers packed for {kernel}, " in model.loop_model.packing
            found[kernel] = answers(model, 22)
    first, *others = found.values()
    differing = [sum(a != b for a, b in zip(first, other, strict=True)) for other in others]
    assert others
    assert max(differing) <= 2  # attention adds floats in another order


@pytest.mark.parametrize("compute_type", ["float32", "int8"])
@pytest.mark.parametrize(
    "kind", ["madlad", "marian", "mbart50", "nllb", "no-stored-positions", "t5"]
)
def test_an_encoding_does_not_depend_on_its_company(
    models: dict[str, Path], kind: str, compute_type: str
) -> None:
    """Rows of all lengths are encoded together, without padding."""
    model = loop_matrix.MatrixModel(kind, models[kind], compute_type)
    assert loop_matrix.composition(model, fewer(120), seed=23) == 0


@pytest.mark.parametrize("rows", [60, 300], ids=["few", "many"])
def test_our_encoder_answers_as_ctranslate2(rows: int) -> None:
    """On a trained model: each row against CTranslate2 on the row alone."""
    model = loop_matrix.MatrixModel("demo", DEMO, "int8")
    tally = loop_matrix.run(model, rows, seed=24)
    assert len(tally.different) <= rows / 50
    assert tally.tokens > 6 * rows


HUGE = """
import re, sys
from pathlib import Path
from ct2_triton import _core

def in_huge_pages():
    areas = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text())
    asked = [area for area in areas if re.search(r"^VmFlags:.* hg", area, re.M)]
    return sum(int(re.search(r"^Rss: +([0-9]+)", area, re.M)[1]) << 10 for area in asked)

before = in_huge_pages()
model = _core.Translator(sys.argv[1], {"compute_type": "int8"})
print(in_huge_pages() - before)
"""


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="no huge pages"
)
def test_small_layers_share_huge_pages() -> None:
    """All layers of the demo model are smaller than one; none of the memory is wasted but the last.

    What counts is that huge pages were asked for: a system may refuse them.
    """
    packing = _core.LoopModel(str(DEMO), {"compute_type": "int8"}).packing
    packed = int(packing.split(", ")[1].split(" MiB")[0])  # rounded down; biases lie elsewhere
    command = [sys.executable, "-c", HUGE, str(DEMO)]
    found = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert packed >= 3
    assert (packed - 0.5) * (1 << 20) <= found <= (packed + 3) * (1 << 20)
