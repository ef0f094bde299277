# SPDX-License-Identifier: Apache-2.0
"""What a row reports while it runs, and a call when it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import END, EngineTruth, ragged_rows
from ct2_triton import _core

ONE_WORKER = {"inter_threads": "1", "compute_type": "float32", "decoding": "calls"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_decoding_length": 7},
        {"return_end_token": True},
        {"end_token": "[2, 50, 51]", "min_decoding_length": 4},
        {"sampling_topk": 5},
    ],
    ids=repr,
)
def test_a_greedy_row_grows_into_its_answer(
    engine_model: Path, truth: EngineTruth, options: dict[str, Any]
) -> None:
    translator = _core.Translator(str(engine_model), ONE_WORKER)
    sources, prefixes = ragged_rows(truth, 40, seed=8)
    # End tokens among what is forced: they stay where another token follows.
    prefixes = [p + [END] * (i % 3) for i, p in enumerate(prefixes)]
    answers = translator.translate(sources, prefixes, {"beam_size": 1, **options})
    assert [answer[0]["grown"] for answer in answers] == [answer[0]["ids"] for answer in answers]
    assert any(answer[0]["ids"] for answer in answers)


def test_a_beam_row_reports_nothing_before_its_end(engine_model: Path, truth: EngineTruth) -> None:
    translator = _core.Translator(str(engine_model), ONE_WORKER)
    sources, prefixes = ragged_rows(truth, 4)
    answers = translator.translate(sources, prefixes, {"beam_size": 2})
    assert [answer[0]["grown"] for answer in answers] == [[], [], [], []]


@pytest.mark.parametrize("beams", [1, 3])
def test_a_call_reports_what_it_did(engine_model: Path, truth: EngineTruth, beams: int) -> None:
    translator = _core.Translator(str(engine_model), {**ONE_WORKER, "max_batch_rows": "8"})
    sources, prefixes = ragged_rows(truth, 8, seed=4)
    options = {"beam_size": beams, "max_decoding_length": 20, "return_end_token": True}
    answers = translator.translate(sources, prefixes, options)
    [report] = translator.reports
    longest = max(len(source) for source in sources)
    assert report["rows"] == 8
    assert report["mapped_rows"] == report["failed_rows"] == 0
    assert report["source_tokens"] == sum(len(source) for source in sources)
    assert report["padding_tokens"] == sum(longest - len(source) for source in sources)
    assert report["generated_tokens"] == sum(len(answer[0]["ids"]) for answer in answers)
    if beams == 1:
        assert report["steps"] == max(len(answer[0]["ids"]) for answer in answers)
    reasons = [answer[0]["finish_reason"] for answer in answers]
    expected = {reason: reasons.count(reason) for reason in ("stop", "length", "empty", "cut")}
    assert report["finished"] == expected
    assert expected["stop"] > 0
