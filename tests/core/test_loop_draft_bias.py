# SPDX-License-Identifier: Apache-2.0
"""Answers that lean towards a draft: the definition, and CTranslate2 where it means the same.

All kinds of decoders and options, rows that join at random steps.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.draft_bias_truth import BiasTruth
from core.engine_truth import END
from core.loop_helpers import GREEDY, run_to_end
from core.loop_matrix import TIE, Case, MatrixModel, decode, draft_for
from core.test_loop_matrix import KINDS
from ct2_triton import _core

BIASES = [0.001, 0.05, 0.3, 0.7, 0.99]
ROW = ([300, *range(50, 70), END], [], {**GREEDY, "min_decoding_length": 16})


def _drafts(model: MatrixModel, cases: list[Case], rng: random.Random) -> list[list[int]]:
    """Other drafts than the answers, so that the bias is what decides."""
    plain = decode(model, cases, rng)
    noise = [rng.choices(model.choosable, k=12) for _ in cases]
    drafts = []
    for case, answer, other in zip(cases, plain, noise, strict=True):
        free = answer["ids"][len(case.prefix) - model.least_prefix :]
        drafts.append(rng.choice([draft_for(free, model, rng), other, [*other[:5], model.end]]))
    return [draft or [model.end] for draft in drafts]


def _biased(cases: list[Case], biases: list[float]) -> list[Case]:
    return [
        Case(case.source, case.prefix, {**case.options, "draft_bias": bias})
        for case, bias in zip(cases, biases, strict=True)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_answers_are_those_of_the_definition(models: dict[str, Path], kind: str) -> None:
    model = MatrixModel(kind, models[kind], "float32")
    rng = random.Random(f"{kind} 21")
    cases = [model.draw(rng) for _ in range(30)]
    cases = [replace(case, options={**case.options, "return_end_token": True}) for case in cases]
    drafts = _drafts(model, cases, rng)
    biases = [rng.choice(BIASES) for _ in cases]

    answers = decode(model, _biased(cases, biases), rng, drafts)

    for case, draft, bias, answer in zip(cases, drafts, biases, answers, strict=True):
        truth = BiasTruth(model, case, draft[: case.options["max_decoding_length"]], bias)
        assert answer["ids"] == answer["grown"]
        free = answer["ids"][truth.forced :]
        score = answer["score"] if case.options.get("return_scores") else None
        if len(case.prefix) - model.least_prefix < truth.limit:
            assert truth.greedy_mistake(free, score) == "", (case, draft, bias, answer)
    assert sum(answer["draft_tokens_kept"] for answer in answers) > 20


@pytest.mark.parametrize("kind", KINDS)
def test_beams_are_those_of_the_definition(models: dict[str, Path], kind: str) -> None:
    model = MatrixModel(kind, models[kind], "float32", beams=1)
    rng = random.Random(f"{kind} 22")
    cases = []
    for _ in range(10):
        case = model.draw(rng)
        options = {**case.options, "prefix_bias_beta": 0.0, "return_alternatives": False}
        options["return_end_token"] = True
        options["max_decoding_length"] = max(4, min(10, options["max_decoding_length"]))
        options["min_decoding_length"] = min(3, options.get("min_decoding_length", 1))
        options["beam_size"] = min(4, max(2, options["beam_size"]))
        options["num_hypotheses"] = min(2, options["num_hypotheses"])
        options["patience"] = 1
        cases.append(Case(case.source, case.prefix[: model.least_prefix + 2], options))
    drafts = _drafts(model, cases, rng)
    biases = [rng.choice(BIASES) for _ in cases]

    answers = decode(model, _biased(cases, biases), rng, drafts)

    compared = 0
    for case, draft, bias, answer in zip(cases, drafts, biases, answers, strict=True):
        truth = BiasTruth(model, case, draft[: case.options["max_decoding_length"]], bias)
        expected = truth.beams()
        if truth.has_twin:
            continue
        compared += 1
        found = answer["hypotheses"]
        scores = [hypothesis["score"] for hypothesis in found]
        assert scores == pytest.approx([h.score for h in expected], rel=1e-4, abs=1e-4)
        ids = [hypothesis["ids"][truth.forced :] for hypothesis in found]
        if len({round(score / TIE) for score in scores}) == len(scores):
            assert ids == [h.free for h in expected], (case, draft, bias)
        assert answer["draft_tokens_kept"] == 0
    assert compared > 0


@pytest.mark.parametrize("kind", KINDS)
def test_where_nothing_else_is_forced_the_answers_are_ctranslate2s(
    models: dict[str, Path], kind: str
) -> None:
    """Its bias has a prefix for a draft, and reads it in beams: here one of one beam."""
    model = MatrixModel(kind, models[kind], "float32")
    rng = random.Random(f"{kind} 23")
    forbids = {"min_decoding_length", "no_repeat_ngram_size", "suppress_sequences", "disable_unk"}
    cases = []
    for _ in range(40):
        case = model.draw(rng)
        options = {name: value for name, value in case.options.items() if name not in forbids}
        options |= {"return_scores": True, "min_decoding_length": 0}
        cases.append(Case(case.source, case.prefix[: model.least_prefix], options))
    drafts = _drafts(model, cases, rng)
    biases = [rng.choice(BIASES) for _ in cases]

    answers = decode(model, _biased(cases, biases), rng, drafts)

    equal = 0
    for case, draft, bias, answer in zip(cases, drafts, biases, answers, strict=True):
        cut = draft[: case.options["max_decoding_length"]]
        options = {**case.options, "prefix_bias_beta": bias}
        truth = model.truth(Case(case.source, [*case.prefix, *cut], options))
        if answer["ids"] == truth["ids"]:
            equal += 1
            assert answer["score"] == pytest.approx(truth["scores"][0], rel=1e-4, abs=1e-4)
    assert equal >= len(cases) - 1  # one of these rows may stand at a tie


def _decode(loop: Any, options: dict[str, Any], draft: list[int]) -> Any:
    [name] = loop.admit([(*ROW[:2], {**ROW[2], **options})], [draft])
    return run_to_end(loop)[name]


def test_without_a_bias_the_answer_is_the_one_without_a_draft(loop: Any) -> None:
    plain = _decode(loop, {}, [])
    wrong = [*plain["ids"][:5], 3, *plain["ids"][6:]]
    assert _decode(loop, {"draft_bias": 0}, wrong)["ids"] == plain["ids"]
    assert _decode(loop, {"draft_bias": 0.99}, wrong)["ids"][:6] == wrong[:6]


def test_a_biased_draft_saves_the_steps_of_the_tokens_it_brought_about(loop: Any) -> None:
    draft = random.Random(3).sample(range(900, 1000), 12)
    before = loop.counters["steps"]
    answer = _decode(loop, {"draft_bias": 0.9}, draft)
    assert answer["ids"][:12] == draft
    assert answer["draft_tokens_kept"] == 12
    assert loop.counters["steps"] - before == len(answer["ids"]) - 12


@pytest.mark.parametrize("beam_size", [1, 3])
def test_what_must_not_be_chosen_is_not_chosen_for_a_draft(loop: Any, beam_size: int) -> None:
    """CTranslate2's own bias would choose it."""
    options = {"draft_bias": 0.999, "beam_size": beam_size, "suppress_sequences": "[[905]]"}
    ids = _decode(loop, options, [901, 902, 905, 906])["ids"]
    assert ids[:2] == [901, 902]
    assert 905 not in ids
    options["no_repeat_ngram_size"] = 2
    ids = _decode(loop, options, [901, 902, 901, 902])["ids"]
    assert ids[:3] == [901, 902, 901]
    assert ids[3] != 902
    ids = _decode(loop, {**options, "min_decoding_length": 8}, [901, END])["ids"]
    assert len(ids) >= 8


def test_the_hypotheses_of_beams_lean_each_by_what_they_have_followed(loop: Any) -> None:
    options = {"draft_bias": 0.6, "beam_size": 4, "num_hypotheses": 4, "return_scores": True}
    draft = [901, 902, 903, 904]
    hypotheses = _decode(loop, options, draft)["hypotheses"]
    assert len({tuple(hypothesis["ids"]) for hypothesis in hypotheses}) == 4
    assert hypotheses[0]["ids"][:4] == draft


@pytest.mark.parametrize(
    ("options", "draft", "message"),
    [
        ({"draft_bias": 1}, [5], 'parameter "draft_bias": the value 1 is not allowed; give a num'),
        ({"draft_bias": -0.1}, [5], "the value -0.1 is not allowed; give a number from 0 to below"),
        ({"draft_bias": 0.3, "coverage_penalty": 0.5, "beam_size": 2}, [5],
         "draft_bias 0.3 needs a decode loop, .* because coverage_penalty is not 0"),
        ({"beam_size": 2}, [5], "or with beams a draft_bias above 0"),
    ],
    ids=str,
)  # fmt: skip
def test_a_bias_that_cannot_be_is_refused(
    loop: Any, options: dict[str, Any], draft: list[int], message: str
) -> None:
    with pytest.raises(_core.Error, match=message):
        _decode(loop, options, draft)
    assert _decode(loop, {"draft_bias": 0.3}, [5])["ids"]


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("after", range(6))
def test_a_failing_step_leaves_a_biased_draft_as_it_was(
    engine_model: Path, after: int, beam_size: int
) -> None:
    model = _core.LoopModel(
        str(engine_model), {"compute_type": "float32"}, damaged="decoder/projection"
    )
    damaged = _core.DecodeLoop(model)
    options = {"draft_bias": 0.5, "beam_size": beam_size}
    draft = [901, 902, 903, 904]
    whole = _decode(damaged, options, draft)
    [name] = damaged.admit([(*ROW[:2], {**ROW[2], **options})], [draft])
    model.fail_after(after)
    answers: dict[int, Any] = {}
    while damaged.running:
        try:
            answers.update(damaged.step()[1])
        except _core.Error:
            model.fail_after(-1)
    assert answers[name] == whole


def test_through_the_queue(engine_model: Path) -> None:
    """A row of the request may have no draft; a model without loops refuses a bias."""
    options = {**ROW[2], "draft_bias": 0.9}
    of_loop, of_calls = (
        _core.Translator(str(engine_model), {"compute_type": "float32", "decoding": decoding})
        for decoding in ("loop", "calls")
    )
    plain = of_loop.translate([ROW[0]], parameters=ROW[2])[0][0]["ids"]
    drafts = [[901, 902], []]
    answers = of_loop.translate([ROW[0]] * 2, parameters=options, drafts=drafts)
    assert answers[0][0]["ids"][:2] == [901, 902]
    assert answers[1][0]["ids"] == plain
    with pytest.raises(_core.Error, match='decoding is "calls"; leave draft_bias out'):
        of_calls.translate([ROW[0]], parameters=options, drafts=drafts[:1])
    assert of_calls.translate([ROW[0]], parameters=ROW[2])[0][0]["ids"] == plain
