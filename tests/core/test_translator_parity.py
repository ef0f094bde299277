# SPDX-License-Identifier: Apache-2.0
"""Every decoding option gives what CTranslate2 itself gives for each row alone."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import EngineTruth, ragged_rows
from ct2_triton import _core

# Options as CTranslate2 takes them. The core gets the same, lists as JSON text.
CASES: list[dict[str, Any]] = [
    {"beam_size": 1},
    {"beam_size": 2},
    {"beam_size": 4},
    {"beam_size": 4, "patience": 2},
    {"beam_size": 4, "length_penalty": 0},
    {"beam_size": 4, "length_penalty": 0.6, "num_hypotheses": 4},
    {"beam_size": 4, "coverage_penalty": 0.2},
    {"beam_size": 1, "repetition_penalty": 1.4},
    {"beam_size": 3, "repetition_penalty": 1.2},
    {"beam_size": 1, "no_repeat_ngram_size": 2},
    {"beam_size": 2, "no_repeat_ngram_size": 3},
    {"beam_size": 1, "disable_unk": True},
    {"beam_size": 1, "max_decoding_length": 6},
    {"beam_size": 4, "max_decoding_length": 6},
    {"beam_size": 1, "min_decoding_length": 20},
    {"beam_size": 4, "min_decoding_length": 20},
    {"beam_size": 2, "prefix_bias_beta": 0.3},
    {"beam_size": 1, "prefix_bias_beta": 0.3},
    {"beam_size": 1, "return_end_token": True},
    {"beam_size": 4, "return_end_token": True},
    {"beam_size": 2, "return_alternatives": True, "num_hypotheses": 3},
    {"beam_size": 1, "sampling_topk": 20, "sampling_temperature": 0},
    {"beam_size": 2, "replace_unknowns": True},
    {"beam_size": 2, "use_vmap": True},
]
SEVERAL_HYPOTHESES = [{"beam_size": 4, "num_hypotheses": 3, "return_scores": True},
                      {"beam_size": 1, "return_scores": True},
                      {"beam_size": 1, "return_scores": True, "length_penalty": 0}]  # fmt: skip
LIMIT = {"max_decoding_length": 40}


@pytest.fixture(params=["auto", "calls"])
def translator(engine_model: Path, request: pytest.FixtureRequest) -> Any:
    parameters = {"compute_type": "float32", "decoding": request.param}
    return _core.Translator(str(engine_model), parameters)


def _ids(answers: list[Any]) -> list[list[list[int]]]:
    return [[hypothesis["ids"] for hypothesis in row] for row in answers]


@pytest.mark.parametrize("options", CASES, ids=str)
def test_option_gives_what_ctranslate2_gives(
    translator: Any, truth: EngineTruth, options: dict[str, Any]
) -> None:
    options = {**LIMIT, **options}
    sources, prefixes = ragged_rows(truth, 24)

    answers = _ids(translator.translate(sources, prefixes, options))

    expected = [
        truth.hypotheses(source, prefix, **options)
        for source, prefix in zip(sources, prefixes, strict=True)
    ]
    assert answers == expected


@pytest.mark.parametrize("options", SEVERAL_HYPOTHESES, ids=str)
def test_scores_are_those_of_ctranslate2(
    translator: Any, truth: EngineTruth, options: dict[str, Any]
) -> None:
    sources, prefixes = ragged_rows(truth, 24)

    answers = translator.translate(sources, prefixes, {**LIMIT, **options})

    for answer, source, prefix in zip(answers, sources, prefixes, strict=True):
        result = truth.result(source, prefix, **LIMIT, **options)
        scores = [hypothesis["score"] for hypothesis in answer]
        assert scores == pytest.approx(result.scores, abs=1e-4)


def test_equally_long_rows_do_not_share_the_attention_of_a_beam_search(
    translator: Any, truth: EngineTruth
) -> None:
    """CTranslate2 gives every row of a call the first row's attention at the first step."""
    options = {"coverage_penalty": 0.3, "return_scores": True, "max_decoding_length": 9}
    sources, prefixes = ragged_rows(truth, 8)
    sources = [[*source[:2], *sources[0][2:]] for source in sources]

    answers = translator.translate(sources, prefixes, options)

    for answer, source, prefix in zip(answers, sources, prefixes, strict=True):
        (score,) = truth.result(source, prefix, **options).scores
        assert answer[0]["score"] == pytest.approx(score, abs=1e-4)


def test_suppressed_sequences_by_token_and_by_id(translator: Any, truth: EngineTruth) -> None:
    sources, prefixes = ragged_rows(truth, 12)
    free = _ids(translator.translate(sources, prefixes, {"beam_size": 1, **LIMIT}))
    unwanted = free[0][0][len(prefixes[0])]
    token = truth.vocabulary[unwanted]

    by_id = translator.translate(
        sources, prefixes, {"beam_size": 1, "suppress_sequences": f"[[{unwanted}]]", **LIMIT}
    )
    by_token = translator.translate(
        sources, prefixes, {"beam_size": 1, "suppress_sequences": json.dumps([[token]]), **LIMIT}
    )

    expected = [
        truth.hypotheses(source, prefix, beam_size=1, suppress_sequences=[[token]], **LIMIT)
        for source, prefix in zip(sources, prefixes, strict=True)
    ]
    assert _ids(by_id) == _ids(by_token) == expected
    assert expected != free


def test_end_token_by_id(translator: Any, truth: EngineTruth) -> None:
    sources, prefixes = ragged_rows(truth, 12)
    free = _ids(translator.translate(sources, prefixes, {"beam_size": 1, **LIMIT}))
    end = free[0][0][-1]

    answers = translator.translate(
        sources, prefixes, {"beam_size": 1, "end_token": f"[{end}]", **LIMIT}
    )

    expected = [
        truth.hypotheses(source, prefix, beam_size=1, end_token=[end], **LIMIT)
        for source, prefix in zip(sources, prefixes, strict=True)
    ]
    assert _ids(answers) == expected
    assert answers[0][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("multiple", [0.5, 1, 1.3])
def test_a_limit_by_length_is_each_rows_own(
    translator: Any, truth: EngineTruth, beam_size: int, multiple: float
) -> None:
    sources, prefixes = ragged_rows(truth, 48)

    answers = translator.translate(
        sources, prefixes, {"beam_size": beam_size, "max_decoding_length_multiple": multiple}
    )

    expected = [
        truth.hypotheses(
            source,
            prefix,
            beam_size=beam_size,
            max_decoding_length=max(1, int(multiple * len(source))),
        )
        for source, prefix in zip(sources, prefixes, strict=True)
    ]
    assert _ids(answers) == expected
    reasons = {row[0]["finish_reason"] for row in answers}
    assert "length" in reasons, "the limit must bite somewhere, else this shows nothing"


@pytest.mark.parametrize("beam_size", [1, 4])
def test_answers_do_not_depend_on_company(
    translator: Any, truth: EngineTruth, beam_size: int
) -> None:
    """64 rows alone, together in one request, from 64 threads, and among other options."""
    sources, prefixes = ragged_rows(truth, 64)
    options = {"beam_size": beam_size, "max_decoding_length_multiple": 1.2}
    alone = [
        _ids(translator.translate([source], [prefix], options))[0]
        for source, prefix in zip(sources, prefixes, strict=True)
    ]

    together = _ids(translator.translate(sources, prefixes, options))

    def one(index: int) -> list[list[int]]:
        mine = options if index < 64 else {"beam_size": 3, "max_decoding_length": 9}
        index %= 64
        return _ids(translator.translate([sources[index]], [prefixes[index]], mine))[0]

    with ThreadPoolExecutor(128) as threads:
        concurrent = list(threads.map(one, range(128)))[:64]
    assert together == alone
    assert concurrent == alone


def test_sampling_follows_the_distribution(translator: Any, truth: EngineTruth) -> None:
    """Equal rows are each sampled on their own, and likely answers come often."""
    sources, prefixes = ragged_rows(truth, 1)
    options = {"beam_size": 1, "sampling_topk": 5, "max_decoding_length": 4}

    answers = _ids(translator.translate(sources * 64, prefixes * 64, options))

    assert len({tuple(row[0]) for row in answers}) > 1
    first = len(prefixes[0])
    result = truth.translator.translate_batch(
        [truth.tokens(sources[0])],
        target_prefix=[truth.tokens(prefixes[0])],
        beam_size=5,
        num_hypotheses=5,
        max_decoding_length=first + 1,
    )[0]
    allowed = {truth.ids[tokens[first]] for tokens in result.hypotheses if len(tokens) > first}
    assert {row[0][first] for row in answers if len(row[0]) > first} <= allowed


BEAM_LIMITS = [
    {"beam_size": 4},
    {"beam_size": 4, "num_hypotheses": 3, "return_scores": True},
    {"beam_size": 3, "patience": 2.5, "num_hypotheses": 5},
    {"beam_size": 4, "length_penalty": 0, "num_hypotheses": 2},
    {"beam_size": 2, "length_penalty": 1.5, "repetition_penalty": 1.3},
    {"beam_size": 4, "prefix_bias_beta": 0.4},
    {"beam_size": 4, "min_decoding_length": 3},
]


@pytest.mark.parametrize("options", BEAM_LIMITS, ids=str)
@pytest.mark.parametrize("multiple", [1.1, 2.5])
def test_beam_rows_of_different_limits_share_calls(
    translator: Any, truth: EngineTruth, options: dict[str, Any], multiple: float
) -> None:
    """They run to the largest limit; what a limit would have changed must run again."""
    sources, prefixes = ragged_rows(truth, 96, seed=5)
    parameters = {**options, "max_decoding_length_multiple": multiple}

    answers = translator.translate(sources, prefixes, parameters)

    for answer, source, prefix in zip(answers, sources, prefixes, strict=True):
        limit = int(multiple * len(source))
        expected = truth.result(source, prefix, max_decoding_length=limit, **options)
        assert [h["ids"] for h in answer] == [
            [truth.ids[token] for token in tokens] for tokens in expected.hypotheses
        ]
        if expected.scores:
            assert [h["score"] for h in answer] == pytest.approx(expected.scores, abs=1e-4)


def test_beam_rows_with_and_without_forced_tokens(translator: Any, truth: EngineTruth) -> None:
    """A second-best first token that ends the row: CTranslate2 drops it in forced company."""
    sources = [row for row in ragged_rows(truth, 40, seed=8)[0] if len(row) > 4][:24]
    prefixes: list[list[int]] = [[] if i % 2 else [truth.languages[0]] for i in range(24)]
    first_tokens = set()
    for source in sources:
        result = truth.translator.translate_batch(
            [truth.tokens(source)], beam_size=4, num_hypotheses=4, max_decoding_length=1
        )[0]
        first_tokens |= {truth.ids[tokens[0]] for tokens in result.hypotheses[1:] if tokens}
    ends = sorted(first_tokens)
    options = {"beam_size": 4, "num_hypotheses": 3, "min_decoding_length": 0}
    options["max_decoding_length"] = 20

    answers = translator.translate(sources, prefixes, {**options, "end_token": json.dumps(ends)})

    expected = [
        truth.hypotheses(source, prefix, end_token=ends, **options)
        for source, prefix in zip(sources, prefixes, strict=True)
    ]
    assert _ids(answers) == expected


@pytest.mark.parametrize("beam_size", [1, 3])
def test_replaced_unknowns_are_no_end_tokens(
    translator: Any, truth: EngineTruth, beam_size: int
) -> None:
    """CTranslate2 takes end tokens off before it replaces: a copied one stays."""
    unknown = truth.ids["<unk>"]
    sources = [row[:3] + [unknown] * 4 + row[3:] for row in ragged_rows(truth, 24, seed=9)[0]]
    ends = [truth.ids["</s>"], *{row[-2] for row in sources}]
    options = {"beam_size": beam_size, "replace_unknowns": True, "max_decoding_length": 12}

    answers = translator.translate(sources, None, {**options, "end_token": json.dumps(ends)})

    expected = [truth.hypotheses(source, [], end_token=ends, **options) for source in sources]
    assert _ids(answers) == expected
