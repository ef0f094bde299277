# SPDX-License-Identifier: Apache-2.0
"""Blocking input for an event loop: live, bounded, and never in the way of the end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from ct2_triton.client.tasks import iterate_in_thread, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


async def test_a_line_comes_before_the_input_ends() -> None:
    reading, writing = os.pipe()
    async with aclosing(iterate_in_thread(read_lines(reading))) as lines:
        os.write(writing, b"first\nsec")
        assert await anext(lines) == "first"
        os.write(writing, b"ond\r\nlast without end")
        assert await anext(lines) == "second"
        os.close(writing)
        assert [line async for line in lines] == ["last without end"]
    os.close(reading)


def test_lines_are_those_of_the_bytes(tmp_path: Path) -> None:
    file = tmp_path / "text"
    long = "ä" * 100_000
    file.write_bytes(f"\n{long}\n\r\na\x0bb\n".encode() + b"\xff\n")
    with file.open("rb") as stream:
        lines = list(read_lines(stream.fileno()))
    assert lines == ["", long, "", "a\x0bb", "\ufffd"]


async def test_what_the_iterator_raises_is_raised_here() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError("gone")

    stream = iterate_in_thread(items())
    assert await anext(stream) == 1
    with pytest.raises(OSError, match="gone"):
        await anext(stream)


async def test_reading_stays_two_items_ahead() -> None:
    taken: list[int] = []
    waiting = threading.Event()

    def items() -> Iterator[int]:
        for i in range(1000):
            taken.append(i)
            if i == 2:
                waiting.set()
            yield i

    async with aclosing(iterate_in_thread(items())) as stream:
        assert await anext(stream) == 0
        assert await asyncio.to_thread(waiting.wait, 30)
        await asyncio.sleep(0.05)
        assert taken == [0, 1, 2]


def test_a_thread_that_waits_does_not_keep_the_process_alive() -> None:
    code = (
        "import asyncio\n"
        "from contextlib import aclosing\n"
        "from ct2_triton.client.tasks import iterate_in_thread, read_lines\n"
        "async def main():\n"
        "    async with aclosing(iterate_in_thread(read_lines(0))) as lines:\n"
        "        print(await anext(lines))\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write("one\n")
        process.stdin.flush()
        assert process.stdout.readline() == "one\n"
        assert process.wait(600) == 0  # with stdin still open
        assert process.stderr
        assert process.stderr.read() == ""
