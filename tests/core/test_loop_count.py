# SPDX-License-Identifier: Apache-2.0
"""Among how many loops the rows of a model are divided, by what its steps take here."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import EngineTruth, ragged_rows
from ct2_triton import _core
from ct2_triton.prepare.shipped import FOLDER
from support.tiny import tiny_engine_model
from tiny_families import TinyOptions

Times = list[tuple[int, float, float]]

# 60 million parameters at int8 on two cores: a step takes 0.46 ms, and 0.13 for each row.
SMALL = [(1, 0.59, 0.13), (2, 0.60, 0.13)]
# 600 million parameters on 64 cores: 400 MB of weights, 27 GB/s for a core, 200 for all.
LARGE = [(1, 15.0, 0.8), (4, 15.0, 0.8), (16, 32.0, 0.8), (64, 128.0, 0.8)]


def _step_ms(rows: int, loops: int) -> float:
    """By calculation, of the large model."""
    return max(15, 2 * loops) + 0.8 * rows / loops


def test_on_two_cores_two_rows_are_worth_two_loops() -> None:
    assert _core.loops_for([1, 2, 3, 48, 1000], SMALL, 2) == [1, 2, 2, 2, 2]


def test_rows_that_wait_for_the_memory_share_a_loop() -> None:
    """With one loop for each core, 64 rows take nine times as long as in the best case."""
    rows = [1, 8, 16, 64, 256]
    loops = _core.loops_for(rows, LARGE, 64)
    assert loops == sorted(loops)
    for count, chosen in zip(rows, loops, strict=True):
        best = min(_step_ms(count, n) for n in range(1, min(count, 64) + 1))
        assert _step_ms(count, chosen) < 1.05 * best
    assert 5 <= loops[3] <= 9
    assert _step_ms(64, 64) > 5 * _step_ms(64, loops[3])


def test_full_loops_leave_rows_to_further_ones() -> None:
    crowded = [(1, 10.0, 0.1), (4, 1000.0, 0.1)]
    assert _core.loops_for([16, 17, 33, 49, 65], crowded, 4, max_rows=16) == [1, 2, 3, 4, 4]


def test_a_row_that_seems_to_take_as_long_as_a_tile_is_no_reason_for_one_loop() -> None:
    """Two of 25 loads measured that on a virtual machine; 16 clients lost a third of their rows."""
    for beside in (0.0, 0.3):
        times = [(1, 4.07, 0.0), (2, 4.07, beside)]
        assert _core.loops_for([16, 24, 48], times, 2) == [2, 2, 2]


def test_the_more_rows_the_more_loops_on_64_cores() -> None:
    """By calculation: weights that the memory delivers to all cores together in 0.1 ms."""
    times = [(n, max(0.46, 0.1 * n) + 0.13, 0.13) for n in range(1, 65)]
    rows = [100, 200, 300, 600]
    loops = _core.loops_for(rows, times, 64)
    assert loops == sorted(set(loops))

    def step(rows: int, loops: int) -> float:
        first, further = times[loops - 1][1:]
        return first + further * (rows / loops - 1)

    for count, chosen in zip(rows, loops, strict=True):
        assert step(count, chosen) < 1.05 * min(step(count, n) for n in range(10, 65))


def test_few_rows_have_one_loop_where_the_other_core_helps() -> None:
    """Measured: of 4 clients, one loop with help has 1.16 times the rows of two."""
    helped = {"cores": 2, "threads": 2}
    xeon = [(1, 1.3, 0.1), (2, 1.3, 0.1)]
    assert _core.loops_for([2, 4, 16, 48], xeon, 2, **helped) == [1, 1, 2, 2]
    assert _core.loops_for([2, 4, 16, 48], xeon, 2) == [2, 2, 2, 2]
    assert _core.loops_for([2, 4, 16, 48], SMALL, 2, **helped) == [1, 2, 2, 2]


def test_a_row_that_seems_to_cost_nothing_is_no_reason_for_one_loop_with_help() -> None:
    times = [(1, 4.07, 0.0), (2, 4.07, 0.0)]
    assert _core.loops_for([48, 64], times, 2, cores=2, threads=2) == [2, 2]


def test_help_is_worth_no_more_than_memory_delivers() -> None:
    """Four loops of two helpers each would be faster by far if their weights came in time."""
    times = [(n, max(4.0, 1.0 * n) + 0.1, 0.1) for n in (1, 4, 16)]
    assert _core.loops_for([48], times, 16, cores=16, threads=8) == [2]


WORKS, DOES_NOT = [True] * 300, [False] * 300


def test_a_model_counts_on_help_until_it_does_not_come() -> None:
    """Then it does not for a second; where that is soon again, for two."""
    ms = 10**6

    def watch(helped: list[bool]) -> list[bool]:
        return _core.watch_help([(one, i * ms) for i, one in enumerate(helped, 1)])

    assert all(watch(WORKS))
    assert all(watch([True, False] * 300))
    second = watch([*WORKS, *DOES_NOT * 12])
    [first_no, *_] = (i for i, helps in enumerate(second) if not helps)
    assert 300 < first_no < 500
    flips = [i for i in range(1, len(second)) if second[i] != second[i - 1]]
    assert flips[1] - flips[0] == 1000
    assert 0 < flips[2] - flips[1] < 200
    assert len(flips) == 3 or flips[3] - flips[2] == 2000


def test_hyperthreads_are_used_where_steps_get_shorter() -> None:
    """Eight cores of two threads each; of the second machine a second thread gains nothing."""
    useful = [(1, 1.0, 0.5), (8, 1.0, 0.5), (16, 1.4, 0.6)]
    useless = [(1, 1.0, 0.5), (8, 1.0, 0.5), (16, 2.0, 1.0)]
    assert 8 < _core.loops_for([256], useful, 16)[0] <= 16
    assert _core.loops_for([64, 256], useless, 16) == [8, 8]


@pytest.mark.parametrize("times", [[], [(1, 5.0, 1.0)], [(1, 5.0, 1.0), (2, 5.6, 1.1)]])
def test_what_is_not_known_or_noise_limits_nothing(times: Times) -> None:
    assert _core.loops_for([2], times, 2) == [2]


@pytest.mark.parametrize(
    "times",
    [[15, 40, 15], [10, 30] * 5, [10] * 3 + [30] * 7, [6] + [10] * 9],
    ids=["few", "half of them", "most of them", "one that ran alone"],
)
def test_what_lengthens_some_steps_while_they_are_measured_does_not_count(
    times: list[float],
) -> None:
    """A model may be loaded on a busy server, and keeps what was measured until it is unloaded."""
    assert _core.undisturbed_step_ns(times) == min(set(times) - {6})


def test_steps_are_measured_when_a_model_is_loaded(engine_model: Path) -> None:
    times = _core.Translator(str(engine_model), {"decoding": "loop"}).step_times
    numbers = [loops for loops, _, _ in times]
    assert numbers[0] == 1
    assert numbers[-1] == _core.usable_cores()
    assert all(first > 0 and further >= 0 for _, first, further in times)
    assert _core.Translator(str(engine_model), {"decoding": "calls"}).step_times == []


@pytest.mark.parametrize("positions", [30, 32, 34])
def test_a_model_with_few_positions_is_measured(tmp_path: Path, positions: int) -> None:
    """The tokens that CTranslate2 adds to a source have positions, too."""
    made = tiny_engine_model("m2m100", TinyOptions(max_positions=positions))
    directory = Path(shutil.copytree(made, tmp_path / "model"))
    config = json.loads((directory / "config.json").read_text("utf-8"))
    config |= {"add_source_bos": True, "add_source_eos": True}
    (directory / "config.json").write_text(json.dumps(config), "utf-8")
    assert _core.Translator(str(directory), {"decoding": "loop"}).step_times


def _load_beside_work(model: Path) -> tuple[Times, bool]:
    """Loads a model while other threads of this process work; also whether they had ended then."""
    data = bytes(1 << 20)  # long enough for hashlib to let other threads run
    started = threading.Barrier(5)

    def work() -> None:
        started.wait()
        until = time.monotonic() + 1  # sooner than a load gives up
        while time.monotonic() < until:
            hashlib.sha256(data)

    others = [threading.Thread(target=work) for _ in range(4)]
    for other in others:
        other.start()
    started.wait()
    times = _core.Translator(str(model), {"decoding": "loop"}).step_times
    ended = not any(other.is_alive() for other in others)
    for other in others:
        other.join()
    return times, ended


def test_steps_are_measured_when_other_work_of_the_process_has_ended(tmp_path: Path) -> None:
    """Models load side by side. Each used to measure the others, and half of them got one loop.

    Steps take milliseconds, in which a busy machine may run no other thread of this process: one
    load of three shows it.
    """
    mine = shutil.copytree(FOLDER / "model", tmp_path / "model")
    for _ in range(3):
        times, waited = _load_beside_work(mine)
        firsts = [first for _, first, _ in times]
        assert times
        assert firsts == sorted(firsts), "beside more loops, a step is never shorter"
        if waited:
            return
    pytest.fail("no load waited")


def _run(engine_model: Path, sources: Any, times: Times, meeting: int = 0) -> tuple[int, bool]:
    """With `meeting` loops none steps before all are there: a thread may come late to its first."""
    options = {"beam_size": 1, "max_decoding_length": 40}
    [result] = _core.run_failing_loops(
        str(engine_model), [sources], options, step_times=times, meeting=meeting
    )
    return result["loops"], set(result["times_answered"]) == {1}


@pytest.mark.skipif(_core.usable_cores() < 2, reason="one core runs one loop")
def test_a_further_loop_opens_where_it_is_worth_it(engine_model: Path, truth: EngineTruth) -> None:
    """Forty rows: by two loops, or by one where a second one would slow down the first."""
    sources = ragged_rows(truth, 40, seed=21)[0]
    assert _run(engine_model, sources, [(1, 10.0, 1.0), (2, 10.0, 1.0)], meeting=2) == (2, True)
    assert _run(engine_model, sources, [(1, 10.0, 1.0), (2, 90.0, 1.0)]) == (1, True)


@pytest.mark.skipif(_core.usable_cores() < 2, reason="one core runs one loop")
def test_more_rows_than_a_loop_takes_open_another_one(
    engine_model: Path, truth: EngineTruth
) -> None:
    sources = ragged_rows(truth, 150, seed=22)[0]
    assert _run(engine_model, sources, [(1, 10.0, 1.0), (2, 90.0, 1.0)], meeting=2) == (2, True)
