# SPDX-License-Identifier: Apache-2.0
"""A child process whose log is read, and which ends when this process ends."""

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
from ct2_triton.serve.log_reader import LogReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class _Launched(NamedTuple):
    child: subprocess.Popen[bytes]
    log: LogReader


class LoggedProcess:
    """A running child in a session of its own, with its output and errors as one log.

    The parent-death signal is tied to the thread that forks. So the thread that starts the child
    stays until the child ends, and reads its log meanwhile.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: TextIO | None
    ) -> None:
        """Start the child.

        Args:
            command: Binary, as an absolute path, and arguments.
            environment: All its variables.
            log: Where its log goes line by line; None to keep the newest lines only.

        Raises:
            ServerStartError: If it cannot be started.
        """
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
        return self._child.poll()

    def log_lines(self) -> list[str]:
        """All it has written to its log before this call, as far as it is kept.

        Returns:
            At most 5000 lines, with their ends.
        """
        return self._log.lines()

    def wait(self) -> int:
        """Wait until it ends.

        Returns:
            Its exit code, negative for a signal.
        """
        return self._child.wait()

    def send_signal(self, signal_number: int) -> None:
        """Pass it a signal; nothing happens if it has ended.

        Args:
            signal_number: The signal.
        """
        self._child.send_signal(signal_number)

    def stop(self, timeout_s: float) -> int:
        """Ask it to end, then make it, and its own children with it.

        Args:
            timeout_s: Seconds between the two.

        Returns:
            Its exit code, negative for a signal.
        """
        self._child.terminate()
        try:
            self._child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        # What it started itself (stubs of Python models) outlives it if it was killed.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._keeper.join()
        return self._child.returncode

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
                start_new_session=True,  # so that a Ctrl-C reaches it once, through us
            )
        except OSError as error:
            outcome.put(error)
            return
        assert child.stdout is not None  # noqa: S101 - it was asked for
        reader = LogReader(child.stdout, log)
        outcome.put(_Launched(child, reader))
        reader.run()
        child.wait()
