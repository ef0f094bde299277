# SPDX-License-Identifier: Apache-2.0
"""Processes that need the same at once: one makes it, and the others wait for it."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

from support.made_once import made_once

PROCESSES = 4


def _make_and_tell(place: Path, barrier: object, makers: Path) -> None:
    def make(new: Path) -> None:
        (makers / str(os.getpid())).touch()
        new.write_text("whole")

    barrier.wait()  # type: ignore[attr-defined]
    assert made_once(place, make).read_text() == "whole"


def test_one_of_several_processes_makes_it(tmp_path: Path) -> None:
    makers = tmp_path / "makers"
    makers.mkdir()
    context = multiprocessing.get_context("fork")
    place, barrier = tmp_path / "kept" / "it", context.Barrier(PROCESSES)
    processes = [
        context.Process(target=_make_and_tell, args=(place, barrier, makers))
        for _ in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    assert len(list(makers.iterdir())) == 1


def test_what_failed_is_made_by_the_next(tmp_path: Path) -> None:
    place = tmp_path / "it"
    try:
        made_once(place, lambda _: 1 // 0)
    except ZeroDivisionError:
        assert not place.exists()
    assert made_once(place, lambda new: new.write_text("whole")).read_text() == "whole"
