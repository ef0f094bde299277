# SPDX-License-Identifier: Apache-2.0
"""Rows of one source share its encoding: answers, counts, memory, and what leaves or fails."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import END, EngineTruth, ragged_rows
from core.loop_helpers import GREEDY, decode_alone, run_to_end
from ct2_triton import _core

SOURCE = [300, *range(50, 58), END]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"repetition_penalty": 1.5},
    {"max_decoding_length": 7},
    {"min_decoding_length": 12, "no_repeat_ngram_size": 2},
]
KEYS_OF_A_SOURCE = "decoder/layer_1/attention/linear_1"


def _model(directory: Path, **options: Any) -> Any:
    return _core.LoopModel(str(directory), {"compute_type": "float32"}, **options)


def _rows(truth: EngineTruth, sources: int, seed: int) -> list[Any]:
    """Every source with several prefixes and all options, mixed."""
    rows = [
        (source, prefix, {**GREEDY, **options})
        for source in ragged_rows(truth, sources, seed)[0]
        for prefix in ([], [truth.languages[0]], [truth.languages[1], 60, 61])
        for options in OPTIONS
    ]
    random.Random(seed).shuffle(rows)
    return rows


def _counts(loop: Any) -> tuple[int, int]:
    return loop.counters["encoded_rows"], loop.counters["shared_encodings"]


def test_rows_admitted_together_share(engine_model: Path, truth: EngineTruth) -> None:
    loop = _core.DecodeLoop(_model(engine_model))
    rows = _rows(truth, 5, seed=31)
    names = loop.admit(rows)
    assert _counts(loop) == (5, len(rows) - 5)
    assert loop.counters["encoded_tokens"] == sum(map(len, {tuple(s) for s, _, _ in rows}))
    assert loop.encodings == 5
    answers = run_to_end(loop)
    for name, (source, prefix, options) in zip(names, rows, strict=True):
        assert [answers[name]["ids"]] == truth.hypotheses(source, prefix, **options)
    assert (loop.encodings, loop.cache_bytes) == (0, 0)


@pytest.mark.parametrize("compute_type", ["float32", "int8"])
def test_rows_share_with_those_that_decode_in_any_loop(
    engine_model: Path, truth: EngineTruth, compute_type: str
) -> None:
    """Rows join two loops at random steps; each answer is the one of the row alone."""
    model = _core.LoopModel(str(engine_model), {"compute_type": compute_type})
    first = _core.DecodeLoop(model)
    loops = [first, _core.DecodeLoop(model, beside=first)]
    rows = _rows(truth, 4, seed=32)
    rng = random.Random(1)
    names, answers = {}, {}
    while len(answers) < len(rows):
        for i, loop in enumerate(loops):
            if len(names) < len(rows) and rng.random() < 0.5:
                [name] = loop.admit([rows[len(names)]])
                names[i, name] = rows[len(names)]
            answers.update({(i, name): answer for name, answer in loop.step()[1]})
    encoded, shared = map(sum, zip(*map(_counts, loops), strict=True))
    assert encoded + shared == len(rows)
    assert shared > len(rows) / 2
    alone = _core.DecodeLoop(model)
    for name, (source, prefix, options) in names.items():
        assert answers[name] == decode_alone(alone, source, prefix, options)
        if compute_type == "float32":
            assert [answers[name]["ids"]] == truth.hypotheses(source, prefix, **options)
    assert alone.counters["shared_encodings"] == 0
    assert (first.encodings, first.cache_bytes) == (0, 0)


def test_rows_that_leave_or_end_early_leave_the_encoding_to_the_others(
    engine_model: Path, truth: EngineTruth
) -> None:
    loop = _core.DecodeLoop(_model(engine_model))
    long = {**GREEDY, "min_decoding_length": 20, "max_decoding_length": 20}
    soon = {**GREEDY, "max_decoding_length": 3}
    [first, short, other] = loop.admit([(SOURCE, [], long), (SOURCE, [], soon), ([5, 6], [], long)])
    assert loop.encodings == 2
    loop.remove(first)  # for whom it was made
    loop.remove(other)
    assert loop.encodings == 1
    [late] = loop.admit([(SOURCE, [60], long)])
    answers = run_to_end(loop)
    assert sorted(answers) == [short, late]
    assert [answers[late]["ids"]] == truth.hypotheses(SOURCE, [60], **long)
    assert _counts(loop) == (2, 2)
    assert (loop.encodings, loop.cache_bytes) == (0, 0)
    loop.admit([(SOURCE, [], long)])
    assert _counts(loop) == (3, 2)


def test_a_row_that_ends_without_a_step_needs_no_encoding(engine_model: Path) -> None:
    loop = _core.DecodeLoop(_model(engine_model))
    loop.admit([(SOURCE, [60, 61], {**GREEDY, "max_decoding_length": 2})])
    assert _counts(loop) == (0, 0)
    assert loop.encodings == 0


def test_an_encode_that_fails_leaves_nothing_behind(engine_model: Path, truth: EngineTruth) -> None:
    """Neither for the sources it was to encode, nor for one that other rows have."""
    model = _model(engine_model, damaged=KEYS_OF_A_SOURCE)
    loop = _core.DecodeLoop(model)
    [running] = loop.admit([(SOURCE, [], GREEDY)])
    before = (loop.encodings, loop.cache_bytes, loop.running)
    # Sources of three lengths are one pass of the encoder, which fails.
    rows = [(SOURCE[:i], [], GREEDY) for i in (2, 3, 4)] + [(SOURCE, [60], GREEDY)]
    model.fail_after(0)
    with pytest.raises(_core.Error, match="a product failed"):
        loop.admit(rows)
    assert (loop.encodings, loop.cache_bytes, loop.running) == before
    model.fail_after(-1)
    names = [running, *loop.admit(rows)]
    answers = run_to_end(loop)
    for name, (source, prefix, _) in zip(names, [(SOURCE, [], None), *rows], strict=True):
        assert [answers[name]["ids"]] == truth.hypotheses(source, prefix, **GREEDY)
    assert (loop.encodings, loop.cache_bytes) == (0, 0)


def test_a_source_that_another_thread_never_finishes_is_encoded_here(
    engine_model: Path, truth: EngineTruth
) -> None:
    """All such sources in one batch, each once; rows that come later encode it again."""
    loop = _core.DecodeLoop(_model(engine_model))
    held = [SOURCE, SOURCE[:3], SOURCE[:4]]
    for source in held:
        loop.hold_place(source)
    rows = [(source, prefix, GREEDY) for source in held for prefix in ([], [60])]
    names = loop.admit(rows)
    assert loop.counters["encodes"] == 1
    assert _counts(loop) == (3, 3)
    rows.append((SOURCE, [61], GREEDY))
    names += loop.admit(rows[-1:])
    assert _counts(loop) == (4, 3)
    answers = run_to_end(loop)
    for name, (source, prefix, _) in zip(names, rows, strict=True):
        assert [answers[name]["ids"]] == truth.hypotheses(source, prefix, **GREEDY)
    assert (loop.encodings, loop.cache_bytes) == (len(held), 0)


def test_threads_that_need_the_same_encodings_do_not_disturb_each_other(
    engine_model: Path, truth: EngineTruth
) -> None:
    """Each thread makes or shares each of them; one may be made by several at the same time."""
    model = _model(engine_model)
    first = _core.DecodeLoop(model)
    loops = [first, *(_core.DecodeLoop(model, beside=first) for _ in range(2))]
    for round_ in range(20):
        sources = ragged_rows(truth, 6, seed=100 + round_)[0]
        start = threading.Barrier(len(loops))

        def admit(i: int, sources: Any = sources, start: Any = start) -> Any:
            order = random.Random(i).sample(sources, len(sources))
            start.wait()
            return order, loops[i].admit([(s, [50 + i], GREEDY) for s in order])

        with ThreadPoolExecutor(len(loops)) as pool:
            admitted = list(pool.map(admit, range(len(loops))))
        assert {sum(_counts(loop)) for loop in loops} == {6 * (round_ + 1)}
        for i, (order, names) in enumerate(admitted):
            answers = run_to_end(loops[i])
            for source, name in zip(order, names, strict=True):
                assert [answers[name]["ids"]] == truth.hypotheses(source, [50 + i], **GREEDY)
    assert (first.encodings, first.cache_bytes) == (0, 0)


def test_an_encode_that_failed_in_one_thread_is_made_by_the_next(engine_model: Path) -> None:
    model = _model(engine_model, damaged=KEYS_OF_A_SOURCE)
    first = _core.DecodeLoop(model)
    loops = [first, *(_core.DecodeLoop(model, beside=first) for _ in range(3))]

    def admit(loop: Any) -> str:
        try:
            loop.admit([(SOURCE, [], GREEDY), ([5, 6], [], GREEDY)])
        except _core.Error as error:
            return str(error)
        return ""

    for _ in range(20):
        with ThreadPoolExecutor(len(loops)) as pool:
            model.fail_after(0)
            errors = list(pool.map(admit, loops))
            assert all("a product failed" in error for error in errors)
            assert (first.encodings, first.cache_bytes) == (0, 0)
            model.fail_after(-1)
            assert list(pool.map(admit, loops)) == [""] * len(loops)
        assert first.encodings == 2
        for loop in loops:
            assert len(run_to_end(loop)) == 2
    assert {sum(_counts(loop)) for loop in loops} == {20 * 2}


TARGETS = 8
TOGETHER = {"beam_size": 1, "min_decoding_length": 20, "max_decoding_length": 20}
ONE_LOOP = {"compute_type": "float32", "decoding": "loop", "inter_threads": "1"}


def _translate_one_sentence(
    translator: Any, truth: EngineTruth, source: list[int]
) -> dict[str, Any]:
    """To several languages, in one request; returns the counters of its one loop."""
    prefixes = [[truth.languages[i % 4], 60 + i] for i in range(TARGETS)]
    answers = translator.translate([source] * TARGETS, prefixes, TOGETHER)
    for answer, prefix in zip(answers, prefixes, strict=True):
        assert [answer[0]["ids"]] == truth.hypotheses(source, prefix, **TOGETHER)
    [loop] = translator.loops
    return loop


def test_the_targets_of_a_sentence_are_admitted_together(
    engine_model: Path, truth: EngineTruth
) -> None:
    """Of 8 x 100 tokens, 100 are to be encoded; 150 may be between two steps."""
    source = [300, *range(100, 198), END]
    translator = _core.Translator(str(engine_model), ONE_LOOP)
    loop = _translate_one_sentence(translator, truth, source)
    assert (loop["encodes"], loop["encoded_tokens"]) == (1, 100)
    assert (loop["encoded_rows"], loop["shared_encodings"]) == (1, TARGETS - 1)
    assert loop["step_rows"] == TARGETS * loop["steps"]


def test_a_shared_source_takes_memory_once(engine_model: Path, truth: EngineTruth) -> None:
    """Where the rows and one encoding have just room, all rows run together."""
    source = [300, *range(100, 198), END]
    own, of_source = _model(engine_model).cache_bytes(source, [60, 61], TOGETHER)
    for room, together in ((TARGETS * own + of_source, True), (TARGETS * own, False)):
        options = {**ONE_LOOP, "max_cache_bytes": str(room)}
        loop = _translate_one_sentence(_core.Translator(str(engine_model), options), truth, source)
        assert (loop["step_rows"] == TARGETS * loop["steps"]) is together


@pytest.mark.skipif(_core.usable_cores() < 2, reason="one core does one thing after the other")
def test_no_loop_waits_for_a_source_that_another_loop_encodes(
    engine_model: Path, truth: EngineTruth
) -> None:
    """Of the rows of one source, a loop takes more than half; the other takes what is behind them.

    The first admission waits for three steps of the other loop, which come although a row of the
    source waits.
    """
    others = ragged_rows(truth, 2, seed=33)[0]
    sources = [*[SOURCE] * 6, *others]
    prefixes = [*([60 + i] for i in range(6)), [], []]
    [result] = _core.run_failing_loops(
        str(engine_model), [sources], TOGETHER, prefixes=prefixes, steps_in_admission=3
    )
    assert result["encoded_beside"] == 1
    assert set(result["times_answered"]) == {1}
    for ids, source, prefix in zip(result["ids"], sources, prefixes, strict=True):
        assert [ids] == truth.hypotheses(source, prefix, **TOGETHER)
