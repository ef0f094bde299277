# SPDX-License-Identifier: Apache-2.0
"""A newer request with the same supersede_key ends the older one, and nobody else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import END, EngineTruth
from ct2_triton import _core

ONE_WORKER = {"inter_threads": "1", "compute_type": "float32", "max_batch_rows": "1"}
LONG = {"beam_size": 1, "min_decoding_length": 120, "max_decoding_length": 120}
SHORT = {"beam_size": 1, "max_decoding_length": 3}
TRIES = 300  # until the newer one comes at the right moment
TEXT = "superseded by a newer request with the same supersede_key"

Rows = list[list[int]]


class Sender(threading.Thread):
    """A client that waits for its rows."""

    def __init__(
        self, translator: Any, rows: Rows, options: dict[str, Any], key: str = "", **more: Any
    ) -> None:
        super().__init__(daemon=True)
        self._work = lambda: translator.translate(rows, None, options, supersede_key=key, **more)
        self.answers: Any = None
        self.error: _core.Error | None = None
        self.start()

    def run(self) -> None:
        try:
            self.answers = self._work()
        except _core.Error as error:
            self.error = error

    def superseded(self) -> bool:
        """Waits for the end."""
        self.join()
        if self.error is None:
            return False
        assert str(self.error) == TEXT
        assert self.error.code == "cancelled"
        return True


def _rows(count: int, first: int = 50) -> Rows:
    return [[300, first + i, 60, END] for i in range(count)]


def _wait(condition: Callable[[], bool], while_alive: threading.Thread) -> None:
    while not condition():
        assert while_alive.is_alive(), "the condition did not come true in time"


def _wait_or_end(condition: Callable[[], bool], sender: threading.Thread) -> None:
    while sender.is_alive() and not condition():
        pass


@pytest.fixture(params=["calls", "loop"])
def translator(request: pytest.FixtureRequest, engine_model: Path) -> Iterator[Any]:
    made = _core.Translator(str(engine_model), {**ONE_WORKER, "decoding": request.param})
    yield made
    assert made.supersede_keys == 0  # each key is forgotten with its request
    assert made.waiting == 0


@pytest.fixture
def busy(translator: Any) -> Iterator[Sender]:
    """Keeps the one worker busy with many rows, one after the other."""
    sender = Sender(translator, _rows(200), LONG, one_by_one=True)
    _wait(lambda: translator.waiting > 100, sender)
    yield sender
    assert not sender.superseded()
    assert sender.answers is not None


def test_rows_that_wait_are_dropped_and_answered_at_once(
    translator: Any, busy: Sender, truth: EngineTruth
) -> None:
    older = Sender(translator, _rows(5, first=600), SHORT, "a")
    _wait(lambda: translator.supersede_keys == 1, busy)
    newer = Sender(translator, _rows(1, first=700), SHORT, "a")
    assert older.superseded()
    assert busy.is_alive()  # nothing was run for it: hundreds of rows wait before
    assert not newer.superseded()
    [expected] = truth.hypotheses(_rows(1, first=700)[0], [], **SHORT)
    assert newer.answers[0][0]["ids"] == expected
    assert translator.superseded == 1


def test_other_keys_and_requests_without_one_are_left_alone(translator: Any, busy: Sender) -> None:
    others = [Sender(translator, _rows(1, first=600), SHORT, key) for key in ("b", "A", "a ", "")]
    older = Sender(translator, _rows(1, first=610), SHORT, "a")
    _wait(lambda: translator.supersede_keys == 4, busy)
    newer = Sender(translator, _rows(1, first=620), SHORT, "a")
    assert older.superseded()
    assert not any(sender.superseded() for sender in [*others, newer])


def test_an_equal_row_of_another_key_keeps_its_answer(
    translator: Any, busy: Sender, truth: EngineTruth
) -> None:
    """Equal rows share a run: the one that is superseded leaves it to the other."""
    row = _rows(1, first=600)
    older = Sender(translator, row, SHORT, "a")
    twin = Sender(translator, row, SHORT, "b")
    _wait(lambda: translator.supersede_keys == 2, busy)
    newer = Sender(translator, _rows(1, first=700), SHORT, "a")
    assert older.superseded()
    assert busy.is_alive()
    assert not twin.superseded()
    assert not newer.superseded()
    [expected] = truth.hypotheses(row[0], [], **SHORT)
    assert twin.answers[0][0]["ids"] == expected


def test_each_of_many_is_ended_by_the_next(translator: Any, busy: Sender) -> None:
    senders = [Sender(translator, _rows(2, first=400), SHORT, "a")]
    _wait(lambda: translator.supersede_keys == 1, busy)
    for i in range(1, 20):
        senders.append(Sender(translator, _rows(2, first=400 + i), SHORT, "a"))
        _wait(lambda: translator.superseded == len(senders) - 1, busy)
    assert [sender.superseded() for sender in senders] == [True] * 19 + [False]


def test_a_greedy_row_that_runs_ends_at_the_next_step(translator: Any, truth: EngineTruth) -> None:
    """The report of its call shows it: the row failed, in fewer steps than it was to take."""
    row = _rows(1, first=600)
    for _ in range(TRIES):
        calls = len(translator.calls)
        older = Sender(translator, row, LONG, "a")
        _wait_or_end(lambda: translator.supersede_keys == 1, older)
        newer = Sender(translator, _rows(1, first=700), SHORT, "a")
        was_superseded = older.superseded()
        assert not newer.superseded()
        reports = translator.reports[calls:]
        if was_superseded and reports[0]["failed_rows"] == 1:
            return
    pytest.fail("never superseded while it ran")


def test_an_equal_row_that_runs_leaves_the_run_to_the_other(
    translator: Any, truth: EngineTruth
) -> None:
    """The older one is answered between two steps, while the run goes on for its twin."""
    row = _rows(1, first=600)
    [expected] = truth.hypotheses(row[0], [], **LONG)
    for _ in range(TRIES):
        first = Sender(translator, _rows(3), LONG)
        _wait_or_end(lambda: translator.waiting > 0, first)
        older, twin = (Sender(translator, row, LONG, key) for key in ("a", "b"))
        first.join()
        newer = Sender(translator, _rows(1, first=700), SHORT, "a")
        was_superseded = older.superseded()
        ended_first = twin.is_alive()
        assert not twin.superseded()
        assert not newer.superseded()
        assert twin.answers[0][0]["ids"] == expected
        if was_superseded and ended_first:
            return
    # The tiny model is so quick that the moment may be missed every time: that is no failure.


def test_the_answer_of_a_beam_search_that_runs_is_thrown_away(
    translator: Any, truth: EngineTruth
) -> None:
    beam = {**LONG, "beam_size": 4}
    for _ in range(TRIES):
        older = Sender(translator, _rows(1, first=600), beam, "a")
        _wait_or_end(lambda: translator.supersede_keys == 1, older)
        _wait_or_end(lambda: translator.waiting == 0, older)
        newer = Sender(translator, _rows(1, first=700), SHORT, "a")
        was_superseded = older.superseded()
        assert not newer.superseded()
        if was_superseded:
            return
    pytest.fail("never superseded while it ran")


def test_a_request_that_has_its_answer_is_not_superseded(translator: Any) -> None:
    for _ in range(3):
        assert translator.translate(_rows(1), None, SHORT, supersede_key="a")
    assert translator.superseded == 0


@pytest.mark.parametrize("value", ["", "x" * 257, 7, True, 1.5])
def test_bad_keys_are_refused(value: Any) -> None:
    with pytest.raises(_core.Error, match="give a string of 1 to 256 bytes") as caught:
        _core.check_decoding_options({"supersede_key": value})
    assert 'parameter "supersede_key": the value ' in str(caught.value)
    for good in ("x", "x" * 256, "captions-7/spéaker 1"):
        assert _core.check_decoding_options({"supersede_key": good})["supersede_key"] == good
