# SPDX-License-Identifier: Apache-2.0
"""Tensors of a request to rows, and rows of answers to tensors."""

from __future__ import annotations

from typing import Any

import pytest

from ct2_triton import _core

PAD = 1


def _tensor(*rows: list[int]) -> tuple[list[int], list[int]]:
    return [len(rows), len(rows[0]) if rows else 0], [value for row in rows for value in row]


def test_one_row_without_a_batch_dimension() -> None:
    assert _core.split_rows(([3], [7, 8, 9]), ([1], [5])) == [([7, 8, 9], [5])]


def test_a_single_row_keeps_its_trailing_pads() -> None:
    assert _core.split_rows(_tensor([7, PAD]), pad_id=PAD) == [([7, PAD], [])]


def test_several_rows_lose_their_padding() -> None:
    rows = _core.split_rows(
        _tensor([7, 8, 9], [7, PAD, PAD], [PAD, PAD, PAD]), _tensor([5, 6], [5, PAD], [PAD, PAD]),
        pad_id=PAD,
    )  # fmt: skip
    assert rows == [([7, 8, 9], [5, 6]), ([7], [5]), ([], [])]


def test_a_pad_inside_a_row_stays() -> None:
    assert _core.split_rows(_tensor([7, PAD, 9], [7, 8, 9]), pad_id=PAD)[0][0] == [7, PAD, 9]


@pytest.mark.parametrize("shape", [[2], [2, 1]])
def test_lengths_win_over_padding(shape: list[int]) -> None:
    rows = _core.split_rows(
        _tensor([7, 8, PAD], [7, 8, 9]), input_lengths=(shape, [3, 1]), pad_id=PAD
    )
    assert rows == [([7, 8, PAD], []), ([7], [])]


def test_drafts_are_rows_beside_the_sources() -> None:
    rows = _core.split_rows(
        _tensor([7, 8], [7, 9]), draft_ids=_tensor([4, 5, PAD], [PAD, PAD, PAD]), pad_id=PAD
    )
    assert rows == [([7, 8], [], [4, 5]), ([7, 9], [], [])]


def test_zero_rows_and_zero_ids() -> None:
    assert _core.split_rows(([0, 5], [])) == []
    assert _core.split_rows(([2, 0], [])) == [([], []), ([], [])]
    assert _core.split_rows(([1, 0], []), ([1, 0], [])) == [([], [])]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"input_ids": ([1, 2, 2], [1, 2, 3, 4])}, r"INPUT_IDS has shape \[1,2,2\]"),
        ({"input_ids": ([], [1])}, r"INPUT_IDS has shape \[\]"),
        (
            {"input_ids": _tensor([1], [2]), "target_prefix": _tensor([1])},
            r"TARGET_PREFIX has shape \[1,1\], which is 1 row\(s\), but INPUT_IDS has 2",
        ),
        (
            {"input_ids": _tensor([1], [2]), "draft_ids": _tensor([1])},
            r"DRAFT_IDS has shape \[1,1\], which is 1 row\(s\), but INPUT_IDS has 2",
        ),
        (
            {"input_ids": _tensor([1, 2]), "input_lengths": ([1], [3])},
            "INPUT_LENGTHS, row 0: length 3 does not fit the rows of INPUT_IDS; allowed are 0 to 2",
        ),
        (
            {"input_ids": _tensor([1, 2]), "input_lengths": ([1], [-1])},
            "INPUT_LENGTHS, row 0: length -1",
        ),
        (
            {"input_ids": _tensor([1, 2]), "input_lengths": ([2], [1, 1])},
            "INPUT_LENGTHS has shape",
        ),
        (
            {"input_ids": _tensor([1, 2]), "prefix_lengths": ([1], [1])},
            "PREFIX_LENGTHS is given without TARGET_PREFIX",
        ),
        (
            {"input_ids": _tensor([1]), "target_prefix": _tensor([4]),
             "prefix_lengths": ([1], [2])},
            "PREFIX_LENGTHS, row 0: length 2",
        ),
    ],
)  # fmt: skip
def test_tensors_that_do_not_fit(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(_core.Error, match=text) as failure:
        _core.split_rows(**arguments)
    assert failure.value.code == "invalid_argument"


def test_answers_are_padded() -> None:
    answer = _core.answer_tensors([[[5, 6, 7], [8]], [[9], [1, 2]]], batched=True, pad_id=0)
    assert answer["OUTPUT_IDS"] == ([2, 3], [5, 6, 7, 9, 0, 0])
    assert answer["OUTPUT_LENGTHS"] == ([2, 1], [3, 1])
    assert answer["HYPOTHESES"] == ([2, 2, 3], [5, 6, 7, 8, 0, 0, 9, 0, 0, 1, 2, 0])
    assert answer["HYPOTHESIS_LENGTHS"] == ([2, 2], [3, 1, 1, 2])
    assert answer["SCORES"][0] == answer["FINISH_REASON"][0] == [2, 2]


def test_a_row_with_fewer_hypotheses() -> None:
    answer = _core.answer_tensors([[[5], [6]], [[7]]], batched=True, pad_id=0)
    assert answer["HYPOTHESES"] == ([2, 2, 1], [5, 6, 7, 0])
    assert answer["HYPOTHESIS_LENGTHS"] == ([2, 2], [1, 1, 1, 0])
    assert answer["SCORES"][1][3] == float("-inf")
    assert answer["FINISH_REASON"][1] == ["stop", "stop", "stop", ""]


def test_one_row_without_a_batch_dimension_answers_so() -> None:
    answer = _core.answer_tensors([[[5, 6]]], batched=False, pad_id=0)
    assert answer["OUTPUT_IDS"] == ([2], [5, 6])
    assert answer["OUTPUT_LENGTHS"] == ([1], [2])
    assert answer["HYPOTHESES"] == ([1, 2], [5, 6])


def test_zero_rows_of_answers() -> None:
    answer = _core.answer_tensors([], batched=True, pad_id=0)
    assert answer["OUTPUT_IDS"] == ([0, 0], [])
    assert answer["HYPOTHESES"] == ([0, 0, 0], [])
    assert answer["FINISH_REASON"] == ([0, 0], [])
