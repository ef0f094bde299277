# SPDX-License-Identifier: Apache-2.0
"""Reads the log of a child process from a pipe, and knows when it has read all that was written."""

from __future__ import annotations

import array
import codecs
import fcntl
import os
import select
import termios
import threading
from collections import deque
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from typing import IO

_KEPT_LINES = 5000
_CHUNK_BYTES = 65536


class LogReader:
    """Keep the newest lines of a pipe, and pass all of them on."""

    def __init__(self, pipe: IO[bytes], sink: TextIO | None) -> None:
        """Take the pipe over; nothing is read yet. Without a sink newest lines are kept."""
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
                # `lines` may have been quicker; reading an empty pipe would wait with the lock.
                if waiting.poll(0):
                    more = self._read_chunk()
        with self._lock:
            self._pipe.close()

    def lines(self) -> list[str]:
        """Give what was written before this call, with line ends, at most the newest 5000 lines."""
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
            # A pipe that is not read would stop the server at its next lines.
            self._sink = None
            self._newest.append(f"ct2-serve: the log cannot be written any more: {error}\n")


def _waiting_bytes(pipe: IO[bytes]) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]
