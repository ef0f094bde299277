# SPDX-License-Identifier: Apache-2.0
"""A request that several coroutines wait for."""

from __future__ import annotations

import asyncio

from ct2_triton.client.tasks import Shared


async def test_who_comes_while_it_is_given_up_has_another_one() -> None:
    sent, go_on = asyncio.Event(), asyncio.Event()
    requests = 0

    async def send() -> list[str]:
        nonlocal requests
        requests += 1
        sent.set()
        await go_on.wait()
        return ["answer"]

    shared = Shared(send)
    first = asyncio.create_task(shared.one(0))
    await sent.wait()
    first.cancel()
    second = asyncio.create_task(shared.one(0))
    await asyncio.wait([first])
    go_on.set()
    assert await second == "answer"
    assert await shared.one(0) == "answer"
    assert (first.cancelled(), requests) == (True, 2)
