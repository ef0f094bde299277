# SPDX-License-Identifier: Apache-2.0
"""What the queue and the scheduler cost does not grow: in instructions, which no load changes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from support.debian_packages import debian_command
from support.native import ROOT, built_core, link

OPERATIONS = 320
pytestmark = pytest.mark.plain_process  # valgrind runs no program with AddressSanitizer
QUEUE = ("MeasuredAppends", "MeasuredTakes", "MeasuredCalls")
SCHEDULER = ("CoreShares::Next", "CoreShares::Claim", "CoreShares::Release", "Scheduler::Wake")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of tests/native."""
    build, to = built_core(), tmp_path_factory.mktemp("native") / "queue_costs"
    opener = ROOT / "backend/src/engine/calls/open_library.cc"
    link(to, "queue_costs.cc", opener, build / "libct2triton_core.a")
    return to


def _instructions(
    program: Path,
    counts: Path,
    names: tuple[str, ...],
    waiting: int,
    tenants: int = 1,
    threads: int = 0,
    models: int = 1,
) -> dict[str, float]:
    """Of each function, for an operation, with so many rows of so many tenants waiting."""
    valgrind = debian_command("valgrind")
    subprocess.run(
        [
            *(str(valgrind), "--tool=callgrind", f"--callgrind-out-file={counts}"),
            *map(str, (program, waiting, tenants, OPERATIONS, threads, models)),
        ],
        check=True,
        capture_output=True,
    )
    listing = subprocess.run(
        ["callgrind_annotate", "--inclusive=yes", "--threshold=100", str(counts)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = {}
    for name in names:
        line = re.search(rf"^\s*([\d,]+) .*{name}\b", listing, re.MULTILINE)
        assert line is not None, f"{name} is not among the functions that ran"
        found[name] = int(line[1].replace(",", "")) / OPERATIONS
    return found


@pytest.fixture(scope="module")
def one(program: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """What an operation takes while one row waits."""
    return _instructions(program, tmp_path_factory.mktemp("one") / "counts", QUEUE, waiting=1)


@pytest.mark.parametrize(("waiting", "tenants"), [(100_000, 1), (2_000, 1_000)])
def test_an_append_and_a_claim_cost_the_same_whatever_waits(
    program: Path, tmp_path: Path, one: dict[str, float], waiting: int, tenants: int
) -> None:
    many = _instructions(program, tmp_path / "counts", QUEUE, waiting, tenants)
    assert {name: many[name] / one[name] for name in QUEUE if many[name] > 3 * one[name]} == {}


def test_a_claim_of_the_scheduler_costs_the_same_with_one_model_and_with_fifty(
    program: Path, tmp_path: Path
) -> None:
    """Of one thread, so that as many models run a task at a time."""
    few = _instructions(program, tmp_path / "few", SCHEDULER, waiting=1, threads=1)
    many = _instructions(program, tmp_path / "many", SCHEDULER, 2_000, threads=1, models=50)
    assert {name: many[name] / few[name] for name in SCHEDULER if many[name] > 3 * few[name]} == {}
