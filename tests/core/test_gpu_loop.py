# SPDX-License-Identifier: Apache-2.0
"""The decode loop on our own GPU kernels, run by the emulated GPU: answers are CTranslate2's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core import loop_alignments, loop_matrix
from core.engine_truth import END, EngineTruth, Row, ragged_rows
from core.loop_helpers import GREEDY, decode_alone, new_loop, run_to_end
from core.test_loop_matrix import KINDS as ALL_KINDS
from core.test_loop_sampling import KINDS as SEEDED
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


@pytest.mark.parametrize("kind", KINDS)
def test_float32_answers_are_those_of_the_row_alone(models: dict[str, Path], kind: str) -> None:
    """Rows of all ages and options share the steps, and join at random ones."""
    model = loop_matrix.MatrixModel(kind, models[kind], "float32")

    tally = loop_matrix.run(model, fewer(12), seed=18)

    assert tally.different == []
    assert tally.ties <= 1
    assert tally.score_error < 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_drafts_change_no_answer(models: dict[str, Path], kind: str) -> None:
    model = loop_matrix.MatrixModel(kind, models[kind], "float32")

    found = loop_matrix.drafted(model, fewer(12), seed=19)

    assert found.different == 0
    assert found.kept > 0
    assert found.score_error < 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_alignments_and_replaced_tokens_are_ctranslate2s(
    models: dict[str, Path], kind: str
) -> None:
    model = loop_matrix.MatrixModel(kind, models[kind], "float32", beams=0.4)

    found = loop_alignments.run(model, fewer(8), seed=20)

    assert found.different == []
    assert found.tokens > 0
    assert found.ties <= 1
    assert found.replaced > 0


@pytest.mark.parametrize("kind", ["marian", "vocabulary-map"])
def test_beams_alternatives_and_biased_searches_are_ctranslate2s(
    models: dict[str, Path], kind: str
) -> None:
    """Several hypotheses of each, with patience, penalties and forced tokens."""
    model = loop_matrix.MatrixModel(kind, models[kind], "float32", beams=1)

    tally = loop_matrix.run(model, fewer(10), seed=21)

    assert tally.different == []
    assert tally.ties <= 1
    assert tally.score_error < 1e-4


@pytest.mark.parametrize("beam_size", [1, 2])
def test_penalties_of_alternatives_leave_out_the_forced_tokens(
    models: dict[str, Path], beam_size: int
) -> None:
    truth = EngineTruth(models["nllb"])
    [source], _ = ragged_rows(truth, 1, seed=23)
    prefix = [*truth.languages[:1], 70, 80]
    options = {"beam_size": beam_size, "num_hypotheses": 3, "return_alternatives": True}
    options |= {"repetition_penalty": 1.5, "max_decoding_length": 9}

    expected = truth.hypotheses(source, prefix, **options)
    loop = new_loop(models["nllb"])
    # What it leaves on the device must not count.
    decode_alone(loop, source, expected[0][len(prefix) :], {"repetition_penalty": 1.01})

    answer = decode_alone(loop, source, prefix, options)

    assert [one["ids"] for one in answer["hypotheses"]] == expected


def test_draws_and_biased_drafts_are_those_of_the_cpus_loop(
    models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CTranslate2 has no seeds of rows: tests/core/test_loop_sampling.py holds that loop to it."""
    sources, prefixes = ragged_rows(EngineTruth(models["nllb"]), len(SEEDED), seed=6)
    rows = [
        (source, prefix, {**options, "max_decoding_length": 9, "sampling_seed": 5})
        for source, prefix, options in zip(sources, prefixes, SEEDED, strict=True)
    ]
    biased = (sources[0], prefixes[0], {**GREEDY, "max_decoding_length": 9, "draft_bias": 0.6})

    def answers() -> list[Any]:
        loop = new_loop(models["nllb"])
        draft = decode_alone(loop, *rows[0])["ids"]
        names = loop.admit([*rows, biased], [*[[]] * len(rows), draft])
        found = run_to_end(loop)
        return [found[name]["hypotheses"] for name in names]

    emulated = answers()
    monkeypatch.delenv("CT2_TRITON_GPU")
    for found, expected in zip(emulated, answers(), strict=True):
        assert [one["ids"] for one in found] == [one["ids"] for one in expected]
        scores = [one["score"] for one in expected]
        assert [one["score"] for one in found] == pytest.approx(scores, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("stored", ["int8", "float32"])
def test_int8_weights_give_ctranslate2s_tokens_or_differ_where_two_are_near(stored: str) -> None:
    """Float16 activations: two tokens are near within what they change of the logits.

    The bound is that of tests/core/test_gpu_decoder.py. Floats of a file are quantized alike.
    """
    directory = tiny_engine_model("nllb", quantization=stored)
    # The same weights in float32.
    truth = EngineTruth(tiny_engine_model("nllb", quantization="int8"))
    sources, prefixes = ragged_rows(truth, fewer(12), seed=22)
    options = {**GREEDY, "max_decoding_length": 12}
    loop = new_loop(directory, "int8")
    names = loop.admit([(s, p, options) for s, p in zip(sources, prefixes, strict=True)])
    answers = run_to_end(loop)

    same = 0
    for name, source, prefix in zip(names, sources, prefixes, strict=True):
        found = answers[name]["ids"]
        result = truth.result(
            source, prefix, return_logits_vocab=True, return_end_token=True, **options
        )
        expected = [truth.ids[token] for token in result.hypotheses[0]]
        forced = len(expected) - len(result.logits[0])
        pairs = list(zip([*found, END], expected, strict=False))[forced:]
        apart = next((i for i, (ours, theirs) in enumerate(pairs) if ours != theirs), None)
        same += apart is None
        if apart is not None:
            logits = np.array(result.logits[0][apart])
            ours, theirs = pairs[apart]
            assert logits[theirs] - logits[ours] < 2 * 6e-3 * np.abs(logits).max()
    assert same >= len(names) / 2


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


@pytest.mark.skipif(emulated_gpu.REAL_DRIVER is not None, reason="of the emulation")
@pytest.mark.parametrize("later", [False, True], ids=["at load", "taken later"])
def test_rows_wait_for_the_memory_of_the_gpu(later: bool) -> None:
    """It is less than max_cache_bytes, and not enough for all rows up to their limit."""
    library = emulated_gpu.emulated_gpu()
    if not later:
        emulated_gpu.limit_memory(library, 13000 << 10)
    try:
        translator = _core.Translator(
            str(tiny_engine_model("marian")),
            {"inter_threads": "1", "calls": "refuse", "compute_type": "float32"},
        )
        if later:  # other models or programs have taken the rest
            emulated_gpu.limit_memory(library, 13000 << 10)
        assert_rows_wait(translator)
        if not later:
            wide = {"beam_size": 32, "max_decoding_length": 190}
            complaint = "its keys and values may take .* bytes, and the GPU has"
            with pytest.raises(_core.Error, match=complaint):
                translator.translate([[20, 21, END]], None, wide)
            [[again]] = translator.translate([[20, 21, END]], None, GREEDY)
            assert again["ids"]
    finally:
        emulated_gpu.limit_memory(library, 1 << 33)


@pytest.mark.skipif(emulated_gpu.REAL_DRIVER is not None, reason="of the emulation")
def test_a_row_that_finds_no_memory_is_told_to_come_again() -> None:
    """Others have taken all of it since the load, and calls may not take the row over."""
    library = emulated_gpu.emulated_gpu()
    parameters = {"inter_threads": "1", "calls": "refuse", "compute_type": "float32"}
    translator = _core.Translator(str(tiny_engine_model("nllb")), {**parameters, "proof": "off"})
    row, prefix = [20, 21, END], [EngineTruth(tiny_engine_model("nllb")).languages[0]]
    emulated_gpu.limit_memory(library, 1)
    try:
        with pytest.raises(_core.Error, match="a decode loop lacks memory for a while") as error:
            translator.translate([row], [prefix], GREEDY)
    finally:
        emulated_gpu.limit_memory(library, 1 << 33)

    assert error.value.code == "unavailable"
    [[again]] = translator.translate([row], [prefix], GREEDY)
    assert again["finish_reason"]


def assert_rows_wait(translator: Any) -> None:
    """Rows with a large limit do not join all at once, and each of them ends."""

    def encodes() -> int:
        return sum(loop["encodes"] for loop in translator.loops)

    rows = [[20 + i, 21, END] for i in range(16)]
    firsts = translator.translate(rows, None, {"beam_size": 1, "max_decoding_length": 1})
    before = encodes()
    ends = sorted({one["ids"][0] for [one] in firsts})  # so that they take few steps

    options = {"beam_size": 1, "max_decoding_length": 190, "end_token": json.dumps(ends)}
    answers = translator.translate(rows, None, options)

    assert [one["finish_reason"] for [one] in answers] == ["stop"] * len(rows)
    assert encodes() - before > 1


# CTranslate2 finds no CUDA that it knows in the emulated driver, as it may in an old one.
WITHOUT_CALLS = """
import json, sys
from ct2_triton import _core

directory, opened = sys.argv[1], sys.argv[2] == "opened"
row, options = json.loads(sys.argv[3]), json.loads(sys.argv[4])
calls = _core.Translator(directory, {"decoding": "calls"}) if opened else None
parameters = {"decoding": "loop", "calls": "refuse", "proof": "off", "compute_type": "float32"}
gpu = _core.Translator(directory, parameters, gpu=True)
[[answer]] = gpu.translate([row], None, options)
print(json.dumps(answer["ids"]))
"""


def ids_without_calls(
    directory: Path, opened: str, row: Row, options: dict[str, Any], folder: Path
) -> Row:
    """What a loop on a GPU gives that only the loop can use, in a process of its own."""
    (folder / "libcuda.so.1").symlink_to(emulated_gpu.emulated_gpu())
    environment = {**os.environ, **emulated_gpu.server_environment()}
    environment["LD_LIBRARY_PATH"] += f":{folder}"
    arguments = [str(directory), opened, json.dumps(row), json.dumps(options)]
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_CALLS, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return list(json.loads(result.stdout))


@pytest.mark.skipif(_core.gpu_count() > 0, reason="CTranslate2 finds a GPU here")
@pytest.mark.parametrize("opened", ["opened", "never opened"])
def test_loops_run_on_a_gpu_that_ctranslate2_cannot_use(opened: str, tmp_path: Path) -> None:
    row, options = [20, 21, END], {"beam_size": 1, "max_decoding_length": 4}
    directory = tiny_engine_model("marian")

    found = ids_without_calls(directory, opened, row, options, tmp_path)

    assert found == decode_alone(new_loop(directory), row, [], options)["ids"]


@pytest.mark.skipif(_core.gpu_count() > 0, reason="CTranslate2 finds a GPU here")
def test_a_loop_draws_of_more_tokens_than_calls_can(tmp_path: Path) -> None:
    """CTranslate2's kernel on a GPU takes 4,096, which binds no model that refuses calls."""
    directory = tiny_engine_model("nllb", TinyOptions(vocab_size=6000, layers=1))
    row, drawn = [20, 21, END], {"sampling_topk": 5000, "sampling_seed": 3}
    options = {"beam_size": 1, "max_decoding_length": 4, **drawn}

    found = ids_without_calls(directory, "never opened", row, options, tmp_path)

    assert found == decode_alone(new_loop(directory), row, [], options)["ids"]
