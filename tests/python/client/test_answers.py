# SPDX-License-Identifier: Apache-2.0
"""Calls that nobody waits for any more, on servers that survive cancelling and on others."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from tritonclient.grpc import service_pb2

from ct2_triton import errors
from ct2_triton.client.connection import Connection
from ct2_triton.client.retry import Deadline, RetryPolicy
from support.fault_server import FaultServer, abort, echo, request, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


OLD, NEW = "2.51.0", "2.57.0"


class Triton(FaultServer):
    """Answers when told to, says its version, and counts its calls by how they ended."""

    def __init__(self, version: str) -> None:
        super().__init__(_answer_when_told)
        self.version = version
        self.asked = asyncio.Event()
        self.told = asyncio.Event()
        self.ended = asyncio.Event()

    async def ServerMetadata(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        self.asked.set()
        return service_pb2.ServerMetadataResponse(version=self.version)


async def _answer_when_told(server: FaultServer, request: Any, context: Any) -> Any:
    assert isinstance(server, Triton)
    server.started.set()
    try:
        await server.told.wait()
    except asyncio.CancelledError:
        server.cancelled.set()
        raise
    server.ended.set()
    return await echo(server, request, context)


@asynccontextmanager
async def connected(server: FaultServer) -> AsyncIterator[Connection]:
    """A connection that has asked the server for its version."""
    async with serving(server) as url:
        connection = Connection(url, RetryPolicy(budget_s=60))
        if isinstance(server, Triton):
            server.told.set()
            await connection.infer(request(), Deadline(60))
            for event in (server.told, server.started, server.ended):
                event.clear()
        try:
            yield connection
        finally:
            await connection.close()


async def _given_up(connection: Connection, server: FaultServer, *, cancel: bool) -> None:
    """Makes a call that is given up while the server works at it."""
    call = asyncio.create_task(connection.infer(request(), Deadline(60 if cancel else 1)))
    await server.started.wait()
    if cancel:
        call.cancel()
    with pytest.raises(asyncio.CancelledError if cancel else errors.DeadlineExceededError):
        await call


@pytest.mark.parametrize("cancel", [True, False])
async def test_the_call_goes_on_where_the_server_may_not_survive_its_end(cancel: bool) -> None:
    server = Triton(OLD)
    async with connected(server) as connection:
        await _given_up(connection, server, cancel=cancel)
        server.told.set()
        await asyncio.wait_for(server.ended.wait(), 600)
        await connection.infer(request(), Deadline(60))
    assert not server.cancelled.is_set()


@pytest.mark.parametrize("cancel", [True, False])
async def test_the_call_is_cancelled_where_the_server_survives_that(cancel: bool) -> None:
    server = Triton(NEW)
    async with connected(server) as connection:
        await _given_up(connection, server, cancel=cancel)
        await asyncio.wait_for(server.cancelled.wait(), 600)


async def test_another_server_behind_the_same_address_is_asked_again() -> None:
    """A connection that broke may lead to an older server next."""
    server = Triton(NEW)
    async with connected(server) as connection:
        server.behaviour = abort(grpc.StatusCode.UNKNOWN, "Stream removed")
        with pytest.raises(errors.ConnectionLostError):
            await connection.infer(request(), Deadline(60))
        server.behaviour, server.version = _answer_when_told, OLD
        await _given_up(connection, server, cancel=True)
        server.told.set()
        await asyncio.wait_for(server.ended.wait(), 600)
    assert not server.cancelled.is_set()


async def test_a_server_that_does_not_say_its_version_is_not_cancelled() -> None:
    server = Triton("none")
    async with connected(server) as connection:
        await _given_up(connection, server, cancel=True)
        server.told.set()
        await asyncio.wait_for(server.ended.wait(), 600)
    assert not server.cancelled.is_set()


async def test_a_client_that_ends_lets_its_calls_end_first() -> None:
    server = Triton(OLD)
    async with connected(server) as connection:
        call = asyncio.create_task(connection.infer(request(), Deadline(60)))
        await server.started.wait()
        closing = asyncio.create_task(connection.close())
        await asyncio.sleep(0)
        server.told.set()
        await closing
        assert (await call).raw_output_contents == [b"\1\0\0\0"]
    assert not server.cancelled.is_set()
