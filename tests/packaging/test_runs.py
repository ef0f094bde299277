# SPDX-License-Identifier: Apache-2.0
"""What tests/conftest.py adds to runs of pytest."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
FILE = """
import ast

parse = ast.parse

def fails_once(*arguments, **options):
    ast.parse = parse
    raise SystemError("AST constructor recursion depth mismatch (before=147, after=68)")

def test_first():
    ast.parse = fails_once
    assert 1 == 2

def test_second():
    pass
"""


def _run(folder: Path, text: str, *options: str) -> str:
    """Runs the tests of a file, and gives what pytest prints."""
    file = folder / "test_file.py"
    file.write_text(text)
    own = ("-c", TESTS.parent / "pyproject.toml", "-p", "no:cacheprovider", "-p", "conftest")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *own, *options, file],
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS / 'tiny'}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    ).stdout


def test_a_failure_whose_report_python_cannot_make_at_first_is_reported(tmp_path: Path) -> None:
    said = _run(tmp_path, FILE)
    assert "1 failed, 1 passed" in said, said
    assert "assert 1 == 2" in said


@pytest.mark.parametrize(("seconds", "outcome"), [(-1, "2 skipped"), (600, "2 passed")])
def test_no_test_begins_after_the_deadline(tmp_path: Path, seconds: int, outcome: str) -> None:
    tests = "def test_first():\n    pass\n\ndef test_second():\n    pass\n"
    said = _run(tmp_path, tests, f"--deadline={time.time() + seconds}")
    assert outcome in said, said
