# SPDX-License-Identifier: Apache-2.0
"""How many rows may wait, of whom, and what becomes of those whose client has gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.senders import LONG, SHORT, Sender, rows_of, worker_held
from ct2_triton import _core
from support.waiting import wait_until

ONE_WORKER = {
    "inter_threads": "1",
    "compute_type": "float32",
    "max_batch_rows": "1",
    "decoding": "calls",
}


@pytest.fixture
def large(engine_model: Path) -> Any:
    """A model of which many rows may wait."""
    return _core.Translator(str(engine_model), {**ONE_WORKER, "max_queued_rows": "10000"})


def _small(engine_model: Path, rows: int) -> Any:
    """One that shares weights, worker and queue with it, and of which few may wait."""
    return _core.Translator(str(engine_model), {**ONE_WORKER, "max_queued_rows": str(rows)})


def test_each_model_has_a_bound_of_its_own(engine_model: Path, large: Any) -> None:
    """The other one's 100 rows fill no place of this one."""
    small = _small(engine_model, 2)
    with worker_held(large):
        others = Sender(large, rows_of(100), SHORT)
        wait_until(lambda: large.waiting == 100)
        mine = Sender(small, rows_of(2, first=600), SHORT)
        wait_until(lambda: small.waiting == 2)
    assert mine.ended().error is None
    assert others.ended().error is None


def _most_waiting_of_equal_rows(model: Any, large: Any) -> int:
    """Most rows that wait while 64 threads send the same one."""
    with worker_held(large):
        senders = [Sender(model, rows_of(1, first=600), SHORT) for _ in range(64)]
        wait_until(lambda: model.waiting == 3)
    most = 0
    while any(sender.is_alive() for sender in senders):
        most = max(most, model.waiting)
    assert [sender.error for sender in senders] == [None] * 64
    return most


def test_equal_rows_count_each(engine_model: Path, large: Any) -> None:
    """One call takes all that wait, so that all other threads see three free places at once."""
    small = _small(engine_model, 3)
    assert max(_most_waiting_of_equal_rows(small, large) for _ in range(5)) <= 3


def test_rows_whose_clients_have_gone_make_room(engine_model: Path, large: Any) -> None:
    """A full queue is searched for them: the next request need not wait until a worker comes."""
    small = _small(engine_model, 2)
    with worker_held(large):
        gone = [Sender(small, rows_of(1, first=600 + i), SHORT, cancel_after=0) for i in range(2)]
        wait_until(lambda: small.waiting == 2)
        next_one = Sender(small, rows_of(1, first=700), SHORT)
        assert all("cancelled" in str(sender.ended().error) for sender in gone)
        wait_until(lambda: small.waiting == 1)
    assert next_one.ended().error is None


@pytest.mark.parametrize("decoding", ["calls", "loop"])
def test_a_request_of_many_rows_takes_turns_with_those_that_come_later(
    engine_model: Path, decoding: str
) -> None:
    """It does not hold up a request of one row until its last row has run."""
    translator = _core.Translator(str(engine_model), {**ONE_WORKER, "decoding": decoding})
    with worker_held(translator):
        many = Sender(translator, rows_of(60), LONG)
        wait_until(lambda: translator.waiting == 60)
        one = Sender(translator, rows_of(1, first=600), {**SHORT, "max_decoding_length": 2})
        wait_until(lambda: translator.waiting == 61)
    assert many.ended().error is None
    assert one.ended().error is None
    # A worker reports its calls in order: first the held row, then these.
    ran = [report["generated_tokens"] for report in translator.reports]
    assert ran.index(2) <= 10
    assert sum(translator.calls) == 62


@pytest.mark.parametrize(
    ("requests", "taken", "rows", "ahead"),
    [
        ([], 0, 1, 0),
        ([1] * 40, 0, 1, 40),  # of small requests, all come first
        ([1] * 40, 30, 1, 10),
        ([256], 0, 1, 1),
        ([256], 20, 1, 0),
        ([256], 20, 3, 2),  # a row of each in turn
        ([256, 256], 0, 1, 2),
        ([256, 256, 256], 0, 4, 12),
    ],
)
def test_how_many_rows_a_new_one_follows(
    requests: list[int], taken: int, rows: int, ahead: int
) -> None:
    assert _core.rows_ahead(requests, taken, rows) == ahead


@pytest.mark.parametrize("decoding", ["calls", "loop"])
def test_a_row_that_equals_a_late_row_of_a_long_request_keeps_its_own_place(
    engine_model: Path, decoding: str
) -> None:
    """Both run once, where the earlier of the two would have run."""
    translator = _core.Translator(str(engine_model), {**ONE_WORKER, "decoding": decoding})
    short = {**SHORT, "max_decoding_length": 2}
    rows = rows_of(60)
    with worker_held(translator):
        many = Sender(translator, rows, [LONG] * 59 + [short])
        wait_until(lambda: translator.waiting == 60)
        one = Sender(translator, rows[-1:], short)
        wait_until(lambda: translator.waiting == 61)
    assert many.ended().answers[-1] == one.ended().answers[0]
    ran = [report["generated_tokens"] for report in translator.reports]
    equal = ran.index(2 * 2)  # the two rows of one run
    assert equal <= 10
    assert len(ran) == 61
