# SPDX-License-Identifier: Apache-2.0
"""deploy/systemd: its command line is one of ct2-serve, and systemd accepts the unit."""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ct2_triton.serve.cli import add_arguments

UNIT = Path(__file__).resolve().parents[2] / "deploy" / "systemd" / "ct2-serve.service"
START = next(
    line.partition("=")[2]
    for line in UNIT.read_text(encoding="utf-8").splitlines()
    if line.startswith("ExecStart=")
)


def test_its_command_line_is_one_of_ct2_serve() -> None:
    program, *arguments = shlex.split(START)
    assert Path(program).name == "ct2-serve"
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert parser.parse_args(arguments).model_repository


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_accepts_it(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    program = str(Path(sys.executable).with_name("ct2-serve"))
    text = UNIT.read_text(encoding="utf-8").replace(shlex.split(START)[0], program)
    unit.write_text(text, encoding="utf-8")
    command = ["systemd-analyze", "verify", str(unit)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    mistakes = [line for line in result.stderr.splitlines() if UNIT.name in line]
    assert mistakes == []
