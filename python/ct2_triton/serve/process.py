# SPDX-License-Identifier: Apache-2.0
"""A child process that is logged, and ends when this process ends.

The lines of a tritonserver's log that explain a failure are selected here, too.
"""

from __future__ import annotations

import array
import codecs
import contextlib
import fcntl
import json
import os
import re
import select
import signal
import subprocess
import sys
import termios
import threading
from collections import deque
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple, TextIO

from ct2_triton.serve import launcher
from ct2_triton.serve.errors import ServerStartError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import IO

# E1121 10:56:06.833726 7997 model_lifecycle.cc:642] "text, escaped as in JSON"
_ERROR_LINE = re.compile(r"^[EF]\d{4} [\d:.]+ \d+ [\w.]+:\d+\] ?(?P<text>.*)$")
_FINAL_LINE = re.compile(r"^error: (?P<text>.*)$")
# .../bin/tritonserver: unrecognized option '--no-such', before 400 lines of usage
_OPTION_LINE = re.compile(r"^\S*tritonserver: (?P<text>.*option.*)$")
# Logged by every server without a GPU; harmless.
_HARMLESS = ("CudaDriverHelper has not been initialized", "unable to create stream")
_MAX_LINES = 20


def lines_that_matter(log: Iterable[str]) -> list[str]:
    """Return the errors of a log, in plain text and without repetitions.

    They are at most 20: the first errors, and the last line.
    """
    texts: list[str] = []
    for line in log:
        text = _error_text(line.rstrip("\n"))
        if text and text not in texts:
            texts.append(text)
    if len(texts) <= _MAX_LINES:
        return texts
    left_out = len(texts) - _MAX_LINES
    return [*texts[: _MAX_LINES - 1], f"... {left_out} more errors ...", texts[-1]]


def _error_text(line: str) -> str | None:
    match = _ERROR_LINE.match(line) or _FINAL_LINE.match(line) or _OPTION_LINE.match(line)
    if match is None:
        return None
    text = _unescape(match["text"])
    if any(harmless in text for harmless in _HARMLESS):
        return None
    return text


def _unescape(text: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError:
        return text


_KEPT_LINES = 5000
_CHUNK_BYTES = 65536


class LogReader:
    """Keep the newest lines of a pipe, and copy all of them to a sink."""

    def __init__(self, pipe: IO[bytes], sink: TextIO | None) -> None:
        """Take over the pipe; nothing is read yet. Without a sink, it keeps the newest lines."""
        self._pipe = pipe
        self._sink = sink
        self._newest: deque[str] = deque(maxlen=_KEPT_LINES)
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._begun_line = ""
        # Held from reading the pipe until its lines are kept: an empty pipe then means no lines
        # on the way.
        self._lock = threading.Lock()

    def run(self) -> None:
        """Read until the last writer has closed the pipe."""
        waiting = select.poll()
        waiting.register(self._pipe, select.POLLIN)
        more = True
        while more:
            waiting.poll()
            with self._lock:
                # `lines` may have read it already; reading an empty pipe would block with the lock.
                if waiting.poll(0):
                    more = self._read_chunk()
        with self._lock:
            self._pipe.close()

    def lines(self) -> list[str]:
        """Return the lines written before this call, with line ends: at most the newest 5000."""
        while True:
            with self._lock:
                if self._pipe.closed or _waiting_bytes(self._pipe) == 0:
                    return list(self._newest)
                self._read_chunk()

    def _read_chunk(self) -> bool:
        chunk = os.read(self._pipe.fileno(), _CHUNK_BYTES)
        text = self._begun_line + self._decoder.decode(chunk, final=not chunk)
        *whole, self._begun_line = text.split("\n")
        lines = [f"{line}\n" for line in whole]
        if not chunk and self._begun_line:
            lines.append(self._begun_line)
        self._newest.extend(lines)
        if lines:
            self._pass_on(lines)
        return bool(chunk)

    def _pass_on(self, lines: list[str]) -> None:
        if self._sink is None:
            return
        try:
            self._sink.writelines(lines)
            self._sink.flush()
        except (OSError, ValueError) as error:  # the disk is full, or the sink is closed
            # A pipe that is not read would block the server at its next lines.
            self._sink = None
            self._newest.append(f"ct2-serve: the log cannot be written any more: {error}\n")


def _waiting_bytes(pipe: IO[bytes]) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


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
