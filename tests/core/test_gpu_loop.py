# SPDX-License-Identifier: Apache-2.0
"""The decode loop on our own GPU kernels, run by the emulated GPU: answers are CTranslate2's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core import loop_matrix
from core.engine_truth import EngineTruth, Row, ragged_rows
from core.loop_helpers import GREEDY, decode_alone, new_loop, run_to_end
from core.test_loop_matrix import KINDS as ALL_KINDS
from ct2_triton import _core
from support import emulated_gpu
from support.fewer import fewer
from support.tiny import tiny_engine_model
from tiny_models import TinyOptions

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


def greedy_rows(truth: EngineTruth) -> list[tuple[Row, Row, dict[str, Any]]]:
    """Rows whose tokens the device chooses by itself: several limits, a penalty, draws."""
    sources, prefixes = ragged_rows(truth, 6, seed=5)
    options: list[dict[str, Any]] = [
        {},
        {"max_decoding_length": 6},
        {"min_decoding_length": 9},
        {"repetition_penalty": 1.4, "return_scores": True},
        {"no_repeat_ngram_size": 2},
        {"sampling_topk": 5, "sampling_seed": 3},
    ]
    return [
        (source, prefix, {**GREEDY, "max_decoding_length": 12, **own})
        for source, prefix, own in zip(sources, prefixes, options, strict=True)
    ]


def run_with_joins(loop: Any, rows: list[Any], removed: int) -> list[Row]:
    """The ids of rows that join one by one between steps, one of which is removed on the way."""
    names: list[int] = []
    answers: dict[int, Any] = {}
    for number, row in enumerate(rows):
        names += loop.admit([row])
        if number == removed + 1:
            loop.remove(names[removed])
        answers.update(loop.step()[1])
        answers.update(loop.step()[1])
    answers.update(run_to_end(loop))
    return [answers[name]["ids"] for name in names if name in answers]


def test_steps_run_ahead_of_the_host(models: dict[str, Path]) -> None:
    """A step is launched before the tokens of the one before it are read.

    Beside a row whose alignments the host keeps, each step is read first: the ids are the same.
    """
    library = emulated_gpu.emulated_gpu()
    truth = EngineTruth(models["nllb"])
    rows = greedy_rows(truth)
    loop = new_loop(models["nllb"])
    emulated_gpu.graphs_at_once(library)

    ahead = run_with_joins(loop, rows, removed=4)

    counters = loop.counters
    assert counters["gpu_passes_ahead"] > counters["gpu_passes"] / 2
    assert emulated_gpu.graphs_at_once(library) >= 2
    assert loop.cache_bytes == 0

    aligned = {**GREEDY, "replace_unknowns": True, "min_decoding_length": 24}
    loop.admit([(*rows[0][:2], aligned)])
    waiting = run_with_joins(loop, rows, removed=4)
    assert loop.counters["gpu_passes_ahead"] == counters["gpu_passes_ahead"]
    assert emulated_gpu.graphs_at_once(library) <= 2  # an encoder's and a step's
    assert ahead == waiting
    for i in range(4):
        source, prefix, options = rows[i]
        assert [ahead[i]] == truth.hypotheses(source, prefix, **options)


def test_draws_that_take_turns_beside_a_light_row_come_to_their_ends() -> None:
    """A draw of a large vocabulary is heavy: it leaves steps out, and keeps what ran ahead."""
    directory = tiny_engine_model("nllb", TinyOptions(vocab_size=34_000, d_model=32, layers=1))
    [source], [prefix] = ragged_rows(EngineTruth(directory), 1, seed=4)
    draw = {"sampling_topk": 0, "max_decoding_length": 3}
    draws = [(source, prefix, {**GREEDY, **draw, "sampling_seed": seed}) for seed in (1, 2)]
    light = (source, prefix, {**GREEDY, "max_decoding_length": 6})
    loop = new_loop(directory)
    alone = [decode_alone(loop, *row)["ids"] for row in draws]

    names = loop.admit([light, *draws])
    answers = run_to_end(loop)

    assert [answers[name]["ids"] for name in names[1:]] == alone
    assert loop.counters["gpu_passes_ahead"] > 0


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
