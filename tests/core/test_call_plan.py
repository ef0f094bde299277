# SPDX-License-Identifier: Apache-2.0
"""Which waiting rows go into one call."""

from __future__ import annotations

import pytest

from ct2_triton import _core


def _pick(
    lengths: list[int], may_join: list[bool] | None = None, rows: int = 8, tokens: int = 1000,
    beams: int = 1,
) -> list[int]:  # fmt: skip
    return _core.pick_rows(lengths, may_join or [True] * len(lengths), rows, tokens, beams)


def test_the_oldest_and_those_most_like_it() -> None:
    assert _pick([10, 50, 11, 9, 30, 10], rows=4) == [0, 2, 3, 5]


def test_of_equal_distance_the_older() -> None:
    assert _pick([10, 12, 8, 12], rows=2) == [0, 1]


def test_the_oldest_is_always_taken() -> None:
    assert _pick([500], tokens=10) == [0]
    assert _pick([500, 1], tokens=10) == [0]


def test_rows_that_may_not_join_stay() -> None:
    assert _pick([10, 10, 10], [True, False, True]) == [0, 2]


def test_the_budget_counts_padding() -> None:
    # Two rows padded to 20 are 40 tokens; the short ones still fit beside the first.
    assert _pick([10, 20, 9], tokens=30) == [0, 2]


def test_the_budget_counts_beams() -> None:
    assert _pick([10, 10, 10, 10], tokens=80, beams=4) == [0, 1]


def test_the_budget_counts_what_the_search_may_keep() -> None:
    """All rows of a call may run to the largest limit, so 3 x 400 is too much."""
    rows = ([10, 10, 10], [True] * 3, 8, 1000)
    assert _core.pick_rows(*rows, search_tokens=[100, 400, 100], max_search_tokens=1000) == [0, 1]
    assert _core.pick_rows(*rows, search_tokens=[100, 600, 100], max_search_tokens=1000) == [0, 2]


@pytest.mark.parametrize(
    ("waiting", "running", "workers", "share"),
    [(1, 0, 2, 1), (48, 0, 2, 24), (45, 3, 2, 24), (0, 0, 2, 1), (5, 0, 4, 2), (7, 0, 1, 7)],
)
def test_the_share_of_a_worker(waiting: int, running: int, workers: int, share: int) -> None:
    assert _core.fair_share(waiting, running, workers) == share
