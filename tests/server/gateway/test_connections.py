# SPDX-License-Identifier: Apache-2.0
"""Clients that hold connections open, send headers slowly or send too large ones."""

from __future__ import annotations

import asyncio
import socket

import aiohttp
import pytest
from aiohttp import web

from ct2_triton.web_connections import BoundedRunner
from ct2_triton.web_metrics import WebMetrics
from server.gateway.conftest import MakeSite, Site

pytestmark = pytest.mark.server

HEAD = b"GET /languages HTTP/1.1\r\nHost: x\r\n"


async def connect(site: Site) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = site.url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


@pytest.mark.parametrize("sent", [b"", b"GET", HEAD, HEAD + b"X-Slow: a"])
async def test_a_header_that_does_not_come_ends_the_connection(
    make_site: MakeSite, sent: bytes
) -> None:
    site = await make_site(idle_s=0.2)
    reader, writer = await connect(site)
    writer.write(sent)
    assert await reader.read() == b""
    writer.close()
    await (await make_site()).good()


async def test_a_header_that_comes_by_the_byte_ends_with_the_same_clock(
    make_site: MakeSite,
) -> None:
    site = await make_site(idle_s=0.2)
    reader, writer = await connect(site)
    writer.write(HEAD + b"X-Slow: ")
    ended = asyncio.create_task(reader.read())
    while not ended.done():  # it never ends if each byte starts the clock again
        writer.write(b"a")
        await asyncio.sleep(0.02)
    writer.close()
    await (await make_site()).good()


async def test_a_connection_that_is_silent_after_an_answer_is_closed(make_site: MakeSite) -> None:
    site = await make_site(idle_s=0.2)
    answer = b""
    while not answer:  # a busy machine may take longer than that to send the first request
        reader, writer = await connect(site)
        writer.write(HEAD + b"\r\n")
        answer = await reader.read()  # up to the end of the connection
        writer.close()
    assert answer.startswith(b"HTTP/1.1 200 ")
    await (await make_site()).good()


async def test_more_connections_than_may_be_are_told_to_come_again(make_site: MakeSite) -> None:
    site = await make_site(max_connections=2)
    held = [await connect(site) for _ in range(2)]
    for reader, writer in held:  # they are accepted: each has an answer
        writer.write(HEAD + b"\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
    reader, writer = await connect(site)
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nRetry-After: 1\r\n" in answer
    assert answer.endswith(b'{"error": "Slowdown: there are as many connections as may be"}')
    for _, one in (*held, (reader, writer)):
        one.close()
        await one.wait_closed()
    while not await _answers(site):
        pass  # the gateway sees soon that they have gone
    await site.good()


async def test_many_that_come_at_once_are_no_more_than_may_be() -> None:
    """They lie in the socket, and are accepted in one turn of the loop."""
    runner = BoundedRunner(web.Application(), 2, WebMetrics("ct2_test"))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address = runner.addresses[0]
        many = [socket.create_connection(address) for _ in range(6)]  # while the loop stands still
        streams = [await asyncio.open_connection(sock=one) for one in many]
        answers = [asyncio.create_task(reader.read()) for reader, _ in streams]
        for answered in asyncio.as_completed(answers[2:], timeout=600):
            assert b" 503 " in await answered
        for answer, (_, writer) in zip(answers[:2], streams, strict=False):
            writer.write(HEAD + b"Connection: close\r\n\r\n")
            assert b" 404 " in await answer
        for _, writer in streams:
            writer.close()
    finally:
        await runner.cleanup()


async def _answers(site: Site) -> bool:
    try:
        return (await site.get("/languages"))[0] == 200
    except aiohttp.ClientError:  # refused while the request was sent
        return False


@pytest.mark.parametrize(
    "head", [HEAD + b"X: " + b"a" * 9000, b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x"]
)
async def test_a_header_that_is_too_large_is_refused(site: Site, head: bytes) -> None:
    reader, writer = await connect(site)
    writer.write(head + b"\r\n\r\n")
    assert (await reader.readline()).split()[1] == b"400"
    writer.close()
    await site.good()
