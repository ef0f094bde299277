# SPDX-License-Identifier: Apache-2.0
"""Decode loops under the scheduler: failures in the middle, turns of models, joins of rows."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import END, EngineTruth, ragged_rows
from core.senders import LONG, Sender, gate, rows_of, worker_held
from ct2_triton import _core
from support.tiny import tiny_engine_model
from support.waiting import wait_until
from tiny_families import TinyOptions

LIMIT = {"beam_size": 1, "max_decoding_length": 40}
LOOP = {"compute_type": "float32", "decoding": "loop"}
# Rows wait while a test holds the loop: no other thread encodes them.
ONE_THREAD = {**LOOP, "inter_threads": "1", "intra_threads": "1"}


@pytest.mark.parametrize("cause", ["library", "memory"])
@pytest.mark.parametrize(
    "failing",
    [{"failing_steps": {1}}, {"failing_steps": {7, 8, 20}}, {"failing_admissions": {1, 3}}],
    ids=repr,
)
def test_what_fails_in_company_is_run_alone(
    engine_model: Path, truth: EngineTruth, failing: dict[str, Any], cause: str
) -> None:
    """Every row is answered once, rightly, and reports no id of its answer twice."""
    sources = ragged_rows(truth, 40, seed=21)[0]
    [result] = _core.run_failing_loops(str(engine_model), [sources], LIMIT, cause=cause, **failing)
    expected = [truth.hypotheses(source, [], **LIMIT)[0] for source in sources]
    assert result["ids"] == expected
    assert result["grown"] == expected
    assert set(result["times_answered"]) == {1}
    assert result["reported_rows"] == len(sources)


@pytest.mark.parametrize("cause", ["library", "memory"])
def test_a_further_loop_that_cannot_be_made_costs_no_row_its_answer(
    engine_model: Path, truth: EngineTruth, cause: str
) -> None:
    """Those that wait join the loop that runs."""
    sources = ragged_rows(truth, 80, seed=23)[0]
    [result] = _core.run_failing_loops(
        str(engine_model), [sources], LIMIT, failing_loops=set(range(2, 10_000)), cause=cause
    )
    assert result["loops_refused"] > 0
    expected = [truth.hypotheses(source, [], **LIMIT)[0] for source in sources]
    assert result["ids"] == result["grown"] == expected
    assert set(result["times_answered"]) == {1}
    assert result["rows_in_loop"] == len(sources)


@pytest.mark.parametrize(
    ("failing_steps", "cause", "given_up"),
    [
        ({1, 2, 3}, "library", True),
        ({1, 2, 4, 5}, "library", False),  # those between went well
        ({1, 2, 3, 4}, "memory", False),  # is short, which is not the loop's fault
        ({1, 2, 3, 4}, "memory of a GPU", False),
    ],
)
def test_a_loop_that_keeps_failing_is_given_up_for_calls(
    engine_model: Path, truth: EngineTruth, failing_steps: set[int], cause: str, given_up: bool
) -> None:
    """Each step fails with other rows, so it is none of theirs. All are answered rightly."""
    rows = ragged_rows(truth, 420, seed=21)[0]
    requests = [rows[:400], rows[400:]]
    first, second = _core.run_failing_loops(
        str(engine_model), requests, LIMIT, failing_steps=failing_steps, cause=cause, loops=1
    )
    expected = [truth.hypotheses(row, [], **LIMIT)[0] for row in rows]
    assert first["ids"] + second["ids"] == first["grown"] + second["grown"] == expected
    assert set(first["times_answered"] + second["times_answered"]) == {1}
    assert second["loop_failure"] == ("a failure made by a test" if given_up else "")
    assert second["rows_in_loop"] == (0 if given_up else 20)


def test_a_model_whose_loop_cannot_be_made_fails_its_load(engine_model: Path) -> None:
    """Not its first request."""
    with pytest.raises(RuntimeError, match="a failure made by a test"):
        _core.run_failing_loops(str(engine_model), [[[300, 50, END]]], LIMIT, failing_loops={1})
    [result] = _core.run_failing_loops(str(engine_model), [[[300, 50, END]]], LIMIT)
    assert result["rows_in_loop"] == 1


def _steps(translator: Any) -> int:
    return sum(loop["steps"] for loop in translator.loops)


def _steps_meanwhile(busy: Any, ask: Callable[[], object]) -> float:
    """Steps of 640 long rows of a model until something is answered; infinite if they end first."""
    with gate(held_at=3) as held:
        sender = Sender(busy, rows_of(640), LONG, gate=held)
        held.wait()
    before = _steps(busy)
    ask()
    steps = _steps(busy) - before if sender.is_alive() else math.inf
    sender.ended()
    return steps


def test_a_model_with_one_short_row_is_not_starved(tmp_path: Path, engine_model: Path) -> None:
    """Turns are fair by time: beside 64 long rows of another model it needs few of their steps."""
    shutil.copytree(engine_model, tmp_path / "other")
    few = _core.Translator(str(tmp_path / "other"), LOOP)
    many = _core.Translator(str(engine_model), LOOP)
    options = {"beam_size": 1, "max_decoding_length": 20}

    def ask() -> None:
        few.translate([[300, 50, 60, END]], None, options)

    # 20 steps of one row take the time of fewer steps of 64 rows. One of ten: this thread, too,
    # must be given its turn before it can count.
    assert any(_steps_meanwhile(many, ask) < 100 for _ in range(10))


def test_rows_of_a_model_are_in_one_loop_while_others_want_the_threads(
    tmp_path: Path, engine_model: Path
) -> None:
    """As many models as cores are busy: each row of theirs joins the loop that is there."""
    models = []
    for i in range(_core.usable_cores()):
        shutil.copytree(engine_model, tmp_path / str(i))
        models.append(_core.Translator(str(tmp_path / str(i)), LOOP))
    with ExitStack() as held:
        for model in models:  # until all of them have rows, no thread is free
            held.enter_context(worker_held(model))
        senders = [Sender(model, rows_of(200), LONG) for model in models]
        for model in models:
            wait_until(lambda model=model: model.waiting == 200)
    # Once the first of them is done, its thread is free for the others.
    wait_until(lambda: not all(sender.is_alive() for sender in senders))
    steps_of = [sorted(loop["steps"] for loop in model.loops) for model in models]
    for sender in senders:
        assert sender.ended().error is None
    in_largest_loops = sum(steps[-1] for steps in steps_of)
    assert sum(map(sum, steps_of)) < 2 * in_largest_loops


def test_rows_join_a_loop_that_runs(engine_model: Path, truth: EngineTruth) -> None:
    translator = _core.Translator(str(engine_model), ONE_THREAD)
    sources, prefixes = ragged_rows(truth, 60, seed=5)
    [before] = translator.loops
    with gate(held_at=2) as step:
        first = Sender(translator, rows_of(1), LONG, gate=step)
        step.wait()
        joining = [
            Sender(translator, [source], LIMIT, prefix=[prefix])
            for source, prefix in zip(sources, prefixes, strict=True)
        ]
        wait_until(lambda: translator.waiting == 60)
    for sender, source, prefix in zip(joining, sources, prefixes, strict=True):
        assert [sender.ended().answers[0][0]["ids"]] == truth.hypotheses(source, prefix, **LIMIT)
    assert first.ended().error is None
    [loop] = translator.loops
    assert loop["encoded_rows"] - before["encoded_rows"] == 61
    assert loop["steps"] - before["steps"] < 120 + 60  # they shared steps


def test_a_lone_row_joins_many_once_it_has_waited_for_a_step(engine_model: Path) -> None:
    """It is held back to be encoded with others, which do not come."""
    translator = _core.Translator(str(engine_model), ONE_THREAD)
    *many, last = rows_of(19)
    with gate(held_at=1) as joined:
        with gate(held_at=3) as step:
            running = Sender(translator, many, _exactly(100), gate=step)
            step.wait()
            before = _steps(translator)
            joining = Sender(translator, [last], _exactly(5), gate=joined)
            wait_until(lambda: translator.waiting == 1)
        joined.wait()
        assert _steps(translator) - before < 5
    assert joining.ended().error is None
    assert running.ended().error is None


@pytest.mark.parametrize("full", ["steps", "memory"])
def test_a_greedy_row_joins_a_loop_that_wide_rows_fill(
    engine_model: Path, truth: EngineTruth, full: str
) -> None:
    """It need not wait until one of two searches of 32 beams has ended after 100 steps."""
    wide = {"beam_size": 32, "min_decoding_length": 100, "max_decoding_length": 100}
    short = {"beam_size": 1, "min_decoding_length": 20, "max_decoding_length": 20}
    *sources, last = rows_of(3)
    config = dict(ONE_THREAD)
    if full == "memory":  # that of two, less a byte
        model = _core.LoopModel(str(engine_model), {"compute_type": "float32"})
        config["max_cache_bytes"] = str(2 * sum(model.cache_bytes(sources[0], [], wide)) - 1)
    translator = _core.Translator(str(engine_model), config)
    with gate(held_at=10) as held:
        with worker_held(translator):
            filling = [Sender(translator, [source], wide) for source in sources]
            wait_until(lambda: translator.waiting == 2)
            before = _steps(translator)
            greedy = Sender(translator, [last], short, gate=held)
            wait_until(lambda: translator.waiting == 3)
        held.wait()
        assert _steps(translator) - before < 40
    [answer] = greedy.ended().answers
    assert [answer[0]["ids"]] == truth.hypotheses(last, [], **short)
    for sender, source in zip(filling, sources, strict=True):
        [hypotheses] = sender.ended().answers
        assert [row["ids"] for row in hypotheses] == truth.hypotheses(source, [], **wide)


@pytest.mark.skipif(_core.usable_cores() < 2, reason="one core runs one loop")
def test_a_loop_that_holds_more_than_its_places_leaves_those_of_another(
    engine_model: Path, truth: EngineTruth
) -> None:
    """A search of 8 beams is held in a loop of 4 sequences, and a second one runs beside it."""
    wide = _exactly(20, beams=8)
    config = {**LOOP, "inter_threads": "2", "max_batch_rows": "4"}
    translator = _core.Translator(str(engine_model), config)
    first, second = rows_of(2)
    with gate(held_at=2) as step:
        held = Sender(translator, [first], wide, gate=step)
        step.wait()
        beside = Sender(translator, [second], wide)
        wait_until(lambda: not beside.is_alive(), "the other loop's search")
    for sender, source in ((held, first), (beside, second)):
        [hypotheses] = sender.ended().answers
        assert hypotheses[0]["ids"] == truth.hypotheses(source, [], **wide)[0]


def _exactly(tokens: int, beams: int = 1) -> dict[str, Any]:
    return {"beam_size": beams, "min_decoding_length": tokens, "max_decoding_length": tokens}


def _memory_of(directory: Path, row: list[int], options: dict[str, Any]) -> int:
    model = _core.LoopModel(str(directory), {"compute_type": "float32"})
    return sum(model.cache_bytes(row, [], options))


def test_memory_that_one_loop_was_promised_is_not_given_to_another(engine_model: Path) -> None:
    """A row has been taken, and has no memory yet: the next one waits all the same."""
    (first, long), (second, short) = zip(rows_of(2), map(_exactly, (100, 20)), strict=True)
    most = _memory_of(engine_model, first, long) + _memory_of(engine_model, second, short) - 1
    translator = _core.Translator(
        str(engine_model), {**LOOP, "inter_threads": "2", "max_cache_bytes": str(most)}
    )
    with gate() as taken:
        holding = Sender(translator, [first], long, gate=taken)
        taken.wait()
        waiting = Sender(translator, [second], short)
        wait_until(lambda: translator.waiting == 1 or waiting.answers is not None)
    assert holding.ended().answers is not None
    assert waiting.ended().answers is not None
    # A row reports its end before its memory is free.
    assert [report["steps"] for report in translator.reports] == [100, 20]


def _threads() -> dict[str, str]:
    """State, and how often it has waited, of each thread of this process."""
    found = {}
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has just ended
            lines = (thread / "status").read_text().splitlines()
            found[thread.name] = "".join(one for one in lines if one.startswith(("State", "volun")))
    return found


def _rest(others: Collection[str]) -> bool:
    """Whether all threads but these sleep, and none has run meanwhile."""
    seen = []
    for _ in range(2):
        time.sleep(0.1)
        seen.append({name: now for name, now in _threads().items() if name not in others})
    before, after = seen
    return (
        before == after and len(after) > 0 and all("S (sleeping)" in now for now in after.values())
    )


def test_threads_rest_while_no_row_that_waits_has_room(engine_model: Path) -> None:
    """One search is held at a step, and the next one has no room beside it."""
    first, second = rows_of(2)
    wide = _exactly(100, beams=16)
    most = 2 * _memory_of(engine_model, first, wide)  # of which both together may not have all
    others = _threads().keys()
    translator = _core.Translator(
        str(engine_model), {**LOOP, "inter_threads": "2", "max_cache_bytes": str(most)}
    )
    with gate(held_at=2) as step:
        held = Sender(translator, [first], wide, gate=step)
        step.wait()
        waiting = Sender(translator, [second], wide)
        wait_until(lambda: translator.waiting == 1)
        wait_until(lambda: _rest(others), "threads that rest")
        assert translator.waiting == 1
    assert held.ended().answers is not None
    assert waiting.ended().answers is not None


def test_keys_and_values_are_bounded(engine_model: Path, truth: EngineTruth) -> None:
    """With room for next to nothing rows run one after the other, and all are answered."""
    translator = _core.Translator(str(engine_model), {**LOOP, "max_cache_bytes": "1"})
    sources, prefixes = ragged_rows(truth, 12, seed=6)
    answers = translator.translate(sources, prefixes, LIMIT)
    for answer, source, prefix in zip(answers, sources, prefixes, strict=True):
        assert [answer[0]["ids"]] == truth.hypotheses(source, prefix, **LIMIT)
    assert all(loop["step_rows"] == loop["steps"] for loop in translator.loops)


SEEDED = {**_exactly(40), "sampling_topk": 20, "sampling_seed": 7}


@pytest.mark.parametrize("cause", ["library", "memory"])
def test_rows_that_run_go_on_when_others_cannot_be_admitted(
    engine_model: Path, truth: EngineTruth, cause: str
) -> None:
    """Rows with a seed would fail if they left their loop, since calls take none."""
    sources = ragged_rows(truth, 40, seed=21)[0]
    expected = _core.run_failing_loops(str(engine_model), [sources], SEEDED)[0]["ids"]
    [result] = _core.run_failing_loops(
        str(engine_model),
        [sources],
        SEEDED,
        failing_admissions={3},
        of_one_row=False,  # a loop that is there early may be given one row, which would fail
        cause=cause,
    )
    assert result["ids"] == result["grown"] == expected  # those that came are admitted one by one
    assert set(result["times_answered"]) == {1}
    [result] = _core.run_failing_loops(
        str(engine_model), [sources], SEEDED, failing_admissions=set(range(3, 100)), cause=cause
    )
    answered = [ids == right for ids, right in zip(result["ids"], expected, strict=True)]
    assert answered.count(True) >= 2  # of the first two admissions
    assert [ids for ids, right in zip(result["ids"], answered, strict=True) if not right] == (
        [[]] * answered.count(False)
    )
    assert set(result["times_answered"]) == {1}


def _other_model(tmp_path: Path, engine_model: Path, config: dict[str, str]) -> Any:
    shutil.copytree(engine_model, tmp_path / "other")
    return _core.Translator(str(tmp_path / "other"), config)


@pytest.mark.skipif(_core.usable_cores() < 2, reason="one core is shared in any case")
def test_a_call_that_needs_all_cores_gets_them_beside_a_busy_model(
    tmp_path: Path, engine_model: Path
) -> None:
    """The loops of the busy model never end at the same time by themselves."""
    cores = str(_core.usable_cores())
    wide = _other_model(tmp_path, engine_model, {"decoding": "calls", "intra_threads": cores})
    busy = _core.Translator(str(engine_model), LOOP)

    def ask() -> None:
        wide.translate([[300, 50, 60, END]], None, {"beam_size": 1, "max_decoding_length": 3})

    assert any(_steps_meanwhile(busy, ask) < 60 for _ in range(10))


@pytest.mark.skipif(_core.usable_cores() < 2, reason="one core is shared in any case")
def test_a_loop_whose_step_takes_one_thread_leaves_the_other_cores(
    tmp_path: Path, engine_model: Path
) -> None:
    """Threads that help it, up to intra_threads, leave when there is other work."""
    config = {**LOOP, "intra_threads": str(_core.usable_cores())}
    other = _other_model(tmp_path, engine_model, config)
    with worker_held(_core.Translator(str(_wide_model()), config)):
        answer = Sender(other, rows_of(1), LIMIT).ended()
    assert answer.answers is not None


def _wide_model() -> Path:
    """One whose layers are worth sharing."""
    return tiny_engine_model("nllb", TinyOptions(d_model=512))


@pytest.mark.skipif(_core.usable_cores() < 2, reason="one core has no idle ones")
def test_idle_threads_help_with_a_step_and_change_no_answer() -> None:
    alone = _core.Translator(str(_wide_model()), {**LOOP, "intra_threads": "1"})
    helped = _core.Translator(str(_wide_model()), LOOP)
    row = [[300, 50, 60, 70, END]]
    options = {"beam_size": 1, "max_decoding_length": 20, "return_scores": True}
    expected = alone.translate(row, None, options)
    while not any(loop["helped_parts"] for loop in helped.loops):
        assert helped.translate(row, None, options) == expected
    assert [loop["helped_parts"] for loop in alone.loops] == [0] * len(alone.loops)
