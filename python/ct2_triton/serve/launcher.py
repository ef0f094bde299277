# SPDX-License-Identifier: Apache-2.0
"""Run a command that ends when the thread that started it ends. Linux only.

Run as ``python -I -S launcher.py <parent pid> <command> ...``. It is a separate program, because
Python code between fork and exec is not safe in a process with threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def _main(parent_pid: int, command: list[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    # The parent may have died before the call above.
    if os.getppid() != parent_pid:
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 - replacing this process is the point


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2:])
