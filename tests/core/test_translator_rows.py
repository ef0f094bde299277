# SPDX-License-Identifier: Apache-2.0
"""Single rows: empty ones, too long ones, wrong ids, limits of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.conftest import POSITIONS
from core.engine_truth import END, EngineTruth, ragged_rows
from ct2_triton import _core

GREEDY = {"compute_type": "float32", "beam_size": "1"}


def _answers_well(translator: Any, truth: EngineTruth) -> None:
    sources, prefixes = ragged_rows(truth, 1)
    options = {"beam_size": 1, "max_decoding_length": 40}
    [[hypothesis]] = translator.translate(sources, prefixes, options)
    assert [hypothesis["ids"]] == truth.hypotheses(sources[0], prefixes[0], **options)


@pytest.mark.parametrize("source", [[], [END]])
def test_an_empty_row_echoes_its_prefix(
    translator: Any, truth: EngineTruth, source: list[int]
) -> None:
    prefix = [truth.languages[0]]
    [[hypothesis]] = translator.translate([source], [prefix])
    assert hypothesis["ids"] == truth.hypotheses(source, prefix)[0] == prefix
    assert hypothesis["finish_reason"] == "empty"


def test_the_end_token_with_a_language_behind_it_is_empty(
    translator: Any, truth: EngineTruth
) -> None:
    prefix = [truth.languages[1]]
    source = [END, truth.languages[0]]
    [[hypothesis]] = translator.translate([source], [prefix])
    assert hypothesis["ids"] == truth.hypotheses(source, prefix)[0] == prefix
    assert hypothesis["finish_reason"] == "empty"


def test_a_row_of_special_ids_is_empty(engine_model: Any, truth: EngineTruth) -> None:
    """NLLB's form of no text: CTranslate2 would run it and invent a sentence."""
    translator = _core.Translator(
        str(engine_model), {"special_ids": f"[{END}, {truth.languages[0]}]"}
    )
    prefix = [truth.languages[1]]
    [[hypothesis]] = translator.translate([[truth.languages[0], END]], [prefix])
    assert (hypothesis["ids"], hypothesis["finish_reason"]) == (prefix, "empty")


@pytest.mark.parametrize("options", [{}, {"num_hypotheses": 2, "beam_size": 2}], ids=str)
def test_empty_rows_among_others(
    translator: Any, truth: EngineTruth, options: dict[str, Any]
) -> None:
    """CTranslate2 renumbers the rows of a call around empty ones: answers must not shift."""
    options = {**options, "max_decoding_length": 40}
    sources, prefixes = ragged_rows(truth, 9)
    for index in (0, 4, 8):
        sources[index] = []
    answers = translator.translate(sources, prefixes, options)
    for answer, source, prefix in zip(answers, sources, prefixes, strict=True):
        assert [h["ids"] for h in answer] == truth.hypotheses(source, prefix, **options)


def test_an_echoed_prefix_keeps_to_the_limit(translator: Any, truth: EngineTruth) -> None:
    prefix = [truth.languages[0], 10, 11, 12]
    [[hypothesis]] = translator.translate([[]], [prefix], {"max_decoding_length": 2})
    assert hypothesis["ids"] == truth.hypotheses([], prefix, max_decoding_length=2)[0] == prefix[:2]


@pytest.mark.parametrize(("row", "at"), [([-1, END], 0), ([10, 10**9], 1), ([5, 2**62, END], 1)])
def test_an_id_outside_the_vocabulary(
    translator: Any, truth: EngineTruth, row: list[int], at: int
) -> None:
    with pytest.raises(_core.Error) as failure:
        translator.translate([[10, END], row])
    last = len(truth.vocabulary) - 1
    assert failure.value.code == "invalid_argument"
    assert str(failure.value) == (
        f"INPUT_IDS, row 1: id {row[at]} at position {at} is not in the source vocabulary, "
        f"ids 0 to {last}"
    )
    _answers_well(translator, truth)


def test_a_prefix_outside_the_vocabulary(translator: Any, truth: EngineTruth) -> None:
    with pytest.raises(_core.Error, match="TARGET_PREFIX, row 0: id 99999 at position 0"):
        translator.translate([[10, END]], [[99999]])
    _answers_well(translator, truth)


def test_the_longest_row_the_positions_allow(translator: Any, truth: EngineTruth) -> None:
    source = [truth.languages[0], *[10] * (POSITIONS - 2), END]
    prefix = [truth.languages[1]]
    [[hypothesis]] = translator.translate([source], [prefix], {"beam_size": 1})
    # Beyond its positions CTranslate2 fails the whole call: the truth needs the limit said.
    expected = truth.hypotheses(source, prefix, beam_size=1, max_decoding_length=POSITIONS)
    assert [hypothesis["ids"]] == expected
    with pytest.raises(_core.Error, match=f"more than the {POSITIONS} that the positions of the"):
        translator.translate([[*source, END]], [prefix])
    _answers_well(translator, truth)


def test_decoding_stops_at_the_last_position(translator: Any, truth: EngineTruth) -> None:
    sources, prefixes = ragged_rows(truth, 8)
    options = {"beam_size": 2, "max_decoding_length": 1000, "min_decoding_length": POSITIONS}
    for row in translator.translate(sources, prefixes, options):
        assert len(row[0]["ids"]) == POSITIONS
        assert row[0]["finish_reason"] == "length"


def test_max_input_length_refuses_or_cuts(engine_model: Path, truth: EngineTruth) -> None:
    translator = _core.Translator(str(engine_model), {**GREEDY, "max_input_length": "10"})
    source = [truth.languages[0], *range(20, 40), END]
    prefix = [truth.languages[1]]
    for row in (source, [-1] * 22):  # whose ids nobody looks at
        with pytest.raises(_core.Error, match="22 ids, more than the 10 that max_input_length"):
            translator.translate([row], [prefix])
    [[hypothesis]] = translator.translate([source], [prefix], {"truncate_input": True})
    assert [hypothesis["ids"]] == truth.hypotheses(
        source, prefix, beam_size=1, max_input_length=10, max_decoding_length=POSITIONS
    )
    assert hypothesis["finish_reason"] == "cut"


def test_a_cut_keeps_the_language_behind_the_end_token(
    engine_model: Path, truth: EngineTruth
) -> None:
    """The older order of NLLB: pieces, end token, language."""
    translator = _core.Translator(str(engine_model), {**GREEDY, "max_input_length": "10"})
    source = [*range(20, 40), END, truth.languages[0]]
    prefix = [truth.languages[1]]
    [[hypothesis]] = translator.translate([source], [prefix], {"truncate_input": True})
    assert [hypothesis["ids"]] == truth.hypotheses(
        source, prefix, beam_size=1, max_input_length=10, max_decoding_length=POSITIONS
    )


def test_a_minimum_above_the_rows_own_limit(translator: Any, truth: EngineTruth) -> None:
    options = {"max_decoding_length_multiple": 1, "min_decoding_length": 8}
    with pytest.raises(_core.Error, match="min_decoding_length 8 is above this row's limit of 3"):
        translator.translate([[5, 6, END]], None, options)
    _answers_well(translator, truth)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"end_token": "[99999]"}, "token id 99999 is not in the target vocabulary"),
        ({"end_token": '["no such token"]'}, 'token "no such token" is not in the target'),
        ({"suppress_sequences": "[[-5]]"}, "-5"),
        ({"sampling_topk": 5000, "beam_size": 1}, "sampling_topk"),
    ],
    ids=str,
)
def test_options_that_this_vocabulary_cannot_serve(
    translator: Any, truth: EngineTruth, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(_core.Error) as failure:
        translator.translate([[10, END]], None, options)
    assert failure.value.code == "invalid_argument"
    assert text in str(failure.value)
    _answers_well(translator, truth)
