# SPDX-License-Identifier: Apache-2.0
"""Long sources are encoded beside the decode loops, whose rows go on meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import END, EngineTruth, ragged_rows
from ct2_triton import _core

LIMIT = {"beam_size": 1, "max_decoding_length": 40}
# Sources of more than 16 tokens are long.
SHORT_ENCODES = {"compute_type": "float32", "decoding": "loop", "max_batch_tokens": "16"}


def _long(number: int, tokens: int = 100) -> list[int]:
    return [300, *(50 + (number * 7 + i * i) % 400 for i in range(tokens)), END]


def _run(engine_model: Path, sources: list[list[int]], **failing: Any) -> dict[str, Any]:
    [result] = _core.run_failing_loops(
        str(engine_model), [sources], LIMIT, encode_tokens=90, **failing
    )
    return dict(result)


def _expected(truth: EngineTruth, sources: list[list[int]]) -> list[list[int]]:
    return [truth.hypotheses(source, [], **LIMIT)[0] for source in sources]


@pytest.mark.skipif(_core.usable_cores() < 2, reason="one core does one thing after the other")
def test_other_rows_go_on_while_a_long_source_is_encoded(
    engine_model: Path, truth: EngineTruth
) -> None:
    """Its encoding waits for five steps of loops, which come although it is the first row."""
    sources = [_long(0), *ragged_rows(truth, 40, seed=23)[0]]
    result = _run(engine_model, sources, steps_beside=5)
    assert result["encoded_beside"] == 1
    assert result["ids"] == result["grown"] == _expected(truth, sources)
    assert result["counters"]["encoded_rows"] == len(sources)
    assert result["counters"]["shared_encodings"] == 0


@pytest.mark.parametrize("cause", ["library", "memory"])
def test_a_row_whose_encoding_failed_is_tried_again(
    engine_model: Path, truth: EngineTruth, cause: str
) -> None:
    sources = [*map(_long, range(3)), *ragged_rows(truth, 10, seed=24)[0]]
    result = _run(engine_model, sources, failing_encodes={1, 2}, cause=cause)
    assert result["ids"] == _expected(truth, sources)
    assert set(result["times_answered"]) == {1}


def test_many_long_sources_are_translated_beside_short_ones(
    engine_model: Path, truth: EngineTruth
) -> None:
    translator = _core.Translator(str(engine_model), SHORT_ENCODES)
    sources = [_long(i, tokens) for i in range(30) for tokens in (5, 40)]
    answers = translator.translate(sources, None, LIMIT)
    assert [answer[0]["ids"] for answer in answers] == _expected(truth, sources)
    assert sum(loop["encoded_rows"] for loop in translator.loops) == len(sources)


def test_rows_of_one_long_source_share_its_encoding(engine_model: Path, truth: EngineTruth) -> None:
    translator = _core.Translator(str(engine_model), {**SHORT_ENCODES, "inter_threads": "1"})
    source = _long(1, 60)
    prefixes = [[], [truth.languages[0]], [truth.languages[1]], [truth.languages[0], 60]]
    answers = translator.translate([source] * 4, prefixes, LIMIT)
    for answer, prefix in zip(answers, prefixes, strict=True):
        assert [answer[0]["ids"]] == truth.hypotheses(source, prefix, **LIMIT)
    counted = {
        name: sum(loop[name] for loop in translator.loops)
        for name in ("encoded_rows", "shared_encodings")
    }
    assert counted == {"encoded_rows": 1, "shared_encodings": 3}


def test_without_memory_for_two_long_rows_run_one_by_one(
    engine_model: Path, truth: EngineTruth
) -> None:
    translator = _core.Translator(str(engine_model), {**SHORT_ENCODES, "max_cache_bytes": "1"})
    sources = [_long(i, 30) for i in range(6)]
    answers = translator.translate(sources, None, LIMIT)
    assert [answer[0]["ids"] for answer in answers] == _expected(truth, sources)


def test_a_client_that_goes_takes_its_long_row_along(
    engine_model: Path, truth: EngineTruth
) -> None:
    translator = _core.Translator(str(engine_model), SHORT_ENCODES)
    endless = {**LIMIT, "min_decoding_length": 40}
    for asked in (0, 1, 2, 5):
        with pytest.raises(Exception, match="cancelled"):
            translator.translate([_long(2, 110)], None, endless, cancel_after=asked)
    source = _long(3, 50)
    [answer] = translator.translate([source], None, LIMIT)
    assert [answer[0]["ids"]] == truth.hypotheses(source, [], **LIMIT)
