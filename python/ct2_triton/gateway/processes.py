# SPDX-License-Identifier: Apache-2.0
"""One server in several processes that share a port.

Each child listens by itself, and the system shares new connections out (SO_REUSEPORT). A pipe that
the parent holds open ends all children with it, however it ends.
"""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import socket
import sys
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import ClientError, Ct2TritonError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator

    Serve = Callable[["Place"], Coroutine[Any, Any, None]]

_SIGNALS: dict[signal.Signals, Any] = {  # and what they do where nobody says else
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}
_INTERRUPTED = 130
_ALLOCATIONS = 20_000  # objects between two collections; Python's own number is 700


class Place:
    """Where a process listens, whom it tells, and when it ends."""

    def __init__(
        self, host: str, port: int, ready: Callable[[int], None], end: int | None = None
    ) -> None:
        """Remember it.

        Args:
            host: Address to listen at.
            port: Port to listen at.
            ready: To be called with the port, when requests are answered.
            end: A pipe whose end ends the process; None where it has no parent of ours.
        """
        self.host = host
        self.port = port
        self.ready = ready
        self._end = end

    @property
    def is_shared(self) -> bool:
        """Whether other processes listen there, too."""
        return self._end is not None

    async def ended(self) -> None:
        """Wait for an interrupt, for SIGTERM, or for the parent's end."""
        from ct2_triton.web import stopped

        waiting = [asyncio.ensure_future(stopped())]
        if self._end is not None:
            waiting.append(asyncio.ensure_future(_end_of(self._end)))
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()


def spare_collector() -> None:
    """Make garbage collections rare, and leave out what is loaded by now.

    Requests leave next to no cycles. Without this, an eighth of a gateway's time is collections.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)


def serve_in(
    processes: int, host: str, port: int, serve: Serve, ready: Callable[[int], None]
) -> None:
    """Serve in one process or several, until all have ended.

    Args:
        processes: How many.
        host: Address to listen at.
        port: Port to listen at; 0 for any.
        serve: Serves at a place, in one process.
        ready: Is called with the port, when all of them answer.

    Raises:
        ClientError: The port cannot be had, or a process has failed; it has said why.
    """
    if processes == 1:
        _run(serve, Place(host, port, ready))
        return
    if not hasattr(os, "fork") or not hasattr(socket, "SO_REUSEPORT"):
        raise ClientError(f"--processes is {processes}; this system has 1 only")
    with _reserved(host, port) as port:
        _serve_in_children(processes, Place(host, port, ready), serve)


def _serve_in_children(processes: int, place: Place, serve: Serve) -> None:
    end, hold = os.pipe()
    held = [hold]
    asked: list[object] = []  # the signals that came: who asked for an end is not told of a failure

    def stop(*came: object) -> None:
        asked.extend(came)
        with suppress(IndexError):  # it is closed; a signal may come here at any time
            os.close(held.pop())

    for number in _SIGNALS:
        signal.signal(number, stop)
    children: dict[int, int] = {}  # the pipes on which they tell that they are ready
    with _signals_held():
        for _ in range(processes):
            told, tell = os.pipe()
            child = os.fork()
            if child == 0:
                stop()  # it holds no end of its own
                own = Place(place.host, place.port, partial(_tell, tell), end)
                os._exit(_run_child(serve, own))
            os.close(tell)  # the child alone holds it: its end is the child's
            children[child] = told
    os.close(end)
    if _all_ready(children.values()):
        place.ready(place.port)
    else:
        for child in children:  # one that is not ready yet does not look at the pipe
            os.kill(child, signal.SIGTERM)
    has_failed = False
    for _ in children:
        _, status = os.wait()
        has_failed |= status != 0 and not asked
        stop()  # one that has ended ends the others
    if has_failed:
        raise ClientError(f"a process has failed, so all {processes} have ended")


@contextmanager
def _signals_held() -> Iterator[None]:
    """Hold signals back while children begin: one that comes meets the handlers that are meant."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def _run(serve: Serve, place: Place) -> None:
    """Run in an event loop; that of uvloop, where it is there, takes less time."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(place))
    else:
        uvloop.run(serve(place))


def _run_child(serve: Serve, place: Place) -> int:
    """Serve, and give the exit code."""
    try:
        for number, handler in _SIGNALS.items():  # not the parent's
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        _run(serve, place)
    except Ct2TritonError as error:
        print(f"ct2-gateway: {error}", file=sys.stderr, flush=True)  # noqa: T201
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    return 0


def _tell(pipe: int, _: int) -> None:
    os.write(pipe, b".")


def _all_ready(pipes: Iterable[int]) -> bool:
    """Wait until each child has told; False as soon as one has ended before."""
    waiting = set(pipes)
    while waiting:
        for pipe in select.select(waiting, [], [])[0]:
            if not os.read(pipe, 1):
                return False
            waiting.remove(pipe)
    return True


async def _end_of(pipe: int) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(pipe, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(pipe)


@contextmanager
def _reserved(host: str, port: int) -> Iterator[int]:
    """Hold a port that several may listen at, without listening."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind, protocol) as held:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            held.bind(address)
            yield held.getsockname()[1]
    except OSError as error:
        from ct2_triton.web import cannot_listen

        raise cannot_listen(host, port, error) from error
