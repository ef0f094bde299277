# SPDX-License-Identifier: Apache-2.0
"""A command that is forked is the same as the installed script."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import forked
from support.waiting import wait_until

COMMANDS = ("translate", "models", "prepare", "gateway", "live")
QUIET: dict[str, Any] = {"capture_output": True, "check": False, "timeout": 600}


def _script(command: str) -> str:
    return str(Path(sys.executable).with_name(f"ct2-{command}"))


@pytest.mark.parametrize("command", COMMANDS)
def test_it_ends_and_prints_as_the_script(command: str) -> None:
    _compare([_script(command), "--help"])


@pytest.mark.parametrize("arguments", [["--version"], ["--no-such"]])
def test_it_ends_and_prints_as_the_module(arguments: list[str]) -> None:
    _compare([sys.executable, "-m", "ct2_triton", "models", *arguments])


def _compare(command: list[str]) -> None:
    real, fork = (run(command, **QUIET) for run in (subprocess.run, forked.run))
    assert fork.returncode == real.returncode
    assert (fork.stdout, fork.stderr) == (real.stdout, real.stderr)


def test_its_folder_and_its_variables_are_those_given(waiting: list[str], tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    place = {"cwd": tmp_path, "text": True, **QUIET}
    command = [_script("models"), "list", "--model-repository", "here"]
    assert forked.run(command, **place).returncode == 0
    elsewhere = forked.run(command[:2], env={**os.environ, "CT2_MODEL_REPOSITORY": "no"}, **place)
    assert "no" in elsewhere.stderr
    with forked.Popen(waiting, cwd=tmp_path) as process:
        is_script = _is_script(process)
        folder = Path(f"/proc/{process.pid}/cwd")
        wait_until(lambda: folder.resolve() == tmp_path)
        process.kill()
    assert not is_script


def _is_script(process: subprocess.Popen[Any]) -> bool:
    """Says whether it runs the installed script from its start, as the system sees it."""
    command = Path(f"/proc/{process.pid}/cmdline")
    wait_until(lambda: command.read_bytes() != b"")  # it is empty while a process begins
    return "/ct2-" in command.read_text()


@pytest.fixture
def waiting(tmp_path: Path) -> list[str]:
    """A command that waits until another process writes its glossary."""
    os.mkfifo(tmp_path / "glossary")
    what = ["--url", "127.0.0.1:1", "--model", "m", "--from", "en", "--to", "de"]
    return [_script("translate"), "--glossary", str(tmp_path / "glossary"), *what]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_ends_it_by_its_id(number: signal.Signals, waiting: list[str]) -> None:
    with forked.Popen(waiting) as process:
        assert process.pid not in {os.getpid(), os.getppid()}
        assert process.poll() is None
        os.kill(process.pid, number)
        assert process.wait(600) == -number
        assert process.poll() == -number


def test_each_has_a_process_of_its_own(waiting: list[str]) -> None:
    both = [forked.Popen(waiting) for _ in range(2)]
    assert len({process.pid for process in both}) == 2
    both[0].kill()
    assert both[0].wait(600) == -signal.SIGKILL
    assert both[1].poll() is None
    for process in both:
        process.kill()
        process.wait()


def test_the_first_command_may_have_another_environment(
    waiting: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    forked.restart()
    with monkeypatch.context() as changed:
        changed.setenv("HF_HOME", "elsewhere")
        with forked.Popen(waiting) as process:
            process.kill()
    with forked.Popen(waiting) as process:
        is_script = _is_script(process)
        process.kill()
    assert not is_script


def test_a_variable_that_a_library_reads_makes_it_a_script(waiting: list[str]) -> None:
    """The next test has a forked command again."""
    os.environ["GRPC_VERBOSITY"] = "ERROR"
    with forked.Popen(waiting) as process:
        is_script = _is_script(process)
        process.kill()
    assert is_script


def test_the_variables_of_another_test_are_gone(waiting: list[str]) -> None:
    assert "GRPC_VERBOSITY" not in os.environ
    with forked.Popen(waiting) as process:
        is_script = _is_script(process)
        process.kill()
    assert not is_script


@pytest.mark.parametrize("variable", ["PYTHONOPTIMIZE", "OMP_NUM_THREADS", "LD_PRELOAD"])
def test_a_variable_that_is_read_early_makes_it_a_script(variable: str, waiting: list[str]) -> None:
    environment = {**os.environ, variable: ""}
    with forked.Popen(waiting, env=environment) as process:
        is_script = _is_script(process)
        process.kill()
    assert is_script
