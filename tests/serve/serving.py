# SPDX-License-Identifier: Apache-2.0
"""ct2-serve as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support import forked

COMMAND = Path(sys.executable).with_name("ct2-serve")


@contextmanager
def serving(*arguments: str | Path, **place: Any) -> Iterator[subprocess.Popen[str]]:
    """Runs ct2-serve, and ends it; `place` are arguments of Popen."""
    place = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **place}
    process = forked.Popen([COMMAND, *arguments], text=True, **place)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_ready(process: subprocess.Popen[str]) -> dict[str, str]:
    """Waits until it serves; gives `models`, `gRPC`, `HTTP` and `metrics` as it prints them."""
    assert process.stdout is not None
    lines = [process.stdout.readline().split() for _ in range(4)]
    assert lines[0][:2] == ["ready;", "models:"]
    return {"models": " ".join(lines[0][2:]), **dict(lines[1:])}


def server_of(parent: int) -> int:
    """Gives the process id of the tritonserver of a ct2-serve."""
    children = Path(f"/proc/{parent}/task").glob("*/children")
    (child,) = {int(pid) for path in children for pid in path.read_text().split()}
    return child
