# SPDX-License-Identifier: Apache-2.0
"""The cores of contenders and of the load generator."""

from __future__ import annotations

import argparse
import os
import re
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from bench.test_baseline_translators import mixed_rows
from ct2_triton.bench import cli
from ct2_triton.bench.comparison import Plan
from ct2_triton.bench.contenders import make_contender
from ct2_triton.bench.cores import cores_apart, first_cores, on_cores, physical_cores, usable_cores
from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.record import Run
from ct2_triton.bench.setup import Setup
from support.tiny import tiny_checkpoint

ALL = sorted(usable_cores())
ROWS = mixed_rows([(1205,), (1210,)], 2, count=6)
two_cores = pytest.mark.skipif(len(ALL) < 2, reason="one core has none to leave")


def _cores_of_threads(*processes: psutil.Process) -> set[tuple[int, ...]]:
    """The cores of each thread, without repetitions."""
    found = set()
    for process in processes:
        for thread in process.threads():
            with suppress(ProcessLookupError):  # it has ended
                found.add(tuple(sorted(os.sched_getaffinity(thread.id))))
    return found


def test_processes_have_cores_of_their_own_if_enough_remain(tmp_path: Path) -> None:
    assert cores_apart(range(16), 4, tmp_path) == (12, 13, 14, 15)
    assert cores_apart({3, 1}, 1) == cores_apart(range(15), 4) == ()
    assert first_cores({7, 3, 5}, 2, tmp_path) == (3, 5)


def test_hyperthreads_of_a_core_are_kept_together_or_apart(tmp_path: Path) -> None:
    for core in range(16):
        folder = tmp_path / f"cpu{core}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{core % 8},{core % 8 + 8}\n")

    assert cores_apart(range(16), 4, tmp_path) == (6, 7, 14, 15)
    assert cores_apart(range(16), 3, tmp_path) == (6, 7, 14, 15)
    assert [physical_cores(which, tmp_path) for which in (range(16), (0, 8), (0, 1))] == [8, 1, 2]
    assert first_cores(range(16), 2, tmp_path) == (0, 1)
    assert first_cores([0, 8, 1, 9], 3, tmp_path) == (0, 1, 8)


@two_cores
def test_all_threads_move_and_return() -> None:
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        with on_cores(ALL[:1]):
            assert _cores_of_threads(psutil.Process()) == {(ALL[0],)}
        assert _cores_of_threads(psutil.Process()) == {tuple(ALL)}
    finally:
        done.set()
        other.join()


@two_cores
def test_the_command_keeps_contenders_off_the_cores_of_its_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[tuple[Plan, int, set[int]]] = []

    async def see(setup: Setup, _workload: object, plan: Plan, _report: object) -> Run:
        seen.append((plan, setup.cores, os.sched_getaffinity(0)))
        raise BenchError("seen")

    monkeypatch.setattr(cli, "compare", see)
    monkeypatch.setattr(cli, "cores_apart", lambda _, processes: tuple(ALL[-processes + 1 :]))
    parser = argparse.ArgumentParser()
    cli.add_arguments(parser)
    common = ["--model", str(tiny_checkpoint("nllb")), "--output", str(tmp_path / "out")]
    for contender in ("ct2-triton-float32", "ctranslate2-float32"):
        command = [*common, "--contender", contender, "--client-processes", "2"]
        with pytest.raises(BenchError, match="seen"):
            cli.run(parser.parse_args(command))

    [(served, left, used), (alone, all_cores, _)] = seen
    assert served.client_cores == (ALL[-1],)
    assert left == len(used) == len(ALL) - 1
    assert (alone.client_cores, all_cores) == ((), len(ALL))
    assert sorted(os.sched_getaffinity(0)) == ALL


@two_cores
@pytest.mark.server
@pytest.mark.parametrize("kind", ["ct2-triton", "ctranslate2", "fastapi-transformers-tuned"])
async def test_a_contender_on_one_core_stays_there_and_answers_the_same(
    kind: str, tmp_path: Path
) -> None:
    setup = Setup(str(tiny_checkpoint("nllb")), tmp_path, max_decoding_length=20, cores=2)
    answers = []
    for name, count in ((f"{kind}-float32@1", 1), (f"{kind}-float32", 2)):
        async with make_contender(name, setup) as contender:
            answers.append([await contender.translate(row) for row in ROWS])
            started = psutil.Process(contender.pid)
            assert (contender.name, contender.setup.cores) == (name, count)
            used = _cores_of_threads(started, *started.children(recursive=True))
            assert used == {first_cores(ALL, count)}
    assert answers[0] == answers[1]


def test_a_wrong_number_of_cores_is_named(tmp_path: Path) -> None:
    setup = Setup("demo", tmp_path, cores=3)
    for name, why in (
        ("ct2-triton-int8@0", "after @ comes a number of cores, at least 1"),
        ("ct2-triton-int8@two", "contender 'ct2-triton-int8@two': after @"),
        ("ct2-triton-int8@4", "contender 'ct2-triton-int8@4' needs 4 cores; contenders have 3"),
        ("abacus-int8@2", "no contender 'abacus-int8' on a cpu"),
    ):
        with pytest.raises(BenchError, match=re.escape(why)):
            make_contender(name, setup)
    assert make_contender("ct2-triton-int8@3", setup).name == "ct2-triton-int8@3"
