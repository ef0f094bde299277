# SPDX-License-Identifier: Apache-2.0
"""Sampling in the decode loop: seeds, distributions, several draws, draws in beams.

All seeds are fixed, so that each test draws the same numbers whenever it runs.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest

from core.engine_truth import END, EngineTruth, Row, ragged_rows
from core.loop_helpers import GREEDY, new_loop, run_to_end
from ct2_triton import _core

SAMPLED = {**GREEDY, "sampling_topk": 0, "sampling_temperature": 1.5}
WIDE = {"beam_size": 3, "num_hypotheses": 3, "max_decoding_length": 16, "sampling_topk": 40}
SIGMAS = 4.5


def decode(loop: Any, rows: list[tuple[Row, Row, dict[str, Any]]]) -> list[Any]:
    """The hypotheses of each row; all join at once."""
    names = loop.admit(rows)
    answers = run_to_end(loop)
    return [answers[name]["hypotheses"] for name in names]


def ids(hypotheses: Any) -> list[Row]:
    return [hypothesis["ids"] for hypothesis in hypotheses]


KINDS: list[dict[str, Any]] = [
    SAMPLED,
    {**SAMPLED, "sampling_topk": 12, "sampling_topp": 0.8, "return_scores": True},
    {**SAMPLED, "num_hypotheses": 5, "return_scores": True},
    {**SAMPLED, "num_hypotheses": 3, "repetition_penalty": 1.4, "no_repeat_ngram_size": 2},
    {**WIDE, "return_scores": True},
    {**WIDE, "sampling_topk": 0, "sampling_topp": 0.9, "length_penalty": 0},
    {**WIDE, "return_alternatives": True, "sampling_temperature": 1.5},
    {**SAMPLED, "num_hypotheses": 3, "return_alternatives": True, "return_scores": True},
]


@pytest.mark.parametrize("compute_type", ["float32", "int8"])
def test_a_seed_gives_the_same_answer_in_any_company(engine_model: Path, compute_type: str) -> None:
    truth = EngineTruth(engine_model)
    loop = new_loop(engine_model, compute_type)
    sources, prefixes = ragged_rows(truth, 36, seed=3)
    rows = [
        (source, prefix, {**KINDS[i % len(KINDS)], "sampling_seed": i % 4})
        for i, (source, prefix) in enumerate(zip(sources, prefixes, strict=True))
    ]
    alone = [decode(loop, [row])[0] for row in rows]

    for order_seed in range(3):
        rng = random.Random(order_seed)
        waiting = [*range(len(rows)), *[-1] * 12]
        rng.shuffle(waiting)
        names: dict[int, int] = {}
        found: dict[int, Any] = {}
        while waiting or loop.running:
            joining = [waiting.pop() for _ in range(min(len(waiting), rng.randint(0, 5)))]
            others = [(sources[0], prefixes[0], rng.choice([GREEDY, SAMPLED]))]
            admitted = loop.admit([rows[i] if i >= 0 else others[0] for i in joining])
            names.update(zip(admitted, joining, strict=True))
            found |= {names[name]: answer for name, answer in loop.step()[1]}
        for i, answer in enumerate(alone):
            assert ids(found[i]["hypotheses"]) == ids(answer)
            for a, b in zip(found[i]["hypotheses"], answer, strict=True):
                assert a["score"] == pytest.approx(b["score"], rel=1e-4, abs=1e-4)
    assert loop.cache_bytes == 0


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_other_seeds_and_other_rows_draw_otherwise(loop: Any, options: dict[str, Any]) -> None:
    source = [20, 21, 22, 23, 24, END]
    seeds = [(source, [], {**options, "sampling_seed": seed}) for seed in range(12)]
    assert len({str(ids(answer)) for answer in decode(loop, seeds)}) > 6
    again = [(source, [], {**options, "sampling_seed": 5})] * 3
    assert len({str(ids(answer)) for answer in decode(loop, again)}) == 1


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_without_a_seed_each_row_draws_anew(loop: Any, options: dict[str, Any]) -> None:
    """Of 24 rows with some tokens each, it is past chance that all are equal."""
    for given in ({}, {"sampling_seed": -1}):
        answers = decode(loop, [([20, 21, 22, 23, 24, END], [], {**options, **given})] * 24)
        assert len({str(ids(answer)) for answer in answers}) > 1


@pytest.mark.parametrize("options", [GREEDY, {**WIDE, "sampling_topk": 1}], ids=str)
@pytest.mark.parametrize("seed", [{}, {"sampling_seed": 3}], ids=str)
def test_temperature_0_takes_the_best(
    loop: Any, truth: EngineTruth, options: dict[str, Any], seed: dict[str, int]
) -> None:
    sources, prefixes = ragged_rows(truth, 8, seed=4)
    for source, prefix in zip(sources, prefixes, strict=True):
        cold = {**options, **seed, "sampling_topk": 30, "sampling_temperature": 0}
        [answer] = decode(loop, [(source, prefix, cold)])
        assert ids(answer) == truth.hypotheses(source, prefix, **options)
    several = {**GREEDY, **seed, "sampling_temperature": 0, "sampling_topk": 0, "num_hypotheses": 3}
    [answer] = decode(loop, [(sources[0], prefixes[0], several)])
    assert ids(answer) == truth.hypotheses(sources[0], prefixes[0], **GREEDY) * 3


# What a token is drawn from, made in another way: of CTranslate2's logits, with NumPy.
def probabilities(
    truth: EngineTruth, source: Row, prefix: Row, options: dict[str, Any]
) -> dict[int, float]:
    """Of the token behind the prefix."""
    rules = {k: v for k, v in options.items() if not k.startswith("sampling_")}
    result = truth.result(
        source, prefix, **rules | {"max_decoding_length": len(prefix) + 1},
        return_logits_vocab=True,
    )  # fmt: skip
    logits = np.asarray(result.logits[0][len(prefix)], dtype=np.float64).reshape(-1)
    order = np.argsort(-logits, kind="stable")[: options.get("sampling_topk") or None]
    weights = np.exp((logits[order] - logits[order[0]]) / options.get("sampling_temperature", 1.0))
    weights /= weights.sum()
    kept = np.cumsum(weights) - weights < options.get("sampling_topp", 1.0)
    weights = np.where(kept, weights, 0) / weights[kept].sum()
    return {int(i): float(w) for i, w in zip(order, weights, strict=True) if w > 0}


def assert_drawn_from(found: Counter[int], expected: dict[int, float]) -> None:
    """Each token as often as it should be, within what chance explains; no other one at all."""
    draws = found.total()
    assert set(found) <= set(expected)
    for token, share in expected.items():
        allowed = SIGMAS * (draws * share * (1 - share)) ** 0.5 + 2
        assert abs(found[token] - draws * share) < allowed, (token, found[token], draws * share)


DISTRIBUTIONS: list[dict[str, Any]] = [
    {"sampling_topk": 4, "sampling_temperature": 2.0},
    {"sampling_topk": 0},
    {"sampling_topk": 0, "sampling_temperature": 3.0, "sampling_topp": 0.6},
    {"sampling_topk": 30, "sampling_temperature": 4.0, "sampling_topp": 0.7},
    {"sampling_topk": 300, "sampling_temperature": 5.0},
    {"sampling_topk": 6, "sampling_temperature": 2.0, "return_scores": True},
    {"sampling_topk": 0, "sampling_temperature": 2.0, "disable_unk": True},
]


@pytest.mark.parametrize("options", DISTRIBUTIONS, ids=str)
def test_a_token_is_drawn_from_the_models_distribution(
    loop: Any, truth: EngineTruth, options: dict[str, Any]
) -> None:
    source, prefix = [30, 31, 32, 33, END], [truth.languages[0]]
    options = {**GREEDY, **options, "return_end_token": True, "min_decoding_length": 0}
    wanted = {**options, "max_decoding_length": 2}
    rows = [(source, prefix, {**wanted, "sampling_seed": seed}) for seed in range(1500)]
    found = Counter(ids(answer)[0][1] for answer in decode(loop, rows))
    assert_drawn_from(found, probabilities(truth, source, prefix, options))


@pytest.mark.parametrize("options", [DISTRIBUTIONS[0], DISTRIBUTIONS[5]], ids=str)
def test_so_is_the_next_token_whatever_was_drawn_before(
    loop: Any, truth: EngineTruth, options: dict[str, Any]
) -> None:
    source, prefix = [30, 31, 32, 33, END], [truth.languages[0]]
    options = {**GREEDY, **options, "return_end_token": True, "min_decoding_length": 0}
    wanted = {**options, "max_decoding_length": 3}
    rows = [(source, prefix, {**wanted, "sampling_seed": seed}) for seed in range(1500)]
    answers = [ids(answer)[0] for answer in decode(loop, rows)]
    token = Counter(answer[1] for answer in answers if answer[1] != END).most_common(1)[0][0]
    second = Counter(answer[2] for answer in answers if answer[1] == token)
    assert second.total() > 200
    assert_drawn_from(second, probabilities(truth, source, [*prefix, token], options))


def test_several_hypotheses_are_as_many_draws(loop: Any, truth: EngineTruth) -> None:
    source, prefix = [30, 31, 32, 33, END], [truth.languages[0]]
    options = {**GREEDY, "sampling_topk": 5, "sampling_temperature": 2.0, "return_end_token": True}
    wanted = {**options, "num_hypotheses": 10, "max_decoding_length": 2}
    rows = [(source, prefix, {**wanted, "sampling_seed": seed}) for seed in range(150)]
    drawn = Counter(h[1] for answer in decode(loop, rows) for h in ids(answer))
    assert drawn.total() == 1500
    assert_drawn_from(drawn, probabilities(truth, source, prefix, options))


@pytest.mark.parametrize("length_penalty", [0, 1, 1.7])
def test_several_draws_end_by_themselves_and_the_best_comes_first(
    loop: Any, truth: EngineTruth, length_penalty: float
) -> None:
    """Scores are those that CTranslate2 gives to the same tokens, whatever the temperature."""
    options = {**SAMPLED, "sampling_temperature": 3.0, "num_hypotheses": 8, "sampling_seed": 9}
    options |= {"return_end_token": True, "length_penalty": length_penalty}
    options |= {"end_token": str(list(range(2, 300)))}
    sources, prefixes = ragged_rows(truth, 12, seed=5)
    lengths = set()
    for source, prefix in zip(sources, prefixes, strict=True):
        [answer] = decode(loop, [(source, prefix, {**options, "return_scores": True})])
        assert ids(decode(loop, [(source, prefix, options)])[0]) == ids(answer)
        scores = [hypothesis["score"] for hypothesis in answer]
        assert scores == sorted(scores, reverse=True)
        lengths |= {len(tokens) for tokens in ids(answer)}
        for hypothesis in answer[::4]:
            assert hypothesis["score"] == pytest.approx(
                score_of(truth, source, prefix, hypothesis["ids"], length_penalty), rel=1e-3
            )
    assert len(lengths) > 4


def score_of(
    truth: EngineTruth, source: Row, prefix: Row, tokens: Row, length_penalty: float
) -> float:
    """The sum of log-probabilities behind the prefix, made of CTranslate2's logits."""
    total = 0.0
    options = {"beam_size": 1, "end_token": [], "return_logits_vocab": True}
    for place in range(len(prefix), len(tokens)):
        result = truth.result(
            source, tokens[:place], max_decoding_length=place + 1, min_decoding_length=0, **options
        )
        logits = np.asarray(result.logits[0][place], dtype=np.float64).reshape(-1)
        if place < 1:  # the shortest answer has one token: no end before
            logits[2:300] = -np.inf
        total += logits[tokens[place]] - logits.max()
        total -= np.log(np.exp(logits - logits.max()).sum())
    return total / len(tokens) ** length_penalty


def gumbel_share(
    truth: EngineTruth, source: Row, prefix: Row, pair: frozenset[int], options: dict[str, Any]
) -> float:
    """How often Gumbel noise, in place of CTranslate2's, would draw a pair: one of it, then the
    other of those that are left.
    """
    asked = {"max_decoding_length": 2, "end_token": [], "return_logits_vocab": True}
    result = truth.result(source, prefix, beam_size=1, min_decoding_length=2, **asked)
    logits = np.asarray(result.logits[0][1], dtype=np.float64).reshape(-1)
    kept = np.argsort(-logits)[: options["sampling_topk"]]
    weights = np.exp((logits[kept] - logits.max()) / options["sampling_temperature"])
    shares = dict(zip(kept.tolist(), (weights / weights.sum()).tolist(), strict=True))
    one, other = (shares[token] for token in pair)
    return one * other / (1 - one) + other * one / (1 - other)


def test_beams_draw_without_replacement_as_ctranslate2(
    engine_model: Path, loop: Any, truth: EngineTruth
) -> None:
    """Pairs of first tokens, as often as in CTranslate2."""
    source, prefix = [30, 31, 32, 33, END], [truth.languages[0]]
    options = {"beam_size": 2, "num_hypotheses": 2, "sampling_topk": 5, "max_decoding_length": 2}
    options |= {"sampling_temperature": 0.3, "min_decoding_length": 2}
    draws = 2000
    rows = [(source, prefix, {**options, "sampling_seed": seed}) for seed in range(draws)]
    found = Counter(frozenset(h[1] for h in ids(answer)) for answer in decode(loop, rows))
    assert {len(pair) for pair in found} == {2}

    ctranslate2.set_random_seed(7)
    seeded = EngineTruth(engine_model).translator
    results = seeded.translate_batch(
        [truth.tokens(source)] * draws, target_prefix=[truth.tokens(prefix)] * draws, **options
    )
    expected = Counter(frozenset(truth.ids[h[1]] for h in result.hypotheses) for result in results)
    best, drawn = expected.most_common(1)[0]
    assert drawn > 1.15 * draws * gumbel_share(truth, source, prefix, best, options)
    assert set(found) == set(expected)
    for pair in expected:
        share = (found[pair] + expected[pair]) / (2 * draws)
        allowed = SIGMAS * (2 * draws * share * (1 - share)) ** 0.5 + 2
        assert abs(found[pair] - expected[pair]) < allowed


@pytest.mark.parametrize("beyond", [-1, 0, 1, 5])
@pytest.mark.parametrize("kind", KINDS[:3:2] + KINDS[4:5], ids=str)
def test_a_prefix_at_the_limit_is_cut_there(
    loop: Any, truth: EngineTruth, kind: dict[str, Any], beyond: int
) -> None:
    prefix = list(range(10, 16 + beyond))
    options = {**kind, "max_decoding_length": 6, "return_scores": True, "min_decoding_length": 6}
    [answer] = decode(loop, [([20, 21, END], prefix, options)])
    expected = truth.result([20, 21, END], prefix, **options)
    assert [tokens[:5] for tokens in ids(answer)] == [prefix[:5]] * options.get("num_hypotheses", 1)
    if beyond >= 0:
        assert [h["score"] for h in answer] == pytest.approx(expected.scores)


@pytest.mark.parametrize("after", [0, 2, 9])
@pytest.mark.parametrize("kind", KINDS[:5], ids=str)
def test_a_step_that_fails_is_drawn_again_alike(
    engine_model: Path, loop: Any, kind: dict[str, Any], after: int
) -> None:
    row = ([20, 21, 22, END], [], {**kind, "sampling_seed": 1})
    model = _core.LoopModel(
        str(engine_model), {"compute_type": "float32"}, damaged="decoder/projection"
    )
    failing = _core.DecodeLoop(model)
    [name] = failing.admit([row])
    model.fail_after(after)
    answers: dict[int, Any] = {}
    failures = 0
    while failing.running:
        try:
            answers.update(failing.step()[1])
        except _core.Error:
            failures += 1
            model.fail_after(-1)
    [expected] = decode(loop, [row])
    assert failures <= 1
    assert ids(answers[name]["hypotheses"]) == ids(expected)


SEEDED = {**SAMPLED, "sampling_seed": 7}


def test_a_seeded_row_is_not_drawn_otherwise_where_its_loop_fails(
    engine_model: Path, loop: Any
) -> None:
    """Rows without a seed run again, in calls; these fail, or have the answer of their seed."""
    sources = [[20 + i, 40, 41, END] for i in range(12)]
    [result] = _core.run_failing_loops(str(engine_model), [sources], SEEDED, failing_steps={1})
    assert set(result["times_answered"]) == {1}
    expected = [ids(answer)[0] for answer in decode(loop, [(row, [], SEEDED) for row in sources])]
    failed = [not answer for answer in result["ids"]]
    assert any(failed)
    assert [a for a in result["ids"] if a] == [
        answer for answer, fails in zip(expected, failed, strict=True) if not fails
    ]


class TestSeedsNeedALoop:
    def test_a_request_is_refused_where_calls_run_it(
        self, engine_model: Path, truth: EngineTruth
    ) -> None:
        translator = _core.Translator(str(engine_model), {"decoding": "calls"})
        source = [20, 21, 22, END]
        with pytest.raises(_core.Error) as caught:
            translator.translate([source], None, SEEDED)
        assert caught.value.code == "invalid_argument"
        assert str(caught.value) == (
            "sampling_seed 7 needs a decode loop, and calls of CTranslate2 run this search, "
            'because the model\'s decoding is "calls"; leave sampling_seed out, or give -1'
        )
        # Nothing is drawn here: a seed changes nothing.
        [[answer]] = translator.translate([source], None, {**GREEDY, "sampling_seed": 7})
        assert [answer["ids"]] == truth.hypotheses(source, [], **GREEDY)

    def test_so_is_a_model(self, engine_model: Path) -> None:
        config = {"beam_size": "1", "sampling_topk": "5", "sampling_seed": "0"}
        with pytest.raises(_core.Error, match="sampling_seed 0 needs a decode loop"):
            _core.Translator(str(engine_model), {**config, "decoding": "calls"})
        translator = _core.Translator(str(engine_model), {**config, "compute_type": "float32"})
        rows = [[20, 21, 22, 23, END]] * 40
        assert len({str(answer[0]["ids"]) for answer in translator.translate(rows, None)}) == 1
        anew = translator.translate(rows, None, {"sampling_seed": -1, "sampling_temperature": 4})
        assert len({str(answer[0]["ids"]) for answer in anew}) > 1

    @pytest.mark.parametrize("seed", [-2, 2**32, 1.5, "x", True])
    def test_a_bad_seed_is_refused(self, engine_model: Path, seed: Any) -> None:
        translator = _core.Translator(str(engine_model), {})
        with pytest.raises(_core.Error, match="sampling_seed.*integer from -1 to 4294967295"):
            translator.translate([[20, END]], None, {**SAMPLED, "sampling_seed": seed})
        assert translator.translate([[20, END]], None, {**SAMPLED, "sampling_seed": 2**32 - 1})
