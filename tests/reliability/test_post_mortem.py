# SPDX-License-Identifier: Apache-2.0
"""What is kept of a server that ended, and which ends are forgiven."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from reliability import post_mortem
from support.repository import write_model
from support.servers import MakeServer
from support.waiting import wait_until

OWN = "0x000055C5646794AE in /opt/tritonserver/bin/tritonserver"
LIBC = "0x00007F9DF16A8EEC in /lib/x86_64-linux-gnu/libc.so.6"
MUTEX = "pthread_mutex_lock in /lib/x86_64-linux-gnu/libc.so.6"
RAISE, ABORT = (f"{name} in /lib/x86_64-linux-gnu/libc.so.6" for name in ("gsignal", "abort"))
THREAD = ["0x00007F9DF14D44A3 in /lib/x86_64-linux-gnu/libstdc++.so.6", LIBC, LIBC]
PLUGIN = "0x00007F30EAA54EB5 in /opt/backends/ctranslate2/libtriton_ctranslate2.so"
FREE = "cfree in /lib/x86_64-linux-gnu/libc.so.6"


@pytest.mark.parametrize(
    ("number", "frames", "its_own"),
    [
        (11, [MUTEX, OWN, OWN, *THREAD], True),  # in ModelInferHandler::Process
        (11, [OWN, OWN, OWN, *THREAD], True),  # sends an answer once more
        (6, [LIBC, RAISE, ABORT, OWN, OWN, *THREAD], True),  # destroys a state twice
        (11, [MUTEX, OWN, PLUGIN, *THREAD], False),
        (11, [PLUGIN, *THREAD], False),
        (11, [MUTEX, *THREAD], False),
        (11, [LIBC, OWN, *THREAD], False),
        (6, [LIBC, RAISE, ABORT, LIBC, FREE, OWN, *THREAD], False),  # memory is corrupted
        (6, [LIBC, RAISE, ABORT, *THREAD], False),
    ],
)
def test_only_the_known_defect_of_triton_is_forgiven(
    number: int, frames: list[str], *, its_own: bool
) -> None:
    stack = [f"{i:2d}# {frame}" for i, frame in enumerate([OWN, LIBC, *frames])]
    log = "\n".join(["ready", f"Signal ({number}) received.", *stack, ""])
    assert post_mortem.ended_by_triton(log) is its_own


@pytest.mark.parametrize("log", ["", "ready\n", "Signal (15) received.\n"])
def test_no_stack_is_no_defect(log: str) -> None:
    assert not post_mortem.ended_by_triton(log)


@pytest.mark.server
@pytest.mark.skipif(shutil.which("gdb") is None, reason="needs gdb for the stacks")
@pytest.mark.skipif(
    Path("/proc/sys/kernel/core_pattern").read_text().strip() != "core",
    reason="core files go elsewhere on this machine",
)
def test_log_and_stacks_of_a_server_that_ended_are_kept(
    make_server: MakeServer,
    tmp_path: Path,
    nllb_engine_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_model(tmp_path / "repository", "nllb", nllb_engine_model)
    monkeypatch.chdir(tmp_path)
    post_mortem.allow_core_files()
    server = make_server(tmp_path / "repository")
    os.kill(server.process.pid, signal.SIGSEGV)
    wait_until(lambda: not server.is_alive(), "the end")
    log, stack = post_mortem.keep(server, tmp_path / "kept", "one")
    assert "Signal (11) received." in log.read_text()
    assert "triton::server" in stack.read_text()
    assert list(tmp_path.glob("core*")) == []
