# SPDX-License-Identifier: Apache-2.0
""".ci/run tests in two runs of pytest, and says how they ended in one line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / ".ci" / "closing_line"


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (
            ["5 passed, 3 deselected in 2.00s", "7 passed, 1 skipped, 9 deselected in 3.00s"],
            "12 passed, 1 skipped in 3725.00s (1:02:05)",
        ),
        (
            [
                "=== 1 failed, 5 passed, 1 warning in 61.00s (0:01:01) ===",
                "1 failed, 2 passed, 2 warnings, 1 error in 3.00s",
            ],
            "2 failed, 7 passed, 3 warnings, 1 error in 3725.00s (1:02:05)",
        ),
        (["2 errors in 1.00s", "no tests ran in 0.10s"], "2 errors in 3725.00s (1:02:05)"),
        ([], "no tests ran in 3725.00s (1:02:05)"),
    ],
)
def test_closing_lines_become_one(lines: list[str], line: str) -> None:
    done = subprocess.run(
        [PROGRAM, "-v", "seconds=3725"],
        input="".join(f"{one}\n" for one in lines),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == f"{line}\n"
