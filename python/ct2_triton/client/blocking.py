# SPDX-License-Identifier: Apache-2.0
"""Blocking iterators for an event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

Item = TypeVar("Item")
_END = object()
_CHUNK_BYTES = 65536


async def iterate_in_thread(items: Iterable[Item]) -> AsyncIterator[Item]:
    """Iterate over a blocking iterable in a thread, so that waiting for it holds up nothing.

    The thread is a daemon: one that waits for input that never comes does not keep the process
    alive. It reads at most two items ahead.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[Any, BaseException | None]] = asyncio.Queue(1)
    left = threading.Event()

    def put(item: object, error: BaseException | None = None) -> bool:
        if left.is_set() or loop.is_closed():
            return False
        asyncio.run_coroutine_threadsafe(queue.put((item, error)), loop).result()
        return True

    thread = threading.Thread(target=_feed, args=(items, put), daemon=True)
    thread.start()
    try:
        while True:
            item, error = await queue.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
    finally:
        left.set()
        while not queue.empty():
            queue.get_nowait()  # lets a thread go that waits for room


def _feed(items: Iterable[Any], put: Callable[..., bool]) -> None:
    """Put items, then their end or their failure, until the reader leaves."""
    try:
        for item in items:
            if not put(item):
                return
        put(_END)
    except BaseException as error:  # raised again where it is awaited
        put(None, error)


def read_lines(descriptor: int) -> Iterator[str]:
    """Read lines as `read_byte_lines` does; bytes that are not UTF-8 become U+FFFD."""
    return map(text_of_line, read_byte_lines(descriptor))


def read_byte_lines(descriptor: int) -> Iterator[bytes]:
    """Read lines, without LF, from a file descriptor, each as soon as it is complete.

    Read the descriptor itself: a buffered reader that a thread waits in cannot be closed when the
    interpreter ends.
    """
    begun: list[bytes] = []  # of a line; joined at its end, as a line may have gigabytes
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield b"".join([*begun, end])
            begun = []
        begun.append(rest)
    if any(begun):
        yield b"".join(begun)


def text_of_line(line: bytes) -> str:
    """Read a line without its end; bytes that are not UTF-8 become U+FFFD."""
    return line.removesuffix(b"\r").decode("utf-8", "replace")
