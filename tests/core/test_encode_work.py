# SPDX-License-Identifier: Apache-2.0
"""Sources are encoded beside the decode loops, whose rows go on meanwhile.

Long ones always are, short ones by cores that have nothing else to do.
"""

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


needs_two_cores = pytest.mark.skipif(
    _core.usable_cores() < 2, reason="one core does one thing after the other"
)


@needs_two_cores
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


@needs_two_cores
def test_long_sources_leave_places_to_other_rows_while_they_are_encoded(
    engine_model: Path, truth: EngineTruth
) -> None:
    """Twice as many long rows wait in front as a loop has places."""
    short, _ = ragged_rows(truth, 20, seed=27)
    sources = [*map(_long, range(8)), *short]
    endless = {**LIMIT, "min_decoding_length": 40}
    [result] = _core.run_failing_loops(
        str(engine_model), [sources], endless, encode_tokens=90, max_sequences=4, loops=1,
        steps_beside=5,
    )  # fmt: skip
    assert result["encoded_beside"] == 8
    assert result["ids"] == [truth.hypotheses(source, [], **endless)[0] for source in sources]
    assert set(result["times_answered"]) == {1}


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


# A second loop would make steps longer, so that one has all rows and the other core is idle.
ONE_LOOP_PAYS = [(1, 1e6, 1e3), (2, 3e6, 3e6)]
FEW_TOKENS = {"encode_tokens": 24, "step_times": ONE_LOOP_PAYS}


def _run_short(
    engine_model: Path, sources: list[list[int]], prefixes: list[list[int]], **how: Any
) -> dict[str, Any]:
    [result] = _core.run_failing_loops(
        str(engine_model), [sources], LIMIT, prefixes, **{**FEW_TOKENS, "threads": 2, **how}
    )
    return dict(result)


def _short(truth: EngineTruth) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    """Sources, prefixes, and what each has to give."""
    rows = zip(*ragged_rows(truth, 100, seed=25), strict=True)
    short = [(source, prefix) for source, prefix in rows if len(source) + len(prefix) <= 20]
    sources, prefixes = map(list, zip(*short, strict=True))
    return sources, prefixes, [truth.hypotheses(*row, **LIMIT)[0] for row in short]


@needs_two_cores
def test_an_idle_core_encodes_short_sources_while_others_are_decoded(
    engine_model: Path, truth: EngineTruth
) -> None:
    """One of the encodings waits for five steps of the loop, which come."""
    sources, prefixes, expected = _short(truth)
    result = _run_short(engine_model, sources, prefixes, steps_beside=5)
    assert result["encoded_beside"] > 0
    assert result["ids"] == expected
    assert set(result["times_answered"]) == {1}
    assert result["counters"]["encoded_rows"] == len(sources)
    assert result["counters"]["shared_encodings"] == 0


@needs_two_cores
@pytest.mark.parametrize("cause", ["library", "memory"])
def test_a_short_row_whose_encoding_beside_failed_is_tried_again(
    engine_model: Path, truth: EngineTruth, cause: str
) -> None:
    sources, prefixes, expected = _short(truth)
    failing = {"failing_encodes": {1, 2, 3}, "cause": cause}
    result = _run_short(engine_model, sources, prefixes, **failing)
    assert result["ids"] == expected
    assert set(result["times_answered"]) == {1}
    assert result["rows_in_loop"] == len(sources)


def test_a_model_with_one_thread_encodes_in_its_loop(
    engine_model: Path, truth: EngineTruth
) -> None:
    sources, prefixes, expected = _short(truth)
    result = _run_short(engine_model, sources, prefixes, loops=1, threads=1)
    assert result["encoded_beside"] == 0
    assert result["ids"] == expected


def test_rows_of_one_short_source_share_its_encoding(
    engine_model: Path, truth: EngineTruth
) -> None:
    """Wherever it is made, and however many other rows wait between them."""
    sources, prefixes = ragged_rows(truth, 60, seed=25)
    sources[5::5] = [sources[20]] * 11
    prefixes = [[*prefix, 60 + i] for i, prefix in enumerate(prefixes)]  # no two rows are equal
    endless = {**LIMIT, "min_decoding_length": 40}
    [result] = _core.run_failing_loops(
        str(engine_model), [sources], endless, prefixes, **FEW_TOKENS, threads=2
    )
    pairs = zip(sources, prefixes, strict=True)
    assert result["ids"] == [truth.hypotheses(*pair, **endless)[0] for pair in pairs]
    counters = result["counters"]
    assert counters["encoded_rows"] == len({tuple(source) for source in sources})
    assert counters["shared_encodings"] == len(sources) - counters["encoded_rows"]


def _take_encoded(
    engine_model: Path, beams: list[list[int]], takes: list[tuple[int, int]]
) -> list[list[int]]:
    sources = [([300, 60 + i, END], of_rows) for i, of_rows in enumerate(beams)]
    return list(_core.take_encoded(str(engine_model), sources, takes))


def test_rows_of_one_encoded_source_are_divided_among_loops(engine_model: Path) -> None:
    taken = _take_encoded(engine_model, [[1, 1, 1, 1], [1, 1]], [(3, 0), (2, 0), (9, 0)])
    assert taken == [[0, 1, 2], [3, 4], [5]]


def test_encoded_rows_of_one_sequence_go_past_those_of_several(engine_model: Path) -> None:
    """Also within a source; as many as are kept for them, and no row of several does."""
    beams = [[4, 1, 4], [1, 1], [4]]
    taken = _take_encoded(engine_model, beams, [(0, 2), (0, 0), (4, 0), (1, 1), (9, 9)])
    assert taken == [[1, 3], [], [0], [2, 4], [5]]
