# SPDX-License-Identifier: Apache-2.0
"""Whose work runs next on the cores, in simulated time."""

from __future__ import annotations

from collections import Counter

import pytest

from ct2_triton import _core

MANY = 1000


def _until(end: int, pieces: list[tuple[int, int]]) -> Counter[int]:
    return Counter(work for start, work in pieces if start < end)


def test_models_get_equal_time() -> None:
    pieces = _core.share_cores(1, [(0, 1, 10, MANY, 1), (1, 1, 30, MANY, 1)])
    count = _until(3000, pieces)
    assert abs(count[0] - 150) <= 3
    assert abs(count[1] - 50) <= 1


def test_work_for_all_cores_is_not_starved_by_pieces_that_never_end_together() -> None:
    """Pieces of 10 and of 7 on two cores: without a reservation both are never free."""
    works = [(0, 1, 10, MANY, 1), (1, 1, 7, MANY, 1), (2, 2, 5, 40, 1)]
    last = max(start for start, work in _core.share_cores(2, works) if work == 2)
    # 40 pieces of 10 in all, a third of the time of two cores, and what waits for the second core.
    assert last < 40 * 10 * 3 / 2 * 1.5


def test_a_core_is_not_kept_for_more_than_a_models_share() -> None:
    """A second piece on two cores would be more than its share: others may use the third."""
    works = [(0, 2, 100, 10, 4), (1, 1, 1, 50, 1)]
    pieces = _core.share_cores(3, works)
    assert _until(60, pieces)[1] == 50


def test_a_model_counts_once_with_loops_and_calls() -> None:
    both_kinds = [(0, 1, 10, MANY, 2), (0, 1, 10, MANY, 2), (2, 1, 10, MANY, 2)]
    count = _until(6000, _core.share_cores(2, both_kinds))
    assert abs(count[2] - (count[0] + count[1])) <= 10
    assert abs(count[0] - count[1]) <= 10


def test_cores_that_get_free_are_used_by_all_that_fits() -> None:
    """Behind a piece on both cores two others start together."""
    pieces = _core.share_cores(2, [(0, 2, 100, 1, 1), (1, 1, 10, 1, 1), (2, 1, 10, 1, 1)])
    assert pieces == [(0, 0), (100, 1), (100, 2)]


@pytest.mark.parametrize("other", [0, 1], ids=["kind of work", "model"])
def test_whoever_comes_first_behind_an_idle_time_has_saved_up_nothing(other: int) -> None:
    """The one that had used 1,000 before is not behind it by as much."""
    works = [(0, 1, 10, 100, 1), (other, 1, 10, 0, 1)]
    later = [(2000, 1, MANY), (2001, 0, 100)]
    pieces = [one for one in _core.share_cores(1, works, later) if one[0] >= 2000]
    count = _until(4000, pieces)
    assert abs(count[0] - count[1]) <= 2
