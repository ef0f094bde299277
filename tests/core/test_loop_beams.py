# SPDX-License-Identifier: Apache-2.0
"""Beam searches in the decode loop: CTranslate2's rules one by one, memory, failures, turns.

Random rows of all kinds of models: test_loop_matrix.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import END, EngineTruth, Row, ragged_rows
from core.loop_helpers import GREEDY, new_loop, run_to_end
from ct2_triton import _core
from support.fewer import fewer

BEAMS = {"beam_size": 4, "max_decoding_length": 24, "return_scores": True, "num_hypotheses": 4}
MANY_ENDS = list(range(4, 700))
SCORE = 2e-5


def parameters(options: dict[str, Any]) -> dict[str, Any]:
    return {k: json.dumps(v) if isinstance(v, list) else v for k, v in options.items()}


def found(loop: Any, source: Row, prefix: Row, options: dict[str, Any]) -> list[Any]:
    [name] = loop.admit([(source, prefix, parameters(options))])
    hypotheses = run_to_end(loop)[name]["hypotheses"]
    return [(h["ids"], pytest.approx(h["score"], rel=SCORE, abs=SCORE)) for h in hypotheses]


def expected(truth: EngineTruth, source: Row, prefix: Row, options: dict[str, Any]) -> list[Any]:
    if "suppress_sequences" in options:
        sequences = [truth.tokens(ids) for ids in options["suppress_sequences"]]
        options = {**options, "suppress_sequences": sequences}
    result = truth.result(source, prefix, **options)
    ids = [[truth.ids[token] for token in tokens] for tokens in result.hypotheses]
    return list(zip(ids, result.scores or [0.0] * len(ids), strict=True))


# One rule each; see BeamSearch.
RULES: list[dict[str, Any]] = [
    {},
    {"beam_size": 2, "num_hypotheses": 1},
    {"beam_size": 9, "num_hypotheses": 9},
    {"return_scores": False},
    # An ended beam is replaced; one step may end several.
    {"end_token": MANY_ENDS},
    {"end_token": MANY_ENDS, "min_decoding_length": 0},
    {"end_token": MANY_ENDS, "min_decoding_length": 6, "return_end_token": True},
    # Nothing is left to step in: a beam goes on behind its end.
    {"end_token": list(range(4, 1100)), "patience": 5, "num_hypotheses": 20},
    {"end_token": list(range(2, 1100)), "patience": 2.5, "num_hypotheses": 10},
    # The end, by patience.
    {"patience": 0.5, "num_hypotheses": 2, "end_token": MANY_ENDS},
    {"patience": 0.6, "num_hypotheses": 2, "end_token": MANY_ENDS},  # round(2.4)
    {"patience": 2, "num_hypotheses": 8, "end_token": MANY_ENDS},
    # Without a length penalty: by the top beam and num_hypotheses, whatever the patience.
    {"length_penalty": 0, "end_token": MANY_ENDS},
    {"length_penalty": 0, "end_token": MANY_ENDS, "num_hypotheses": 1},
    {"length_penalty": 0, "end_token": MANY_ENDS, "num_hypotheses": 1, "patience": 4},
    {"length_penalty": 0, "end_token": MANY_ENDS, "num_hypotheses": 12, "patience": 3},
    # The end token and forced tokens count in the length.
    {"length_penalty": 2.5, "end_token": MANY_ENDS},
    {"length_penalty": -1, "end_token": MANY_ENDS},
    # Options of a token, for each beam by its own tokens.
    {"repetition_penalty": 1.6},
    {"no_repeat_ngram_size": 1, "end_token": MANY_ENDS},
    {"no_repeat_ngram_size": 2},
    {"suppress_sequences": [[5], [6], [7, 8], [END]]},
    {"disable_unk": True, "repetition_penalty": 0.8},
    # A bias towards the prefix; the flags of beams that diverged stay with their ranks.
    {"prefix_bias_beta": 0.2},
    {"prefix_bias_beta": 0.9, "length_penalty": 0, "end_token": MANY_ENDS},
    {"prefix_bias_beta": 0.99, "beam_size": 8, "num_hypotheses": 8, "end_token": MANY_ENDS},
    {"prefix_bias_beta": 0.5, "beam_size": 1, "num_hypotheses": 1},
    {"prefix_bias_beta": 0.7, "beam_size": 1, "patience": 3, "num_hypotheses": 3},
    {"prefix_bias_beta": 0.6, "min_decoding_length": 5, "repetition_penalty": 1.5},
    {"prefix_bias_beta": 0.6, "suppress_sequences": [[5], [6, 7]], "max_decoding_length": 2},
    # Alternatives: the first tokens see nothing of the prefix, nor do the searches behind them.
    {"return_alternatives": True, "beam_size": 1},
    {"return_alternatives": True},
    {"return_alternatives": True, "num_hypotheses": 20, "end_token": MANY_ENDS},
    {"return_alternatives": True, "beam_size": 1, "end_token": MANY_ENDS, "length_penalty": 0.4},
    {"return_alternatives": True, "patience": 2, "min_decoding_length": 6, "length_penalty": 0},
    {"return_alternatives": True, "repetition_penalty": 1.7, "no_repeat_ngram_size": 2},
    {"return_alternatives": True, "beam_size": 1, "suppress_sequences": [[5], [6, 7], [8, 9]]},
    {"return_alternatives": True, "max_decoding_length": 2, "num_hypotheses": 1},
    {"return_alternatives": True, "max_decoding_length": 3, "return_scores": False},
    # All beams end at the limit, ended or not.
    {"max_decoding_length": 1},
    {"max_decoding_length": 2, "end_token": MANY_ENDS},
    {"max_decoding_length": 3, "num_hypotheses": 8, "patience": 2},
]


@pytest.mark.parametrize("rows", [6, 24], ids=["few", "many"])
@pytest.mark.parametrize("options", RULES, ids=lambda options: str(options)[-70:])
def test_rule(loop: Any, truth: EngineTruth, options: dict[str, Any], rows: int) -> None:
    options = {**BEAMS, **options}
    sources, prefixes = ragged_rows(truth, fewer(rows), seed=5)
    for source, prefix in zip(sources, prefixes, strict=True):
        for forced in (prefix, [*prefix, *source[1:4], *source[1:3]], [END, *prefix, END], []):
            assert found(loop, source, forced, options) == expected(truth, source, forced, options)


def test_second_best_ends_are_pushed_back_behind_forced_tokens(
    loop: Any, truth: EngineTruth
) -> None:
    """Only there: without forced tokens several hypotheses of a row are one end token."""
    options = {**BEAMS, "end_token": list(range(3, len(truth.vocabulary)))}
    options |= {"return_end_token": True, "min_decoding_length": 0}
    for source in ragged_rows(truth, 8, seed=7)[0]:
        free = found(loop, source, [], options)
        forced = found(loop, source, [truth.languages[0]], options)
        assert free == expected(truth, source, [], options)
        assert forced == expected(truth, source, [truth.languages[0]], options)
        assert sum(len(ids) == 1 for ids, _ in free) > 1
        assert sum(len(ids) == 2 for ids, _ in forced) <= 1


@pytest.mark.parametrize("kept", [0, 1, 3, 5, 9])
def test_ties_come_in_the_order_of_ctranslate2(loop: Any, truth: EngineTruth, kept: int) -> None:
    """Of 8 candidates all but a few are suppressed, and so have one score."""
    tokens = range(3, len(truth.vocabulary))
    banned = [[i] for i in tokens if i % 97 or i // 97 > kept]
    options = {**BEAMS, "suppress_sequences": banned, "max_decoding_length": 4}
    sources, prefixes = ragged_rows(truth, 6, seed=8)
    for source, prefix in zip(sources, prefixes, strict=True):
        answer = found(loop, source, prefix, options)
        assert answer == expected(truth, source, prefix, options)


@pytest.mark.parametrize("beyond", [-1, 0, 1, 7])
@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize(
    "kind",
    [
        {"length_penalty": 0},
        {"length_penalty": 1},
        {"prefix_bias_beta": 0.9},
        {"return_alternatives": True},
        {"return_alternatives": True, "beam_size": 1},
    ],
    ids=str,
)
def test_a_prefix_at_the_limit_is_cut_there(
    loop: Any, truth: EngineTruth, beyond: int, ends: bool, kind: dict[str, Any]
) -> None:
    """Every beam is that prefix then; all but one have a score of -1e10."""
    limit = 6
    prefix = list(range(10, 10 + limit + beyond))
    if ends:
        prefix[-1] = END
    options = {**BEAMS, "max_decoding_length": limit, **kind}
    source = [20, 21, 22, END]
    assert found(loop, source, prefix, options) == expected(truth, source, prefix, options)


def test_a_prefix_of_several_steps() -> None:
    from support.tiny import tiny_engine_model

    directory = tiny_engine_model("t5")
    truth, loop = EngineTruth(directory), new_loop(directory)
    prefix = [10 + i * 7 % 900 for i in range(300)]
    options = {**BEAMS, "max_decoding_length": 312}
    assert found(loop, [20, 21, 22], prefix, options) == expected(
        truth, [20, 21, 22], prefix, options
    )


@pytest.mark.parametrize("family", ["marian", "t5"])
@pytest.mark.parametrize("tokens", [1, 2, 3, 20, 150])
def test_alternatives_behind_a_prefix_are_those_of_ctranslate2(family: str, tokens: int) -> None:
    """It runs such a prefix as a prompt: Marian's embeddings are zero, T5's distances greater."""
    from support.tiny import tiny_engine_model

    directory = tiny_engine_model(family)
    truth, loop = EngineTruth(directory), new_loop(directory)
    prefix = [10 + i * 7 % 900 for i in range(tokens)]
    for beams in (1, 3):
        options = {**BEAMS, "max_decoding_length": tokens + 8, "return_alternatives": True}
        options["beam_size"] = beams
        answer = found(loop, [20, 21, 22], prefix, options)
        assert answer == expected(truth, [20, 21, 22], prefix, options)
        assert len({ids[tokens] for ids, _ in answer}) == 4


def test_searches_that_choose_among_too_few_are_refused(loop: Any, truth: EngineTruth) -> None:
    beams = len(truth.vocabulary) // 2 + 1
    with pytest.raises(_core.Error, match="beam_size"):
        found(loop, [5, 6], [], {**BEAMS, "beam_size": beams})
    assert found(loop, [5, 6], [], BEAMS)


def test_the_cache_of_a_search_is_what_was_said(engine_model: Path) -> None:
    """Forced tokens are there once; a beam has room for what it adds to them."""
    model = _core.LoopModel(str(engine_model), {"compute_type": "float32"})
    loop = _core.DecodeLoop(model)
    row = ([5, 6, 7], [10, 11, 12], {**BEAMS, "max_decoding_length": 50})
    own, source = model.cache_bytes(*row)
    least = 4 * 2 * 2 * 64 * (4 + 4 * 46)  # 2 layers, keys and values of 64 numbers
    assert least <= own <= least * 9 / 8 + 4096
    [name] = loop.admit([row])
    while loop.running:
        assert loop.cache_bytes == own + source
        loop.step()
    assert loop.cache_bytes == 0
    [name] = loop.admit([row])
    loop.step()
    loop.step()
    loop.remove(name)
    assert (loop.running, loop.cache_bytes) == (0, 0)


@pytest.mark.parametrize("after", [0, 1, 4, 9])
@pytest.mark.parametrize("product", ["layer_1/ffn/linear_1", "projection"])
def test_a_failure_of_the_library_leaves_the_beams_as_they_were(
    engine_model: Path, truth: EngineTruth, product: str, after: int
) -> None:
    model = _core.LoopModel(
        str(engine_model), {"compute_type": "float32"}, damaged=f"decoder/{product}"
    )
    loop = _core.DecodeLoop(model)
    sources, prefixes = ragged_rows(truth, 3, seed=9)
    rows = [(s, p, BEAMS) for s, p in zip(sources, prefixes, strict=True)]
    names = loop.admit(rows)
    model.fail_after(after)
    answers: dict[int, Any] = {}
    failures = 0
    while loop.running:
        try:
            answers.update(loop.step()[1])
        except _core.Error:
            failures += 1
            model.fail_after(-1)
    assert failures == 1
    for name, source, prefix in zip(names, sources, prefixes, strict=True):
        ids = [h["ids"] for h in answers[name]["hypotheses"]]
        assert ids == truth.hypotheses(source, prefix, **BEAMS)


def test_a_greedy_row_is_not_slowed_down_without_bound(
    engine_model: Path, truth: EngineTruth
) -> None:
    """Beside a search of 32 beams: it gets a token at every step, the search at one of some."""
    loop = new_loop(engine_model)
    wide = {**BEAMS, "beam_size": 32, "min_decoding_length": 100, "max_decoding_length": 100}
    greedy = {**GREEDY, "min_decoding_length": 60, "max_decoding_length": 60}
    [heavy] = loop.admit([([5, 6, 7, END], [], wide)])
    for _ in range(20):
        loop.step()
    assert loop.counters["step_rows"] == 1 + 19 * 32  # alone it takes part in every step

    before = loop.counters["step_rows"]
    [light] = loop.admit([([8, 9, 10, END], [], greedy)])
    answers: dict[int, Any] = {}
    steps = 0
    while light not in answers:
        steps += 1
        answers.update(loop.step()[1])
    assert steps == 60
    turns = (loop.counters["step_rows"] - before - steps) / 32
    assert 60 / 10 < turns < 60 / 3
    answers.update(run_to_end(loop))
    assert [answers[light]["ids"]] == truth.hypotheses([8, 9, 10, END], [], **greedy)
    ids = [h["ids"] for h in answers[heavy]["hypotheses"]]
    assert ids == truth.hypotheses([5, 6, 7, END], [], **wide)


@pytest.mark.parametrize(
    ("beams", "taken"),
    [
        (4, [1 + 4] * 8),
        (19, [1, 1, 1 + 19, 1, 1, 1 + 19, 1, 1]),  # a row of its tenth token costs 1.09
        (32, [1, 1, 1, 1, 1 + 32, 1, 1, 1]),
    ],
)
def test_a_greedy_row_that_comes_is_served_first(
    engine_model: Path, beams: int, taken: list[int]
) -> None:
    """The step before was the search's alone: it waits until the greedy row has had as much."""
    loop = new_loop(engine_model)
    options = {"min_decoding_length": 50, "max_decoding_length": 50}
    loop.admit([([5, 6, 7, END], [], {**BEAMS, "beam_size": beams, **options})])
    for _ in range(10):
        loop.step()
    loop.admit([([8, 9, 10, END], [], {**GREEDY, **options})])
    rows = []
    for _ in range(8):
        before = loop.counters["step_rows"]
        loop.step()
        rows.append(loop.counters["step_rows"] - before)
    assert rows == taken
    assert len(run_to_end(loop)) == 2


def test_small_beams_take_turns_beside_greedy_rows(engine_model: Path, truth: EngineTruth) -> None:
    """8 of 4 beams would take most of a step; by themselves they do not wait."""
    loop = new_loop(engine_model)
    lengths = {"min_decoding_length": 30, "max_decoding_length": 30}
    sources = [[5, 6, i, END] for i in range(20, 28)]
    names = loop.admit([(source, [], {**BEAMS, **lengths}) for source in sources])
    for _ in range(4):
        loop.step()
    assert loop.counters["step_rows"] == 8 + 3 * 8 * 4
    [light] = loop.admit([([8, 9, 10, END], [], {**GREEDY, **lengths})])
    for _ in range(29):
        before = loop.counters["step_rows"]
        loop.step()
        assert loop.counters["step_rows"] - before <= 1 + 3 * 4
    answers = run_to_end(loop)
    assert len(answers[light]["ids"]) == 30
    for name, source in zip(names, sources, strict=True):
        ids = [h["ids"] for h in answers[name]["hypotheses"]]
        assert ids == truth.hypotheses(source, [], **{**BEAMS, **lengths})


def test_heavy_searches_take_turns(engine_model: Path, truth: EngineTruth) -> None:
    loop = new_loop(engine_model)
    wide = {**BEAMS, "beam_size": 24, "min_decoding_length": 10, "max_decoding_length": 10}
    greedy = {**GREEDY, "min_decoding_length": 120, "max_decoding_length": 120}
    sources = [[5, 6, i, END] for i in (20, 30, 40)]
    loop.admit([([8, 9, 10, END], [], greedy)])
    names = loop.admit([(source, [], wide) for source in sources])
    ended: dict[int, int] = {}
    answers: dict[int, Any] = {}
    for step in range(119):
        for name, answer in loop.step()[1]:
            ended[name], answers[name] = step, answer
    # None waits for the end of another one.
    assert sorted(ended) == names
    assert max(ended.values()) - min(ended.values()) < 12
    run_to_end(loop)
    for name, source in zip(names, sources, strict=True):
        ids = [h["ids"] for h in answers[name]["hypotheses"]]
        assert ids == truth.hypotheses(source, [], **wide)


def test_beams_count_as_rows_of_a_step(engine_model: Path, truth: EngineTruth) -> None:
    config = {"decoding": "loop", "inter_threads": "1", "max_batch_rows": "8"}
    translator = _core.Translator(str(engine_model), {**config, "compute_type": "float32"})
    sources, prefixes = ragged_rows(truth, 12, seed=6)
    answers = translator.translate(sources, prefixes, BEAMS)
    for answer, source, prefix in zip(answers, sources, prefixes, strict=True):
        assert [h["ids"] for h in answer] == truth.hypotheses(source, prefix, **BEAMS)
    [loop] = translator.loops
    assert loop["encoded_rows"] == 12
    assert loop["steps"] < loop["step_rows"] <= 8 * loop["steps"]


def test_alternatives_of_very_many_beams_are_left_to_calls(engine_model: Path) -> None:
    """They would all run at each step, before everybody else, and keep memory for their logits."""
    translator = _core.Translator(str(engine_model), {"compute_type": "float32"})
    row = ([[300, 50, 60, END]], [[301]])
    options = {"beam_size": 16, "return_alternatives": True, "max_decoding_length": 4}
    for hypotheses in (8, 9):
        translator.translate(*row, {**options, "num_hypotheses": hypotheses})
        assert sum(loop["encoded_rows"] for loop in translator.loops) == 1
