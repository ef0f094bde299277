# SPDX-License-Identifier: Apache-2.0
"""Several processes that share a port, when one of them cannot start."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ct2_triton.gateway.processes import Place, serve_in, spare_collector
from support.waiting import wait_until

# A folder of the parent, while its children fail as nobody expects.
FOLDER = """
import os, tempfile
from ct2_triton.gateway.processes import serve_in

parent = os.getpid()

async def serve(place):
    raise ValueError("unexpected")

with tempfile.TemporaryDirectory() as folder:
    try:
        serve_in(2, "127.0.0.1", 0, serve, print)
    finally:
        print(os.getpid() == parent, os.path.isdir(folder), flush=True)
"""

# None is ever ready; each makes a file once it runs.
NEVER = """
import asyncio, os, sys
from pathlib import Path
from ct2_triton.gateway.processes import serve_in

async def serve(place):
    Path(sys.argv[1], str(os.getpid())).touch()
    await asyncio.Event().wait()

serve_in(2, "127.0.0.1", 0, serve, print)
"""
# The first that makes the file fails; the other one serves, or is never ready.
PROGRAM = """
import asyncio, os, sys
from ct2_triton.errors import ClientError
from ct2_triton.gateway.processes import serve_in

async def serve(place):
    try:
        os.close(os.open(sys.argv[1], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        if sys.argv[2] == "never":
            await asyncio.Event().wait()
        place.ready(place.port)
        await place.ended()
    else:
        raise ClientError("no model")

try:
    serve_in(3, "127.0.0.1", 0, serve, print)
except ClientError as error:
    sys.exit(f"all: {error}")
"""

# Each makes a file named after it once it is ready, and fails once there is a file NUMBER-fail.
FAILING = """
import asyncio, os, sys
from pathlib import Path
from ct2_triton.errors import ClientError
from ct2_triton.gateway.processes import serve_in

folder = Path(sys.argv[1])

async def serve(place):
    own = folder / str(os.getpid())
    place.ready(place.port)
    own.touch()
    ended = asyncio.create_task(place.ended())
    while not ended.done():
        if own.with_name(own.name + "-fail").exists():
            raise ClientError("broken")
        await asyncio.wait([ended], timeout=0.01)

try:
    serve_in(2, "127.0.0.1", 0, serve, lambda _: (folder / "ready").touch())
except ClientError as error:
    sys.exit(f"all: {error}")
"""


@pytest.mark.parametrize("ready", ["at once", "never"])
def test_one_that_cannot_start_ends_all(tmp_path: Path, ready: str) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "made"), ready]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 1
    assert ended.stdout == ""
    said = ["no model", "all: a process has failed, so all 3 have ended"]
    assert ended.stderr.splitlines() == said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_before_they_are_ready_is_no_failure(
    tmp_path: Path, number: signal.Signals
) -> None:
    """As a terminal sends it: to all processes of the command."""
    with subprocess.Popen(
        [sys.executable, "-c", NEVER, str(tmp_path)], stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        os.killpg(process.pid, number)
        _, said = process.communicate(timeout=600)
    assert (process.returncode, said) == (0, b"")


def test_a_child_that_fails_unexpectedly_leaves_what_is_the_parents() -> None:
    command = [sys.executable, "-c", FOLDER]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert ended.stdout == "True True\n"
    assert "ValueError: unexpected" in ended.stderr


def pids_in(folder: Path) -> list[int]:
    """Gives the processes that were ready in a folder, in their order."""
    found = [path.name for path in folder.iterdir() if path.name.isdigit()]
    return sorted(map(int, found), key=lambda pid: (folder / str(pid)).stat().st_mtime_ns)


def test_all_that_end_at_once_are_replaced(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FAILING, str(tmp_path)], stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: (tmp_path / "ready").exists() and len(pids_in(tmp_path)) == 2)
        killed = pids_in(tmp_path)
        process.send_signal(signal.SIGSTOP)  # it learns of both ends together
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        zombies = [Path(f"/proc/{pid}/stat") for pid in killed]
        wait_until(lambda: all(") Z " in one.read_text() for one in zombies))
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: process.poll() is not None or len(pids_in(tmp_path)) == 4)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=600)
    assert process.returncode == 0
    assert sorted(said.splitlines()) == sorted(
        f"process {pid} was ended by SIGKILL; it is replaced" for pid in killed
    )


def test_one_that_ends_is_replaced_and_the_others_go_on(tmp_path: Path) -> None:
    def pids() -> list[int]:
        return pids_in(tmp_path)

    with subprocess.Popen(
        [sys.executable, "-c", FAILING, str(tmp_path)], stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: (tmp_path / "ready").exists() and len(pids()) == 2)
        first, second = pids()
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: len(pids()) == 3)
        (tmp_path / f"{second}-fail").touch()
        wait_until(lambda: len(pids()) == 4)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=600)
    assert process.returncode == 0
    assert said.splitlines() == [
        f"process {first} was ended by SIGKILL; it is replaced",
        "broken",
        f"process {second} ended with status 1; it is replaced",
    ]


def test_replacements_are_bounded_and_the_last_end_is_a_failure(tmp_path: Path) -> None:
    def fail_all() -> bool:
        for path in tmp_path.iterdir():
            if path.name.isdigit():
                path.with_name(f"{path.name}-fail").touch()
        return process.poll() is not None

    with subprocess.Popen(
        [sys.executable, "-c", FAILING, str(tmp_path)], stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until((tmp_path / "ready").exists)
        wait_until(fail_all)
        _, said = process.communicate(timeout=600)
    assert process.returncode == 1
    assert said.splitlines()[-1] == "all: a process has failed, so all 2 have ended"
    assert sum(path.name.isdigit() for path in tmp_path.iterdir()) == 2 + 5
    assert said.count("broken") == 2 + 5
    assert said.count("; it is replaced\n") == 5
    assert said.count("; 5 were replaced within a minute, so it is not replaced now\n") == 2


@pytest.mark.skipif(sys.platform == "win32", reason="uvloop is not for Windows")
def test_the_event_loop_is_that_of_uvloop_where_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loops: list[str] = []

    async def serve(_: Place) -> None:
        loops.append(type(asyncio.get_running_loop()).__module__.partition(".")[0])

    serve_in(1, "127.0.0.1", 0, serve, print)
    monkeypatch.setitem(sys.modules, "uvloop", None)
    serve_in(1, "127.0.0.1", 0, serve, print)
    assert loops == ["uvloop", "asyncio"]


def test_collections_leave_out_what_is_loaded() -> None:
    threshold = gc.get_threshold()
    try:
        spare_collector()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] > threshold[0]
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)
