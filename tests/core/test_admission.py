# SPDX-License-Identifier: Apache-2.0
"""How many waiting rows join a decode loop before its next step."""

from __future__ import annotations

import pytest

from ct2_triton import _core


def test_a_row_joins_an_idle_loop() -> None:
    assert _core.rows_to_admit(1, searches=0, running=0, running_all=0) == 1


def test_no_more_than_a_step_takes() -> None:
    assert _core.rows_to_admit(100, searches=60, running=60, running_all=60) == 4
    assert _core.rows_to_admit(100, searches=64, running=64, running_all=64) == 0


def test_loops_come_out_even() -> None:
    assert _core.rows_to_admit(10, searches=0, running=0, running_all=20, lanes=2) == 10
    assert _core.rows_to_admit(10, searches=12, running=12, running_all=20, lanes=2) == 3


@pytest.mark.parametrize(("searches", "company"), [(5, 1), (6, 1), (12, 2), (18, 3), (40, 4)])
def test_rows_wait_for_company_at_some_steps(searches: int, company: int) -> None:
    running = {"searches": searches, "running": searches, "running_all": searches}
    assert _core.rows_to_admit(company, **running) == company
    for held in range(3):
        assert _core.rows_to_admit(company - 1, **running, steps_held=held) == 0
    assert _core.rows_to_admit(company - 1, **running, steps_held=3) == company - 1


def test_beside_a_search_of_many_beams_nobody_waits_for_company() -> None:
    """Its steps are long: 3 of them are longer than many greedy rows."""
    assert _core.rows_to_admit(1, searches=1, running=32, running_all=32) == 1
