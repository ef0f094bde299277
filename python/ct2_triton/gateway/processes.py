# SPDX-License-Identifier: Apache-2.0
"""One server in several processes that share a port.

Each child listens by itself, and the system distributes new connections (SO_REUSEPORT). The parent
holds a pipe open; when it ends in any way, the pipe closes and all children end. A child that ends
by itself is replaced.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import select
import signal
import socket
import traceback
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import ClientError, Ct2TritonError
from ct2_triton.logs import SHARED_METRICS
from ct2_triton.restarts import RestartLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    Serve = Callable[["Place"], Coroutine[Any, Any, None]]

_SIGNALS: dict[signal.Signals, Any] = {  # and their default actions
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}
_LOG = logging.getLogger(__name__)
_INTERRUPTED = 130
_RESTARTS = 5  # of processes per minute; beyond it an ended process is not replaced
_NOT_REPLACED = f"{_RESTARTS} were replaced within a minute, so it is not replaced now"
_ALLOCATIONS = 20_000  # objects between two collections; Python's default is 700


class Place:
    """Where a process listens, how it reports readiness, and when it ends."""

    def __init__(
        self, host: str, port: int, ready: Callable[[int], None], end: int | None = None
    ) -> None:
        """Keep the address; `ready` is called with the port when requests are answered.

        The process ends when the pipe `end` closes; None if the process is not a child.
        """
        self.host = host
        self.port = port
        self.ready = ready
        self._end = end

    @property
    def is_shared(self) -> bool:
        """Whether other processes also listen there."""
        return self._end is not None

    async def ended(self) -> None:
        """Wait for an interrupt, SIGTERM or the end of the parent."""
        from ct2_triton.web import stopped

        waiting = [asyncio.ensure_future(stopped())]
        if self._end is not None:
            waiting.append(asyncio.ensure_future(_end_of(self._end)))
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()


def spare_collector() -> None:
    """Make garbage collections rare, and exclude objects that exist now.

    Requests create almost no reference cycles. Without this, collections take an eighth of a
    gateway's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)


def serve_in(
    processes: int, host: str, port: int, serve: Serve, ready: Callable[[int], None]
) -> None:
    """Serve in one process or several, until all have ended.

    Args:
        processes: Number of processes.
        host: Address to listen on.
        port: Port to listen on; 0 for any.
        serve: Serves at a place, in one process.
        ready: Called with the port when all processes answer.

    Raises:
        ClientError: The port is not available, or a process has failed and logged the reason.
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
    asked: list[object] = []  # the received signals

    def stop(*came: object) -> None:
        asked.extend(came)
        with suppress(IndexError):  # the pipe is already closed; a signal can arrive at any time
            os.close(held.pop())

    def run_child(write_end: int) -> int:
        stop()  # the child must not hold the parent's end
        return _run_child(serve, Place(place.host, place.port, partial(_tell, write_end), end))

    for number in _SIGNALS:
        signal.signal(number, stop)
    workers = _Workers(run_child)
    for _ in range(processes):
        workers.start()
    if workers.all_ready():
        place.ready(place.port)
        workers.keep(processes, lambda: bool(asked))
    else:
        workers.terminate()  # a child that is not ready yet does not read the pipe
    stop()
    workers.wait()
    if not asked:
        raise ClientError(f"a process has failed, so all {processes} have ended")


class _Workers:
    """Child processes, by the pipes on which they report that they are ready.

    Only the child holds the other end of its pipe, so the pipe closes when the child ends.
    """

    def __init__(self, run_child: Callable[[int], int]) -> None:
        """Start without children; `run_child` runs in a child with its end of the pipe."""
        self._run_child = run_child
        self._children: dict[int, int] = {}

    def start(self) -> None:
        """Start a child."""
        read_end, write_end = os.pipe()
        with _signals_held():
            child = os.fork()
            if child == 0:
                os._exit(self._run_child(write_end))
            os.close(write_end)
            self._children[read_end] = child

    def all_ready(self) -> bool:
        """Wait until every child is ready; return False as soon as one has ended."""
        waiting = set(self._children)
        while waiting:
            for pipe in select.select(waiting, [], [])[0]:
                if not os.read(pipe, 1):
                    return False
                waiting.remove(pipe)
        return True

    def keep(self, processes: int, is_asked: Callable[[], bool]) -> None:
        """Replace children that end, until the server is asked to end or none is left."""
        limit = RestartLimit(_RESTARTS)
        while not is_asked():
            missing = len(self._children) < processes
            if missing and limit.try_one():
                self.start()
                continue
            if not self._children:
                break
            for pipe in select.select(self._children, [], [], 1.0 if missing else None)[0]:
                if not os.read(pipe, 1):
                    child, code = self._reap(pipe)
                    if not is_asked():
                        wanted = len(limit) + processes - len(self._children)
                        what = "it is replaced" if wanted <= limit.most else _NOT_REPLACED
                        _LOG.error("process %d %s; %s", child, _ended_how(code), what)

    def terminate(self) -> None:
        """Send SIGTERM to all."""
        for child in self._children.values():
            os.kill(child, signal.SIGTERM)

    def wait(self) -> None:
        """Wait until all have ended."""
        for pipe in list(self._children):
            self._reap(pipe)

    def _reap(self, pipe: int) -> tuple[int, int]:
        """Wait for the end of a child; return its ID and exit code."""
        child = self._children.pop(pipe)
        os.close(pipe)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if SHARED_METRICS in os.environ:
            from prometheus_client.multiprocess import mark_process_dead

            mark_process_dead(child)  # type: ignore[no-untyped-call]  # its connections count no more
        return child, code


def _ended_how(code: int) -> str:
    return (
        f"ended with status {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
    )


@contextmanager
def _signals_held() -> Iterator[None]:
    """Block signals while children start, so that they arrive when the handlers are set."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def _run(serve: Serve, place: Place) -> None:
    """Run in an event loop, with uvloop if it is installed, which takes less CPU time."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(place))
    else:
        uvloop.run(serve(place))


def _run_child(serve: Serve, place: Place) -> int:
    """Serve, and return the exit code."""
    try:
        for number, handler in _SIGNALS.items():  # not the parent's
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        _run(serve, place)
    except Ct2TritonError as error:
        _LOG.error("%s", error)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BaseException:  # the child must not leave the parent's `with` blocks
        traceback.print_exc()
        return 1
    return 0


def _tell(pipe: int, _: int) -> None:
    os.write(pipe, b".")


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
    """Reserve a port that several processes can listen on, without listening."""
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
