# SPDX-License-Identifier: Apache-2.0
"""A newer request with the same supersede_key ends the older one, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import EngineTruth
from core.senders import LONG, SHORT, Sender, gate, rows_of, worker_held
from ct2_triton import _core
from support.waiting import wait_until

ONE_WORKER = {"inter_threads": "1", "compute_type": "float32", "max_batch_rows": "1"}


@pytest.fixture(params=["calls", "loop"])
def translator(request: pytest.FixtureRequest, engine_model: Path) -> Iterator[Any]:
    made = _core.Translator(str(engine_model), {**ONE_WORKER, "decoding": request.param})
    yield made
    assert made.supersede_keys == 0  # each key is forgotten with its request
    assert made.waiting == 0


def test_rows_that_wait_are_dropped_and_answered_at_once(
    translator: Any, truth: EngineTruth
) -> None:
    [row] = rows_of(1, first=700)
    with worker_held(translator):
        older = Sender(translator, rows_of(5, first=600), SHORT, "a")
        wait_until(lambda: translator.waiting == 5)
        newer = Sender(translator, [row], SHORT, "a")
        assert older.superseded()  # while no worker is free
        wait_until(lambda: translator.waiting == 1)
    assert not newer.superseded()
    assert newer.answers[0][0]["ids"] == truth.hypotheses(row, [], **SHORT)[0]
    assert translator.superseded == 1
    assert sum(translator.calls) == 2


def test_other_keys_and_requests_without_one_are_left_alone(translator: Any) -> None:
    with worker_held(translator):
        others = [
            Sender(translator, rows_of(1, first=600), SHORT, key) for key in ("b", "A", "a ", "")
        ]
        older = Sender(translator, rows_of(1, first=610), SHORT, "a")
        wait_until(lambda: translator.waiting == 5)
        newer = Sender(translator, rows_of(1, first=620), SHORT, "a")
        assert older.superseded()
    assert not any(sender.superseded() for sender in [*others, newer])


def test_an_equal_row_of_another_key_keeps_its_answer(translator: Any, truth: EngineTruth) -> None:
    """Equal rows share a run: the one that is superseded leaves it to the other."""
    [row] = rows_of(1, first=600)
    with worker_held(translator):
        older, twin = (Sender(translator, [row], SHORT, key) for key in ("a", "b"))
        wait_until(lambda: translator.waiting == 2)
        newer = Sender(translator, rows_of(1, first=700), SHORT, "a")
        assert older.superseded()
    assert not twin.superseded()
    assert not newer.superseded()
    assert twin.answers[0][0]["ids"] == truth.hypotheses(row, [], **SHORT)[0]


def test_each_of_many_is_ended_by_the_next(translator: Any) -> None:
    senders = []
    with worker_held(translator):
        for i in range(20):
            senders.append(Sender(translator, rows_of(2, first=400 + i), SHORT, "a"))
            wait_until(lambda i=i: translator.superseded == i and translator.waiting == 2)
    assert [sender.superseded() for sender in senders] == [True] * 19 + [False]


def _steps(translator: Any) -> int:
    return sum(loop["steps"] for loop in translator.loops)


def test_a_greedy_row_that_runs_ends_at_the_next_step(translator: Any, truth: EngineTruth) -> None:
    [row] = rows_of(1, first=700)
    before = _steps(translator)
    with gate(held_at=10) as step:
        older = Sender(translator, rows_of(1, first=600), LONG, "a", gate=step)
        step.wait()
        newer = Sender(translator, [row], SHORT, "a")
        wait_until(lambda: translator.superseded == 1)
    assert older.superseded()
    assert not newer.superseded()
    assert newer.answers[0][0]["ids"] == truth.hypotheses(row, [], **SHORT)[0]
    assert [report["failed_rows"] for report in translator.reports] == [1, 0]
    # Ten, the one that runs, and one that may have begun before the end was seen.
    assert _steps(translator) - before <= 12 + SHORT["max_decoding_length"]


def test_an_equal_row_that_runs_leaves_the_run_to_the_other(
    translator: Any, truth: EngineTruth
) -> None:
    """The older one is answered between two steps, while the run goes on for its twin."""
    [row] = rows_of(1, first=600)
    with gate(held_at=10) as step, gate() as next_step:
        with worker_held(translator):
            older = Sender(translator, [row], LONG, "a", gate=step)
            wait_until(lambda: translator.waiting == 1)
            # It is asked only once the older one no longer waits: at the step after that.
            twin = Sender(translator, [row], LONG, "b", gate=next_step)
            wait_until(lambda: translator.waiting == 2)
        step.wait()
        newer = Sender(translator, rows_of(1, first=700), SHORT, "a")
        wait_until(lambda: translator.superseded == 1)
        step.open()
        assert older.superseded()
        next_step.wait()
        assert twin.is_alive()  # held in the middle of its run
    assert not twin.superseded()
    assert not newer.superseded()
    assert twin.answers[0][0]["ids"] == truth.hypotheses(row, [], **LONG)[0]
    assert twin.answers[0][0]["grown"] == twin.answers[0][0]["ids"]


def test_a_beam_search_of_a_loop_ends_at_the_next_step(engine_model: Path) -> None:
    translator = _core.Translator(str(engine_model), {**ONE_WORKER, "decoding": "loop"})
    before = _steps(translator)
    with gate(held_at=10) as step:
        older = Sender(translator, rows_of(1, first=600), {**LONG, "beam_size": 4}, "a", gate=step)
        step.wait()
        newer = Sender(translator, rows_of(1, first=700), SHORT, "a")
        wait_until(lambda: translator.superseded == 1)
    assert older.superseded()
    assert not newer.superseded()
    assert [report["failed_rows"] for report in translator.reports] == [1, 0]
    # Ten, the one that runs, and one that may have begun before the end was seen.
    assert _steps(translator) - before <= 12 + SHORT["max_decoding_length"]


def test_the_answer_of_a_beam_search_that_runs_as_a_call_is_thrown_away(engine_model: Path) -> None:
    translator = _core.Translator(str(engine_model), {**ONE_WORKER, "decoding": "calls"})
    with gate() as start:
        beams = {**LONG, "beam_size": 4}
        older = Sender(translator, rows_of(1, first=600), beams, "a", gate=start)
        start.wait()
        newer = Sender(translator, rows_of(1, first=700), SHORT, "a")
        wait_until(lambda: translator.superseded == 1)
    assert older.superseded()
    assert not newer.superseded()
    assert LONG["max_decoding_length"] in [one["generated_tokens"] for one in translator.reports]


def test_a_request_that_has_its_answer_is_not_superseded(translator: Any) -> None:
    for _ in range(3):
        assert translator.translate(rows_of(1), None, SHORT, supersede_key="a")
    assert translator.superseded == 0


@pytest.mark.parametrize("value", ["", "x" * 257, 7, True, 1.5])
def test_bad_keys_are_refused(value: Any) -> None:
    with pytest.raises(_core.Error, match="give a string of 1 to 256 bytes") as caught:
        _core.check_decoding_options({"supersede_key": value})
    assert 'parameter "supersede_key": the value ' in str(caught.value)
    for good in ("x", "x" * 256, "captions-7/spéaker 1"):
        assert _core.check_decoding_options({"supersede_key": good})["supersede_key"] == good
