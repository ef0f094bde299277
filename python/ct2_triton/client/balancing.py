# SPDX-License-Identifier: Apache-2.0
"""Use several servers as one: each request goes to the next connected server.

Every server has a channel of its own instead of one channel with gRPC's policy for all, because
only the state of a server's own channel tells a broken connection from a refusal. Names are
resolved again every few seconds, so that an added server is found while the others work; gRPC
resolves a name again only after a connection has ended.
"""

from __future__ import annotations

import asyncio
import socket
import time
import zlib
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ct2_triton.client.calls import SUPERSEDE_KEY
from ct2_triton.client.retry import closed_error
from ct2_triton.client.tasks import in_time
from ct2_triton.errors import InvalidCallError, ServerUnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from tritonclient.grpc import service_pb2

    from ct2_triton.client.calls import Headers
    from ct2_triton.client.connection import Connection
    from ct2_triton.client.retry import Deadline

LOOK_UP_EVERY_S = 10.0
_NEXT_LOOKUP_S = 0.5  # while no address is known


class Address(NamedTuple):
    """Where a server listens, and the URL that led to it."""

    target: str
    url: str

    @property
    def host(self) -> str:
        """The name or address in the URL."""
        return split(self.url)[0]


def split(url: str) -> tuple[str, int]:
    """Split `host:port`; an IPv6 address is in brackets."""
    host, _, port = url.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        raise InvalidCallError(f"url is {url!r}; where load is balanced it must be host:port")
    return host.strip("[]"), int(port)


async def look_up(url: str) -> list[Address]:
    """Find the addresses of a name, one for each server."""
    host, port = split(url)
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    hosts = [f"[{place[0]}]" if ":" in str(place[0]) else place[0] for *_, place in found]
    return [Address(f"{one}:{port}", url) for one in hosts]


def _key_of(request: service_pb2.ModelInferRequest) -> str | None:
    has_key = SUPERSEDE_KEY in request.parameters
    return request.parameters[SUPERSEDE_KEY].string_param if has_key else None


class RoundRobin:
    """Connections to all servers of several URLs, with the methods of a `Connection`."""

    def __init__(
        self,
        urls: Sequence[str],
        connect: Callable[[Address], Connection],
        budget_s: float,
        find: Callable[[str], Awaitable[list[Address]]] = look_up,
    ) -> None:
        """Keep the arguments; no name is resolved and no connection opened yet.

        A call may wait `budget_s` while no server can be reached.
        """
        self._urls = list(urls)
        self._connect = connect
        self._budget_s = budget_s
        self._find = find
        self._ring: deque[tuple[Address, Connection]] = deque()
        self._retired: list[Connection] = []
        self._lookup: asyncio.Task[None] | None = None
        self._next_lookup = 0.0
        self._problem = ""
        self._closed = asyncio.Event()

    async def infer(
        self, request: service_pb2.ModelInferRequest, deadline: Deadline, headers: Headers = ()
    ) -> service_pb2.ModelInferResponse:
        """Send a request to the next server; see `Connection.infer`.

        Requests with the same key go to the same server, because only that one can end the older.
        """
        connection = await self._choose(deadline, _key_of(request))
        return await connection.infer(request, deadline, headers)

    async def stream(
        self, request: service_pb2.ModelInferRequest, deadline: Deadline, headers: Headers = ()
    ) -> AsyncGenerator[service_pb2.ModelStreamInferResponse, None]:
        """Send a request to the next server, or that of its key; see `Connection.stream`."""
        connection = await self._choose(deadline, _key_of(request))
        async for response in connection.stream(request, deadline, headers):
            yield response

    async def model_metadata(
        self, model: str, version: str, deadline: Deadline
    ) -> service_pb2.ModelMetadataResponse:
        """Ask the next server; see `Connection.model_metadata`."""
        return await (await self._choose(deadline)).model_metadata(model, version, deadline)

    async def ready_models(self, deadline: Deadline) -> dict[str, list[str]]:
        """Ask the next server; see `Connection.ready_models`."""
        return await (await self._choose(deadline)).ready_models(deadline)

    async def close(self) -> None:
        """Close all connections; calls under way, and those that wait, end with an error."""
        self._closed.set()
        if self._lookup is not None:
            self._lookup.cancel()
        for connection in (*(one for _, one in self._ring), *self._retired):
            await connection.close()

    async def _choose(self, deadline: Deadline, key: str | None = None) -> Connection:
        """Return the next open connection, or that of the key; wait while there is none."""
        if self._closed.is_set():
            raise closed_error()
        left_s = deadline.remaining_s()
        end = time.monotonic() + (self._budget_s if left_s is None else min(self._budget_s, left_s))
        self._start_lookup()
        while (connection := self._ready_for(key) if key else self._next_ready()) is None:
            patience_s = end - time.monotonic()
            if patience_s <= 0:
                return await self._any_reachable(deadline)
            await self._wait_for_change(min(patience_s, _NEXT_LOOKUP_S))
            if self._closed.is_set():
                raise closed_error()
            self._start_lookup()
        return connection

    async def _wait_for_change(self, timeout_s: float) -> None:
        """Wait until a connection may be open, names are resolved, or the client is closed."""
        changes: set[asyncio.Task[None]] = {one.watch() for _, one in self._ring}
        if not (lookup := self._start_lookup()).done():
            changes.add(lookup)
        if changes:
            await asyncio.wait(changes, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        else:  # no address is known: nothing changes before the next lookup
            with suppress(asyncio.TimeoutError):
                await in_time(self._closed.wait(), timeout_s)

    def _next_ready(self) -> Connection | None:
        """Rotate to the next open connection; closed ones reconnect."""
        for _ in range(len(self._ring)):
            _, connection = self._ring[0]
            self._ring.rotate(-1)
            if connection.is_ready():
                return connection
        return None

    def _ready_for(self, key: str) -> Connection | None:
        """Return the same connection for a key as long as it is open."""
        ready = [(address, one) for address, one in self._ring if one.is_ready()]
        if not ready:
            return None
        return max(ready, key=lambda item: zlib.crc32(f"{key} {item[0].target}".encode()))[1]

    async def _any_reachable(self, deadline: Deadline) -> Connection:
        """Try each server once more, or say why none can be reached."""
        if not self._ring:  # a call may have no time to wait for the first lookup
            left_s = deadline.remaining_s()
            patience_s = _NEXT_LOOKUP_S if left_s is None else min(_NEXT_LOOKUP_S, left_s)
            await asyncio.wait({self._start_lookup()}, timeout=patience_s)
            if self._closed.is_set():
                raise closed_error()
        reason = self._problem
        for _, connection in list(self._ring):
            try:
                await connection.prove_reachable(deadline)
            except ServerUnreachableError as error:
                reason = str(error)
            except InvalidCallError:
                reason = "their addresses have changed"
            else:
                return connection
            if self._closed.is_set():
                raise closed_error()
        raise ServerUnreachableError(
            f"none of {len(self._ring)} servers of {', '.join(self._urls)} can be reached: {reason}"
        )

    def _start_lookup(self) -> asyncio.Task[None]:
        """Resolve all names in a task, if it is time to."""
        if self._lookup is None or (self._lookup.done() and time.monotonic() >= self._next_lookup):
            self._lookup = asyncio.create_task(self._look_up_all())
        return self._lookup

    async def _look_up_all(self) -> None:
        known = dict(self._ring)
        found: dict[Address, None] = {}
        for url in self._urls:
            try:
                found.update(dict.fromkeys(await self._find(url)))
            except (OSError, UnicodeError) as error:
                self._problem = f"{url}: {error}"
                found.update((address, None) for address in known if address.url == url)
        # The ring was rotated meanwhile, but only this task adds and removes connections.
        for address, connection in list(self._ring):
            if address not in found:
                self._ring.remove((address, connection))
                self._retired.append(connection)
        self._ring.extend((one, self._connect(one)) for one in found if one not in known)
        await self._close_retired()
        pause_s = LOOK_UP_EVERY_S if self._ring else _NEXT_LOOKUP_S
        self._next_lookup = time.monotonic() + pause_s

    async def _close_retired(self) -> None:
        """Close removed connections that have no calls left."""
        idle = [one for one in self._retired if one.calls == 0]
        self._retired = [one for one in self._retired if one.calls > 0]
        for connection in idle:
            await connection.close()
