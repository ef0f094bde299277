# SPDX-License-Identifier: Apache-2.0
"""How many waiting rows join a decode loop before its next step."""

from __future__ import annotations

import pytest

from ct2_triton import _core


def test_a_row_joins_an_idle_loop() -> None:
    assert _core.sequences_to_admit(1, rows=0, sequences=0, all_sequences=0) == 1


def test_no_more_than_a_step_takes() -> None:
    assert _core.sequences_to_admit(100, rows=60, sequences=60, all_sequences=60) == 4
    assert _core.sequences_to_admit(100, rows=64, sequences=64, all_sequences=64) == 0


def test_loops_come_out_about_even() -> None:
    """A few rows too many are better than to wait for the turn of another loop."""
    assert _core.sequences_to_admit(10, rows=0, sequences=0, all_sequences=20, lanes=2) == 10
    assert _core.sequences_to_admit(10, rows=5, sequences=12, all_sequences=20, lanes=2) == 3
    assert _core.sequences_to_admit(10, rows=12, sequences=12, all_sequences=20, lanes=2) == 3 + 2
    assert _core.sequences_to_admit(2, rows=24, sequences=24, all_sequences=46, lanes=2) == 0
    assert _core.sequences_to_admit(4, rows=24, sequences=24, all_sequences=44, lanes=2) == 4
    assert _core.sequences_to_admit(4, rows=28, sequences=28, all_sequences=44, lanes=2) == 0


@pytest.mark.parametrize(("rows", "few"), [(5, 1), (6, 1), (12, 2), (18, 3), (40, 4)])
def test_few_rows_are_held_back_until_the_first_has_waited_for_a_step(rows: int, few: int) -> None:
    running = {"rows": rows, "sequences": rows, "all_sequences": rows}
    assert _core.sequences_to_admit(few, **running) == few
    for waited in (0.0, 0.99):
        assert _core.sequences_to_admit(few - 1, **running, steps_waited=waited) == 0
    assert _core.sequences_to_admit(few - 1, **running, steps_waited=1.0) == few - 1


def test_few_places_of_a_full_loop_are_held_back_for_three_steps() -> None:
    """All rows wait for long there, so that their time says nothing."""
    full = {"rows": 62, "sequences": 62, "all_sequences": 62, "steps_waited": 99.0}
    for held in range(3):
        assert _core.sequences_to_admit(100, **full, steps_held=held) == 0
    assert _core.sequences_to_admit(100, **full, steps_held=3) == 2
    assert _core.sequences_to_admit(100, **{**full, "sequences": 60}) == 4


def test_beside_a_search_of_many_beams_no_row_is_held_back() -> None:
    """Its steps are long: one of them takes as long as many of greedy rows."""
    assert _core.sequences_to_admit(1, rows=1, sequences=32, all_sequences=32) == 1


NARROW = (1, 5, 10)  # beams, tokens, bytes
WIDE = (32, 5, 400)


def test_rows_go_in_turn_while_there_is_room() -> None:
    assert _core.take_rows([NARROW, WIDE, NARROW, WIDE, NARROW]) == [0, 1, 2]
    assert _core.take_rows([WIDE, NARROW], rows=1) == [0]  # at least one, even beyond the budget


def test_a_quarter_of_a_step_is_kept_for_rows_of_one_sequence() -> None:
    assert _core.rows_past_wide(0) == 16
    assert _core.rows_past_wide(10) == 6
    assert _core.rows_past_wide(16) == _core.rows_past_wide(64) == 0
    assert _core.rows_past_wide(0, max_sequences=1) == 1


def test_narrow_rows_go_past_wide_ones_when_the_loop_is_full() -> None:
    """As many as are kept for them, the oldest first; no wide row goes past another."""
    waiting = [WIDE, NARROW, WIDE, NARROW, NARROW, (4, 5, 10)]
    assert _core.take_rows(waiting, rows=0, narrow_rows=2) == [1, 3]
    assert _core.take_rows(waiting, rows=0, narrow_rows=0) == []
    assert _core.take_rows([NARROW, NARROW], rows=0, narrow_rows=1) == [0]


def test_a_full_loop_looks_at_no_wide_rows_but_the_first() -> None:
    """Thousands may wait, and it comes back after each step."""
    waiting = [4] * 1000 + [1, 4, 1] + [4] * 1000
    assert _core.take_past_wide(waiting, narrow_rows=2) == ([1000, 1002], 3)
    assert _core.take_past_wide(waiting, narrow_rows=1) == ([1000], 3)
    assert _core.take_past_wide([1, 4, 1], narrow_rows=2) == ([0, 2], 3)
    assert _core.take_past_wide([4] * 1000, narrow_rows=2) == ([], 1)


def test_a_full_loop_looks_at_no_tenant_that_has_wide_rows_alone() -> None:
    """The tenant whose wide row was passed over is not the first to have a narrow one."""
    assert _core.take_past_wide([4, 4, 4, 4, 1, 1], narrow_rows=2, tenants=2) == ([5, 4], 3)
    waiting = [4] * 1000 + [4] * 998 + [1, 1]
    assert _core.take_past_wide(waiting, narrow_rows=2, tenants=1000) == ([1998, 1999], 3)


def test_narrow_rows_that_go_past_are_encoded_within_the_budget() -> None:
    assert _core.take_rows([WIDE, *[(1, 60, 10)] * 4], rows=0, tokens=150) == [1, 2]
    assert _core.take_rows([WIDE, (1, 600, 10)], rows=0, tokens=150) == [1]


def test_rows_go_past_long_ones_that_are_not_encoded_soon() -> None:
    """Those that go on to be encoded beside the loops take none of the budget."""
    waiting = [(1, 200, 10), (1, 200, 10), (1, 100, 10), (2, 200, 10), (1, 50, 10), (1, 200, 10)]
    assert _core.take_rows(waiting, long_rows=3) == [0, 1, 2, 3, 4]
    assert _core.take_rows(waiting, long_rows=1) == [0, 2, 4]
    assert _core.take_rows(waiting, long_rows=0) == [2, 4]
    assert _core.take_rows(waiting) == [0]  # a loop encodes it, and nothing else at this step


def test_wide_rows_together_leave_a_quarter_of_the_memory() -> None:
    running = {"bytes_in_use": 400, "wide_bytes": 400, "most_bytes": 1000}
    assert _core.take_rows([(2, 5, 350), (2, 5, 1)], **running) == [0]
    assert _core.take_rows([(2, 5, 351), (2, 5, 1), NARROW], **running) == [2]


def test_one_wide_row_may_have_all_memory_that_is_left() -> None:
    assert _core.take_rows([(2, 5, 990)], bytes_in_use=10) == [0]
    assert _core.take_rows([(2, 5, 5000)], anyway=1) == [0]


def test_a_wide_row_that_waits_for_memory_gets_it() -> None:
    """Rows that go past it leave as much as it needs; if all is too little, none goes past."""
    waiting = [(2, 5, 900), (1, 5, 60), (1, 5, 60)]
    running = {"bytes_in_use": 300, "wide_bytes": 300}
    assert _core.take_rows(waiting, **running) == [1]
    assert _core.take_rows([(2, 5, 1001), NARROW], **running) == []
    # Once the wide rows have ended, only that narrow row runs.
    assert _core.take_rows([waiting[0], waiting[2]], bytes_in_use=60) == [0]


def test_narrow_rows_that_find_no_memory_wait_in_turn() -> None:
    running = {"bytes_in_use": 995, "wide_bytes": 0}
    assert _core.take_rows([NARROW, (1, 5, 1), WIDE], **running) == []


def test_under_a_stream_of_narrow_rows_wide_ones_get_their_turn() -> None:
    """Narrow rows end at every step and new ones come; the wide rows take three quarters."""
    running = [1] * 64
    waiting = [WIDE, WIDE, WIDE]
    steps = 0
    while WIDE in waiting and steps < 1000:
        steps += 1
        running.remove(1)
        if steps % 50 == 0 and 32 in running:
            running.remove(32)
        waiting.append(NARROW)
        narrow = running.count(1)
        room = _core.sequences_to_admit(
            99, rows=len(running), sequences=sum(running), all_sequences=sum(running)
        )
        taken = _core.take_rows(
            waiting, rows=room, narrow_rows=_core.rows_past_wide(narrow), most_bytes=10**6
        )
        running += [waiting[i][0] for i in taken]
        waiting = [row for i, row in enumerate(waiting) if i not in taken]
        assert narrow > 0
    assert steps < 200
