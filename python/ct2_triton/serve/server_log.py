# SPDX-License-Identifier: Apache-2.0
"""Select the lines of a tritonserver log that explain a failure."""

from __future__ import annotations

import array
import codecs
import fcntl
import json
import os
import re
import select
import termios
import threading
from collections import deque
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable
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
