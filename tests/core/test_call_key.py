# SPDX-License-Identifier: Apache-2.0
"""Which rows share a call: all but those that a call cannot serve together."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import END, EngineTruth, Row, ragged_rows
from ct2_triton import _core

ONE_WORKER = {"inter_threads": "1", "compute_type": "float32", "decoding": "calls"}
ROWS: list[Row] = [[300, 50, 60, END], [301, 70, 80, END]]

# Options that are resolved for each row by itself, with a value that is not the default.
PER_ROW: dict[str, Any] = {
    "max_decoding_length": 9,
    "max_decoding_length_multiple": 2.5,
    "truncate_input": True,
    "return_end_token": True,
    # What these change does not happen in a greedy search, but for the score, which is ours.
    "length_penalty": 0.3,
    "patience": 2.0,
    "min_alternative_expansion_prob": 0.4,
    "sampling_topp": 0.5,
    "sampling_temperature": 0.8,
    "sampling_seed": 7,
    "quality": True,  # of what a call gave
    "on_doubt": "retry",
}
# These need another option, or a vocabulary map; test_combinations.py has them.
ELSEWHERE = {"coverage_penalty", "num_hypotheses", "use_vmap"}
# All others: a call of CTranslate2 has one value of them. Their values are the table's examples.
PER_CALL: dict[str, Any] = {
    row["name"]: row["example"]
    for row in _core.parameters()
    if row["scope"] == "request" and row["name"] not in PER_ROW.keys() | ELSEWHERE
} | {"end_token": "[9]"}  # the example names a token that this vocabulary does not have


def _calls(translator: Any, rows: list[Row], options: list[dict[str, Any]]) -> list[int]:
    before = len(translator.calls)
    translator.translate(rows, None, options)
    return translator.calls[before:]


@pytest.mark.parametrize("name", PER_ROW)
def test_rows_that_differ_in_what_is_resolved_per_row_share_a_call(
    engine_model: Path, name: str
) -> None:
    translator = _core.Translator(str(engine_model), ONE_WORKER)
    plain = {"beam_size": 1}
    assert _calls(translator, ROWS, [plain, {**plain, name: PER_ROW[name]}]) == [2]


@pytest.mark.parametrize("name", PER_CALL)
def test_rows_that_differ_in_an_option_of_the_call_do_not(engine_model: Path, name: str) -> None:
    translator = _core.Translator(str(engine_model), ONE_WORKER)
    plain = {"beam_size": 1}
    assert _calls(translator, ROWS, [plain, {**plain, name: PER_CALL[name]}]) == [1, 1]


def test_a_token_is_the_same_by_id_and_by_name(engine_model: Path, truth: EngineTruth) -> None:
    translator = _core.Translator(str(engine_model), ONE_WORKER)
    by_name = {"beam_size": 1, "end_token": f'["{truth.vocabulary[9]}"]'}
    assert _calls(translator, ROWS, [by_name, {"beam_size": 1, "end_token": "[9]"}]) == [2]


def test_greedy_rows_of_many_limits_share_calls(engine_model: Path, truth: EngineTruth) -> None:
    translator = _core.Translator(str(engine_model), {**ONE_WORKER, "max_batch_rows": "32"})
    sources, prefixes = ragged_rows(truth, 128, seed=11)
    limits = [3 + i % 64 for i in range(128)]
    options = [{"beam_size": 1, "max_decoding_length": limit} for limit in limits]
    answers = translator.translate(sources, prefixes, options)
    assert len(translator.calls) == 4
    for answer, source, prefix, limit in zip(answers, sources, prefixes, limits, strict=True):
        expected = truth.hypotheses(source, prefix, beam_size=1, max_decoding_length=limit)
        assert [answer[0]["ids"]] == expected


def test_greedy_rows_of_many_length_penalties_share_calls(
    engine_model: Path, truth: EngineTruth
) -> None:
    translator = _core.Translator(str(engine_model), {**ONE_WORKER, "max_batch_rows": "32"})
    sources, prefixes = ragged_rows(truth, 64, seed=12)
    rng = random.Random(5)
    penalties = [round(rng.uniform(-1, 2), 3) for _ in sources]
    limit = {"beam_size": 1, "return_scores": True, "max_decoding_length": 100}
    options = [{**limit, "length_penalty": p} for p in penalties]
    answers = translator.translate(sources, prefixes, options)
    assert len(translator.calls) == 2
    for answer, source, prefix, penalty in zip(answers, sources, prefixes, penalties, strict=True):
        expected = truth.result(source, prefix, length_penalty=penalty, **limit)
        assert answer[0]["score"] == pytest.approx(expected.scores[0], rel=1e-4, abs=1e-5)


def test_one_search_at_its_limits_does_not_part_the_rows_of_another(
    engine_model: Path, truth: EngineTruth
) -> None:
    translator = _core.Translator(str(engine_model), {**ONE_WORKER, "max_batch_rows": "16"})
    rows = [row for row in ragged_rows(truth, 400, seed=3)[0] if len(row) > 6]
    prefixes = [row[:1] for row in rows]
    cut = {"beam_size": 3, "max_decoding_length_multiple": 0.5}
    translator.translate(rows[:128], prefixes[:128], cut)
    before = len(translator.calls)
    roomy = {"beam_size": 4, "max_decoding_length_multiple": 4.0}
    translator.translate(rows[128:192], prefixes[128:192], roomy)
    assert len(translator.calls) - before <= 5
