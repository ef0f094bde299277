# SPDX-License-Identifier: Apache-2.0
"""Beams behind packed products: they get their best outputs, and choose as from all logits."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core import loop_matrix
from core.loop_helpers import run_to_end
from core.test_packed_layers import kernel
from core.test_products import Layer, random_rows
from ct2_triton import _core
from model_bin import read_model_bin, write_model_bin
from tiny_families import FAMILIES

__all__ = ["kernel"]  # a fixture

BEAMS: dict[str, Any] = {
    "beam_size": 4,
    "num_hypotheses": 4,
    "return_scores": True,
    "max_decoding_length": 12,
    "min_decoding_length": 12,
}
ALL_ROWS = 1 + 4 * 10  # of the first step, and of the others: a token is forced


@pytest.mark.parametrize("wanted", [1, 9, 63])
@pytest.mark.parametrize("outputs", [1, 31, 640, 5003])
def test_the_best_outputs_of_a_product(kernel: str, outputs: int, wanted: int) -> None:
    """Best first, of equals the first output; forbidden ones are not among them."""
    layer = Layer(outputs, 64)
    layer.weight[1::7] = layer.weight[0]
    layer.scale[1::7] = layer.scale[0]
    assert layer.bias is not None
    layer.bias[1::7] = layer.bias[0]
    rows = random_rows(30, 64)
    logits = layer.expected(rows)
    forbidden = [sorted(row.argsort()[::-1][:5].tolist()) for row in logits]
    for row, ids in zip(logits[1::2], forbidden[1::2], strict=True):
        row[ids] = -np.inf
    forbidden[0::2] = [[]] * 15
    best = layer.packed(kernel).best(rows, wanted, forbidden)
    for row, found in zip(logits, best, strict=True):
        order = [i for i in np.argsort(-row, kind="stable")[:wanted] if row[i] > -np.inf]
        assert found == [(i, row[i]) for i in order]


def assert_ctranslate2s(model: loop_matrix.MatrixModel, rows: int, seed: int) -> None:
    tally = loop_matrix.run(model, rows, seed)
    assert len(tally.different) <= 1
    assert tally.tokens > rows


@pytest.mark.parametrize("kind", [*sorted(FAMILIES), "vocabulary-map"])
def test_beams_are_ctranslate2s(models: dict[str, Path], kind: str) -> None:
    """All hypotheses of all options of beams, beside greedy rows."""
    model = loop_matrix.MatrixModel(kind, models[kind], "int8", beams=0.9)
    assert_ctranslate2s(model, 60, seed=31)


def test_beams_of_each_kernel(models: dict[str, Path], kernel: str) -> None:
    model = loop_matrix.MatrixModel("nllb", models["nllb"], "int8", beams=0.9)
    assert f"layers packed for {kernel}, " in model.loop_model.packing
    assert_ctranslate2s(model, 40, seed=32)


def written_rows(directory: Path, options: dict[str, Any]) -> tuple[int, list[Any]]:
    """How many rows of logits some steps have written, and the hypotheses."""
    model = _core.LoopModel(str(directory), {"compute_type": "int8"})
    loop = _core.DecodeLoop(model)
    [name] = loop.admit([([5, 6, 7, 2], [300], {**BEAMS, **options})])
    answer = run_to_end(loop)[name]
    return loop.counters["written_rows"], [h["ids"] for h in answer["hypotheses"]]


def test_beams_get_their_best_outputs(models: dict[str, Path]) -> None:
    """Logits are written only where two candidates are nearly equal: seldom, but by chance."""
    for options in (
        {},
        {"no_repeat_ngram_size": 2, "disable_unk": True, "suppress_sequences": "[[9], [7, 8]]"},
    ):
        assert written_rows(models["nllb"], options)[0] < ALL_ROWS / 2


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"repetition_penalty": 1.3}, ALL_ROWS),
        ({"sampling_topk": 20, "sampling_seed": 1}, ALL_ROWS),
        ({"prefix_bias_beta": 0.5}, 1),
        ({"beam_size": 32, "num_hypotheses": 1}, 1 + 32 * 10),  # too many to be kept one by one
    ],
    ids=str,
)
def test_who_needs_all_logits(models: dict[str, Path], options: dict[str, Any], rows: int) -> None:
    assert rows <= written_rows(models["nllb"], options)[0] <= max(rows, ALL_ROWS / 2)


def test_beams_that_lean_towards_a_draft(models: dict[str, Path]) -> None:
    """All probabilities change while a beam follows it; behind that the best are enough."""
    loop = _core.DecodeLoop(_core.LoopModel(str(models["nllb"]), {"compute_type": "int8"}))
    row = ([5, 6, 7, 2], [300], {**BEAMS, "draft_bias": 0.9})
    [name] = loop.admit([row], [[40, 50, 60]])
    answer = [h["ids"] for h in run_to_end(loop)[name]["hypotheses"]]
    assert 1 + 4 * 2 <= loop.counters["written_rows"] < ALL_ROWS
    assert answer[0][1:4] == [40, 50, 60]


def doubled(model: Path, folder: Path) -> Path:
    """A copy in which each token is like the one before it, in embedding and projection."""
    shutil.copytree(model, folder)
    content = read_model_bin(folder / "model.bin")
    tables = [v for name, v in content.variables.items() if name.endswith("embeddings/weight")]
    for variable in tables:
        table = np.frombuffer(variable.content, np.float32).reshape(variable.dimensions).copy()
        table[1::2] = table[0:-1:2]
        variable.content = table.tobytes()
    write_model_bin(content, folder / "model.bin")
    return folder


def test_equal_candidates_come_in_ctranslate2s_order(
    models: dict[str, Path], tmp_path: Path
) -> None:
    """Of equals it keeps no order that is known but by doing the same: from all logits."""
    twins = doubled(models["nllb"], tmp_path / "twins")
    assert written_rows(twins, {})[0] == ALL_ROWS
    model = loop_matrix.MatrixModel("twins", twins, "int8", beams=1)
    assert_ctranslate2s(model, 40, seed=33)
