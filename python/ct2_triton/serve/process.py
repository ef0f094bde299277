# SPDX-License-Identifier: Apache-2.0
"""A child process that is logged, and ends when this process ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple, TextIO

from ct2_triton.serve import launcher
from ct2_triton.serve.errors import ServerStartError
from ct2_triton.serve.server_log import LogReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class _Launched(NamedTuple):
    child: subprocess.Popen[bytes]
    log: LogReader


class LoggedProcess:
    """A running child in its own session, with its output and errors as one log.

    The parent-death signal belongs to the thread that forks. So the thread that starts the child
    runs until the child ends, and reads its log.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: TextIO | None
    ) -> None:
        """Start the child.

        Args:
            command: Binary, as an absolute path, and arguments.
            environment: All its variables.
            log: Where its log is written line by line; None: only the newest lines are kept.

        Raises:
            ServerStartError: If it cannot be started.
        """
        self._lock = threading.RLock()  # signal handlers interrupt the thread that holds it
        self._is_reaped = False
        outcome: SimpleQueue[_Launched | OSError] = SimpleQueue()
        self._keeper = threading.Thread(
            target=self._keep, args=(command, environment, log, outcome), daemon=True
        )
        self._keeper.start()
        launched = outcome.get()
        if isinstance(launched, OSError):
            raise ServerStartError(f"cannot start {command[0]}: {launched}")
        self._child, self._log = launched

    @property
    def pid(self) -> int:
        """The child's process id, which is also that of its session."""
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        if self._child.returncode is None and _has_ended(self._child.pid, os.WNOHANG):
            self._reap()
        return self._child.returncode

    def log_lines(self) -> list[str]:
        """Return the log lines written before this call: at most the newest 5000."""
        return self._log.lines()

    def wait(self) -> int:
        """Wait until it ends and return its exit code, negative for a signal."""
        while self._child.returncode is None:
            if _has_ended(self._child.pid):
                self._reap()
        return self._child.returncode

    def send_signal(self, signal_number: int) -> None:
        """Send it a signal; nothing happens if it has ended."""
        with self._lock:
            if not self._is_reaped:
                os.kill(self._child.pid, signal_number)

    def stop(self, timeout_s: float) -> int:
        """Terminate it, after a time kill it, with its children; return its exit code."""
        self.send_signal(signal.SIGTERM)
        killer = threading.Timer(timeout_s, self.send_signal, (signal.SIGKILL,))
        killer.start()
        try:
            exit_code = self.wait()
        finally:
            killer.cancel()
        self._keeper.join()
        return exit_code

    def _reap(self) -> None:
        """End the remaining processes of the ended child, then reap the child.

        Until then its ID is reserved; later another process may have it.
        """
        with self._lock:
            if self._is_reaped:
                return
            # Its children (stubs of Python models) survive it if it was killed.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._is_reaped = True
            self._child.wait()

    def _keep(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: TextIO | None,
        outcome: SimpleQueue[_Launched | OSError],
    ) -> None:
        try:
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", launcher.__file__, str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                env=environment,
                start_new_session=True,  # so that a Ctrl-C reaches it only through us
            )
        except OSError as error:
            outcome.put(error)
            return
        assert child.stdout is not None  # noqa: S101 - it was asked for
        reader = LogReader(child.stdout, log)
        outcome.put(_Launched(child, reader))
        reader.run()
        _has_ended(child.pid)


def _has_ended(pid: int, flags: int = 0) -> bool:
    """Return whether a child has ended or was reaped, without reaping it; WNOHANG: do not wait."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | flags) is not None
    except ChildProcessError:
        return True
