# SPDX-License-Identifier: Apache-2.0
"""Bodies of requests that do not come."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from ct2_triton.gateway.bodies import read_fields
from ct2_triton.gateway.refusals import Refusal


@pytest.mark.parametrize("content_type", ["application/json", "application/x-www-form-urlencoded"])
async def test_who_breaks_off_is_no_failure_of_the_gateway(content_type: str) -> None:
    reading = asyncio.Event()
    ended: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    async def handle(request: web.Request) -> web.Response:
        reading.set()
        try:
            await read_fields(request, 600.0)
        except Exception as error:
            ended.set_result(error)
        else:
            ended.set_result(None)
        return web.Response()

    app = web.Application()
    app.router.add_post("/", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        _, writer = await asyncio.open_connection(*runner.addresses[0])
        head = f"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\n"
        writer.write(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        await reading.wait()
        writer.close()
        error = await ended
    finally:
        await runner.cleanup()
    assert isinstance(error, Refusal)
    assert (error.status, str(error)) == (400, "Invalid request: the body is not complete")
