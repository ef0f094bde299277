# SPDX-License-Identifier: Apache-2.0
"""What the queue costs does not grow with it: counted in instructions, which no load changes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from support.debian_packages import debian_command
from support.native import ROOT, built_core, link

OPERATIONS = 320
pytestmark = pytest.mark.plain_process  # valgrind runs no program with AddressSanitizer
MEASURED = ("MeasuredAppends", "MeasuredTakes", "MeasuredCalls")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of tests/native."""
    build, to = built_core(), tmp_path_factory.mktemp("native") / "queue_costs"
    opener = ROOT / "backend/src/engine/calls/open_library.cc"
    link(to, "queue_costs.cc", opener, build / "libct2triton_core.a")
    return to


def _instructions(program: Path, folder: Path, waiting: int, tenants: int) -> dict[str, float]:
    """Of each operation, with so many rows of so many tenants waiting."""
    valgrind = debian_command("valgrind")
    counts = folder / f"callgrind.{waiting}.{tenants}"
    subprocess.run(
        [
            *(str(valgrind), "--tool=callgrind", f"--callgrind-out-file={counts}"),
            *(str(program), str(waiting), str(tenants), str(OPERATIONS), "0", "1"),
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
    for name in MEASURED:
        line = re.search(rf"^\s*([\d,]+) .*{name}", listing, re.MULTILINE)
        assert line is not None, f"{name} is not among the functions that ran"
        found[name] = int(line[1].replace(",", "")) / OPERATIONS
    return found


@pytest.mark.parametrize(("waiting", "tenants"), [(100_000, 1), (2_000, 1_000)])
def test_an_append_and_a_claim_cost_the_same_whatever_waits(
    program: Path, tmp_path: Path, waiting: int, tenants: int
) -> None:
    one = _instructions(program, tmp_path, 1, 1)
    many = _instructions(program, tmp_path, waiting, tenants)
    assert {name: many[name] / one[name] for name in MEASURED if many[name] > 3 * one[name]} == {}
