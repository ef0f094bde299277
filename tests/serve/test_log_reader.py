# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import io
import os
import threading
from pathlib import Path

from ct2_triton.serve.server_log import LogReader


def test_everything_written_before_is_there_without_a_reading_thread() -> None:
    reader, writer = _pipe()
    os.write(writer, "one\ntwo ä\nthr".encode())
    assert reader.lines() == ["one\n", "two ä\n"]
    os.write(writer, b"ee\n")
    assert reader.lines()[-1] == "three\n"
    os.close(writer)


def test_everything_written_before_is_there_while_a_thread_reads() -> None:
    sink = io.StringIO()
    reader, writer = _pipe(sink)
    thread = threading.Thread(target=reader.run)
    thread.start()
    for number in range(2000):
        os.write(writer, f"line {number}\n".encode())
        assert reader.lines()[-1] == f"line {number}\n"
    os.close(writer)
    thread.join()
    assert sink.getvalue().count("\n") == 2000


def test_text_that_is_cut_or_broken_is_kept() -> None:
    reader, writer = _pipe()
    umlaut = "ä".encode()
    os.write(writer, umlaut[:1])
    assert reader.lines() == []
    os.write(writer, umlaut[1:] + b" \xff\n no end")
    os.close(writer)
    reader.run()
    assert reader.lines() == ["ä \\xff\n", " no end"]


def test_the_newest_lines_are_kept() -> None:
    reader, writer = _pipe()
    thread = threading.Thread(target=reader.run)
    thread.start()
    os.write(writer, b"".join(b"%d\n" % number for number in range(6000)))
    os.close(writer)
    thread.join()
    assert reader.lines() == [f"{number}\n" for number in range(1000, 6000)]


def _pipe(sink: io.StringIO | None = None) -> tuple[LogReader, int]:
    reading, writing = os.pipe()
    return LogReader(os.fdopen(reading, "rb", buffering=0), sink), writing


def test_a_sink_that_fails_does_not_stop_the_reading() -> None:
    with Path("/dev/full").open("w", encoding="utf-8", buffering=1) as full:
        reader, writer = _pipe(full)
        os.write(writer, b"one\n")
        assert reader.lines()[0] == "one\n"
        assert "the log cannot be written any more" in reader.lines()[1]
        os.write(writer, b"two\n")
        assert reader.lines()[2:] == ["two\n"]
        os.close(writer)
        with contextlib.suppress(OSError):  # what is left in its buffer
            full.close()
