# SPDX-License-Identifier: Apache-2.0
"""How many rows may wait, of whom, and what becomes of those whose client has gone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import END
from ct2_triton import _core

ONE_WORKER = {
    "inter_threads": "1",
    "compute_type": "float32",
    "max_batch_rows": "1",
    "decoding": "calls",
}
LONG = {"beam_size": 1, "min_decoding_length": 120, "max_decoding_length": 120}
SHORT = {"beam_size": 1, "max_decoding_length": 2}


class Sender(threading.Thread):
    """A client that waits for its rows."""

    def __init__(
        self, translator: Any, rows: list[list[int]], *arguments: Any, **more: Any
    ) -> None:
        super().__init__(daemon=True)
        self._work = lambda: translator.translate(rows, None, *arguments, **more)
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self._work()
        except _core.Error as error:
            self.error = error


def _rows(count: int, first: int = 50) -> list[list[int]]:
    return [[300, first + i, 60, END] for i in range(count)]


def _seen(condition: Callable[[], bool], while_alive: threading.Thread) -> bool:
    """Whether `condition` comes true before the thread ends."""
    while while_alive.is_alive():
        if condition():
            return True
    return False


@pytest.fixture
def busy(engine_model: Path) -> Iterator[Sender]:
    """Keeps the one worker busy with many rows, one after the other, most of them waiting."""
    translator = _core.Translator(str(engine_model), {**ONE_WORKER, "max_queued_rows": "10000"})
    sender = Sender(translator, _rows(300), LONG, one_by_one=True)
    assert _seen(lambda: translator.waiting > 100, sender)
    sender.translator = translator  # type: ignore[attr-defined]
    yield sender
    sender.join()


def test_each_model_has_a_bound_of_its_own(engine_model: Path, busy: Any) -> None:
    """They share weights, workers and queue; the other one's 300 rows fill no place of this one."""
    small = _core.Translator(str(engine_model), {**ONE_WORKER, "max_queued_rows": "2"})
    mine = Sender(small, _rows(2, first=600), SHORT)
    assert _seen(lambda: small.waiting == 2 and busy.translator.waiting > 10, busy)
    mine.join()
    assert mine.error is None


def test_equal_rows_count_each(engine_model: Path, busy: Any) -> None:
    small = _core.Translator(str(engine_model), {**ONE_WORKER, "max_queued_rows": "3"})
    senders = [Sender(small, _rows(1, first=600), SHORT) for _ in range(8)]
    most = 0
    while any(sender.is_alive() for sender in senders):
        most = max(most, small.waiting)
    assert most == 3
    assert all(sender.error is None for sender in senders)


def test_rows_whose_clients_have_gone_make_room(engine_model: Path, busy: Any) -> None:
    """A full queue is searched for them: the next request need not wait until a worker comes."""
    small = _core.Translator(str(engine_model), {**ONE_WORKER, "max_queued_rows": "2"})
    gone = [Sender(small, _rows(1, first=600 + i), SHORT, 0) for i in range(2)]
    assert _seen(lambda: small.waiting == 2, busy)
    next_one = Sender(small, _rows(1, first=700), SHORT)
    assert _seen(lambda: not any(sender.is_alive() for sender in gone), busy)
    assert all("cancelled" in str(sender.error) for sender in gone)
    next_one.join()
    assert next_one.error is None


@pytest.mark.parametrize("decoding", ["calls", "loop"])
def test_a_request_of_many_rows_takes_turns_with_those_that_come_later(
    engine_model: Path, decoding: str
) -> None:
    """It does not hold up a request of one row until its last row has run."""
    translator = _core.Translator(
        str(engine_model), {**ONE_WORKER, "max_queued_rows": "10000", "decoding": decoding}
    )
    many = Sender(translator, _rows(400), LONG)
    assert _seen(lambda: translator.waiting > 100, many)
    one = Sender(translator, _rows(1, first=600), SHORT)
    assert _seen(lambda: not one.is_alive() and translator.waiting > 10, many)
    assert one.error is None
    many.join()
    assert many.error is None
