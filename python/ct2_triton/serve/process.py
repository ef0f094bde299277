# SPDX-License-Identifier: Apache-2.0
"""A child process whose log is read, and which ends when this process ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from queue import SimpleQueue
from typing import TYPE_CHECKING, TextIO

from ct2_triton.serve import launcher
from ct2_triton.serve.errors import ServerStartError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_KEPT_LOG_LINES = 5000


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
        self._log = log
        self._newest: deque[str] = deque(maxlen=_KEPT_LOG_LINES)
        outcome: SimpleQueue[subprocess.Popen[str] | OSError] = SimpleQueue()
        self._keeper = threading.Thread(
            target=self._keep, args=(command, environment, outcome), daemon=True
        )
        self._keeper.start()
        launched = outcome.get()
        if isinstance(launched, OSError):
            raise ServerStartError(f"cannot start {command[0]}: {launched}")
        self._child = launched

    @property
    def pid(self) -> int:
        """The child's process id, which is also that of its session."""
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._child.poll()

    def log_lines(self) -> list[str]:
        """The newest lines of its log; all there are, if it has ended and left no children.

        Returns:
            At most 5000 lines, with their ends.
        """
        if self.exit_code is not None:
            self._keeper.join(timeout=5.0)
        return list(self._newest)

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
        outcome: SimpleQueue[subprocess.Popen[str] | OSError],
    ) -> None:
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", launcher.__file__, str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="backslashreplace",
                env=environment,
                start_new_session=True,  # so that a Ctrl-C reaches it once, through us
            )
        except OSError as error:
            outcome.put(error)
            return
        outcome.put(process)
        with process:
            for line in process.stdout or ():
                self._newest.append(line)
                if self._log is not None:
                    self._log.write(line)
                    self._log.flush()
