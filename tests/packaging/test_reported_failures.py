# SPDX-License-Identifier: Apache-2.0
"""A failure whose report Python cannot make at first is reported, and the run goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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


def test_a_defect_of_python_in_a_report_ends_no_run(tmp_path: Path) -> None:
    file = tmp_path / "test_file.py"
    file.write_text(FILE)
    options = ["-c", TESTS.parent / "pyproject.toml", "-p", "no:cacheprovider", "-p", "conftest"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, file],
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS / 'tiny'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "assert 1 == 2" in done.stdout
