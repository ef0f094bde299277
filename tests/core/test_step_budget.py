# SPDX-License-Identifier: Apache-2.0
"""Which rows of a decode loop take part in a step."""

from __future__ import annotations

import pytest

from ct2_triton import _core

GREEDY, BEAM = (1.0, False), (2.0, True)
STEPS = 10_000


def shares(*rows: tuple[float, bool]) -> list[float]:
    """The share of the steps that each row takes part in."""
    return [taken / STEPS for taken in _core.steps_taken(rows, STEPS)]


def test_light_rows_take_part_in_each_step() -> None:
    assert shares(GREEDY, BEAM, (129.0, False))[0] == 1


def test_rows_of_one_kind_are_not_slowed_down() -> None:
    assert shares(*[BEAM] * 40) == [1] * 40
    assert shares(*[(129.0, False)] * 3) == [1] * 3


def test_heavy_rows_cost_no_more_than_the_light_ones() -> None:
    rows = [GREEDY] * 10 + [BEAM] * 40
    greedy, beam = shares(*rows)[9:11]
    assert greedy == 1
    assert beam * 40 * BEAM[0] == pytest.approx(10, rel=0.01)


@pytest.mark.parametrize("costly", [1, 8, 32])
def test_a_costly_row_takes_no_more_time_than_any_other_heavy_row(costly: int) -> None:
    """As one that draws from the whole vocabulary beside beam searches."""
    beams = 4
    rows = [GREEDY, *[BEAM] * beams, *[(129.0, False)] * costly]
    budget = 7  # the least, in rows
    fair = min(1, budget / (beams + costly) / BEAM[0])
    found = shares(*rows)
    assert found[1 : 1 + beams] == pytest.approx([fair] * beams, rel=0.1)
    assert min(found) > 0
