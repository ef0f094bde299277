# SPDX-License-Identifier: Apache-2.0
"""What a server that ended leaves behind: its log, the stacks of its threads, and whose fault."""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
from itertools import takewhile
from pathlib import Path

from ct2_triton.serve import TritonServer

_FRAME = re.compile(r"^\s*\d+# (.*)$", re.MULTILINE)
_HANDLER_FRAMES = 2  # Triton's handler of signals, and what called it
_GDB_LIMIT_S = 300


def allow_core_files() -> None:
    """Lets servers that are started from now on leave a core file where this process works."""
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))


def keep(server: TritonServer, folder: Path, name: str) -> list[Path]:
    """Writes the server's log, and the stacks of all threads where there is a core file and gdb.

    Returns the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = [folder / f"{name}.log"]
    kept[0].write_text(server.log_text(), encoding="utf-8")
    cores = [Path("core"), Path(f"core.{server.process.pid}")]
    core = next((path for path in cores if path.exists()), None)
    gdb = shutil.which("gdb")
    if core is None or gdb is None:
        return kept
    binary = server.installation.executable
    command = [gdb, "-batch", "-ex", "bt", "-ex", "thread apply all bt", str(binary), str(core)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_GDB_LIMIT_S)
    kept.append(folder / f"{name}.stack")
    kept[1].write_text(done.stdout, encoding="utf-8")
    core.unlink()
    return kept


def ended_by_triton(log: str) -> bool:
    """Whether a server's log shows an end by a defect of its own, which no backend can avoid.

    A gRPC call that is cancelled in the moment in which it ends can make tritonserver 2.51 use the
    state of a request that it has freed: it locks a mutex of it, sends its answer once more, or
    destroys it twice (stacks: benchmarks/reliability.md). Then the thread is one of Triton's own,
    and what failed was called by its own code, not by the memory allocator.
    """
    _, signal, stack = log.partition("Signal (")
    frames = [str(frame) for frame in _FRAME.findall(stack)][_HANDLER_FRAMES:]
    if not signal or "ctranslate2" in stack:
        return False
    of_libc = list(takewhile(lambda frame: "libc.so" in frame, frames))
    callers = frames[len(of_libc) :]
    if not callers or "bin/tritonserver" not in callers[0]:
        return False
    return not of_libc or of_libc[-1].startswith(("pthread_mutex_lock ", "abort "))
