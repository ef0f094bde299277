# SPDX-License-Identifier: Apache-2.0
"""Run coroutines concurrently so that none outlives the call that started it.

Also reads blocking iterators in threads, and computes in them.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache, partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ct2_triton.errors import InvalidCallError

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Coroutine,
        Iterable,
        Iterator,
        Sequence,
    )
    from typing import Any

Item = TypeVar("Item")
Result = TypeVar("Result")


class Shared(Generic[Result]):
    """A request shared by several coroutines; if all are cancelled, it is cancelled."""

    def __init__(self, send: Callable[[], Coroutine[Any, Any, list[Result]]]) -> None:
        """Prepare; `send` returns one result per waiting coroutine."""
        self._send = send
        self._task: asyncio.Task[list[Result]] | None = None
        self._waiting = 0

    @property
    def is_wanted(self) -> bool:
        """Whether a coroutine waits for it."""
        return self._waiting > 0

    async def one(self, position: int) -> Result:
        """Wait for the result at a position; the first call sends the request."""
        if self._task is None:
            self._task = asyncio.create_task(self._send())
        task = self._task
        self._waiting += 1
        try:
            return (await asyncio.shield(task))[position]
        finally:
            self._waiting -= 1
            if self._waiting == 0 and not task.done():
                self._task = None  # tasks that arrive while it ends share another one
                await cancel_all([task])


async def run_all(
    coroutines: Iterable[Coroutine[Any, Any, Result]], *, cancels: bool = True
) -> list[Result]:
    """Run coroutines concurrently and return their results in order.

    Unlike with `asyncio.gather`, the first error, or a cancellation from outside, ends the others
    before it is raised. (`asyncio.TaskGroup` needs Python 3.11.) Without `cancels`, an error is
    raised after all have ended.
    """
    pending = list(coroutines)
    if len(pending) == 1:  # one coroutine needs no task
        return [await pending[0]]
    tasks = [asyncio.create_task(coroutine) for coroutine in pending]
    try:
        if tasks:
            end = asyncio.FIRST_EXCEPTION if cancels else asyncio.ALL_COMPLETED
            await asyncio.wait(tasks, return_when=end)
        for task in tasks:
            if task.done():
                task.result()  # raises the error
        return [task.result() for task in tasks]
    finally:
        await cancel_all(tasks)


async def cancel_all(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended; what they raise is dropped."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def is_cancelled() -> bool:
    """Return whether the running task was cancelled itself; always False before Python 3.11."""
    task = asyncio.current_task()
    return sys.version_info >= (3, 11) and task is not None and task.cancelling() > 0


async def in_time(work: Awaitable[Result], timeout_s: float) -> Result:
    """Wait with a time limit, like `asyncio.wait_for`, but without a task."""
    if sys.version_info < (3, 11):
        return await asyncio.wait_for(work, timeout_s)
    async with asyncio.timeout(timeout_s):
        return await work


def check_in_flight(most: object) -> None:
    """Refuse a limit that is no number of requests."""
    if not isinstance(most, Integral) or int(most) < 1:
        raise InvalidCallError(f"max_in_flight is {most!r}; it must be an integer, 1 or more")


async def map_bounded(
    function: Callable[[Item], Awaitable[Result]], items: Sequence[Item], limit: int
) -> list[Result]:
    """Apply an asynchronous function to every item, at most `limit` at a time, results in order."""
    if len(items) == 1:
        return [await function(items[0])]
    positions = iter(range(len(items)))
    results: dict[int, Result] = {}

    async def work() -> None:
        for position in positions:
            results[position] = await function(items[position])

    await run_all(work() for _ in range(min(limit, len(items))))
    return [results[position] for position in range(len(items))]


_AT_ONCE = 200  # characters; what is computed of fewer takes no longer than a thread
_SHORT = 4000
_THREADS_OF_LONG = 4  # Python runs them in turn, so that one client's do not hold up all others


@lru_cache(2)
def _pool(process: int, is_short: bool) -> ThreadPoolExecutor:
    """Return the threads for texts of a length; those of a parent process do not run in a fork."""
    return ThreadPoolExecutor(
        1 if is_short else _THREADS_OF_LONG, f"ct2-{'short' if is_short else 'long'}"
    )


async def aside(characters: int, function: Callable[..., Result], *arguments: object) -> Result:
    """Compute something of a text, while the event loop goes on.

    A thread computes it, if the text is long enough; Python interrupts the thread for the loop. The
    function must not use the loop.
    """
    if characters <= _AT_ONCE:
        await asyncio.sleep(0)  # others have their turn between many short texts
        return function(*arguments)
    pool = _pool(os.getpid(), characters <= _SHORT)
    return await asyncio.get_running_loop().run_in_executor(pool, partial(function, *arguments))


_END = object()
_CHUNK_BYTES = 65536


async def iterate_in_thread(items: Iterable[Item]) -> AsyncIterator[Item]:
    """Iterate over a blocking iterable in a thread, without blocking the event loop.

    The thread is a daemon, so waiting for input does not keep the process alive. It reads at most
    two items ahead.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[Any, BaseException | None]] = asyncio.Queue()
    room = threading.Semaphore()
    left = threading.Event()

    def put(item: object, error: BaseException | None = None) -> bool:
        room.acquire()
        if left.is_set():
            return False
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(queue.put_nowait, (item, error))
            return True
        return False

    thread = threading.Thread(target=_feed, args=(items, put), daemon=True)
    thread.start()
    try:
        while True:
            item, error = await queue.get()
            room.release()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
    finally:
        left.set()
        room.release()  # wakes a thread that waits for room


def _feed(items: Iterable[Any], put: Callable[..., bool]) -> None:
    """Put items, then the end or the error, until the reader leaves."""
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

    It reads the descriptor itself, because a buffered reader in which a thread waits cannot be
    closed at the end of the interpreter.
    """
    begun: list[bytes] = []  # parts of a line, joined at its end, because a line can have gigabytes
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
