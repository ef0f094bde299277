# SPDX-License-Identifier: Apache-2.0
"""A child is signalled only while its id is its own."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from ct2_triton.serve.process import LoggedProcess
from support.waiting import wait_until

SLEEP = "import time; time.sleep(600)"
# A child of the child, which outlives it, in its process group.
WITH_HELPER = (
    "import subprocess, sys, time\n"
    "helper = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    "print(helper.pid, flush=True)\n"
)


def start(code: str) -> LoggedProcess:
    return LoggedProcess([sys.executable, "-c", code], os.environ, None)


@pytest.fixture
def signalled(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each signal to a process or a group: whether its id was still that of our child.

    The signals are sent. An id that was given back may be a stranger's by then.
    """
    owned: list[bool] = []

    def watch(name: str) -> None:
        send = getattr(os, name)

        def sent(pid: int, signal_number: int) -> None:
            owned.append(Path(f"/proc/{pid}/stat").exists())
            send(pid, signal_number)

        monkeypatch.setattr(os, name, sent)

    watch("kill")
    watch("killpg")
    return owned


def test_stopping_signals_before_reaping(signalled: list[bool]) -> None:
    process = start(SLEEP)
    assert process.stop(60) == -signal.SIGTERM
    assert signalled == [True, True]  # the child, then its group


@pytest.mark.parametrize("how", ["wait", "look"])
def test_nothing_is_signalled_once_the_end_was_seen(signalled: list[bool], how: str) -> None:
    process = start("pass")
    if how == "wait":
        assert process.wait() == 0
    while process.exit_code is None:
        pass
    seen = len(signalled)
    process.send_signal(signal.SIGINT)
    assert process.stop(60) == 0
    assert all(signalled)
    assert len(signalled) == seen


def test_what_the_child_started_ends_with_it(signalled: list[bool]) -> None:
    process = start(WITH_HELPER)
    assert process.wait() == 0
    process.stop(60)
    helper = int(process.log_lines()[0])
    status = Path(f"/proc/{helper}/stat")

    def ended() -> bool:  # a signal takes effect when the system finds time for it
        try:
            return status.read_text().rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    wait_until(ended, "the helper to end")
    assert all(signalled)


def test_a_child_that_does_not_listen_is_killed() -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    process = start(f"{deaf}; print(1, flush=True); {SLEEP}")
    while not process.log_lines():
        pass
    assert process.stop(0.2) == -signal.SIGKILL


def test_many_threads_may_wait_and_look() -> None:
    process = start(SLEEP)
    codes: list[int] = []
    threads = [threading.Thread(target=lambda: codes.append(process.wait())) for _ in range(8)]
    for thread in threads:
        thread.start()
    process.stop(60)
    for thread in threads:
        thread.join(60)
    assert codes == [-signal.SIGTERM] * 8
