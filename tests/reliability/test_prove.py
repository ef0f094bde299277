# SPDX-License-Identifier: Apache-2.0
"""The short form of `prove.py`: each proof once, and its table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reliability.prove import BEGIN, END, MATRICES, PAGE

pytestmark = pytest.mark.server


def test_every_proof_runs_and_its_line_is_in_the_table(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"Before.\n{BEGIN}an older table\n{END}After.\n")
    program = Path(__file__).with_name("prove.py")
    command = [sys.executable, program, "--hours", "0.0005", "--rows", "1", "--page", page]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = page.read_text()
    assert text.startswith("Before.\n")
    assert text.endswith(f"{END}After.\n")
    assert "older" not in text
    for proof in (*(one.proof for one in MATRICES), "requests to a server", "soak"):
        assert f"| {proof}" in text


def test_the_page_has_a_place_for_the_table() -> None:
    _, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    assert begin
    assert "| float32, greedy rows" in rest.partition(END)[0]
