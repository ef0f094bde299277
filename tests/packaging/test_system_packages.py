# SPDX-License-Identifier: Apache-2.0
"""tools/system_packages.sh, where it may not install anything."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from support.commands import run

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "system_packages.sh"


def _run(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    # For the script, everybody is an ordinary user.
    user = folder / "id"
    user.write_text("#!/bin/sh\necho 1000\n")
    user.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    return run(SCRIPT, code=None, PATH=path, **variables)


def test_nothing_is_said_where_nothing_is_missing(tmp_path: Path) -> None:
    result = _run(tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_what_is_missing_is_named_in_one_sentence(tmp_path: Path) -> None:
    result = _run(tmp_path, CXX="no-such-compiler")
    assert result.returncode == 1
    assert result.stderr == "ct2-triton needs these packages first: apt-get install g++\n"


def test_a_machine_without_python_gets_all_of_it(tmp_path: Path) -> None:
    result = _run(tmp_path, PYTHON="no-such-python")
    assert result.returncode == 1
    assert result.stderr.endswith("apt-get install python3 python3-venv python3-dev\n")


def test_an_old_python_is_refused(tmp_path: Path) -> None:
    old = tmp_path / "old-python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    result = _run(tmp_path, PYTHON=str(old))
    assert result.returncode == 1
    assert "Python 3.10 or later" in result.stderr
