# SPDX-License-Identifier: Apache-2.0
"""A request that several coroutines wait for, and what threads compute."""

from __future__ import annotations

import asyncio
import threading

from ct2_triton.client.tasks import Shared, aside


async def test_a_short_text_does_not_wait_for_long_ones() -> None:
    may_end = threading.Event()
    long = [asyncio.create_task(aside(100_000, may_end.wait, 20)) for _ in range(3)]
    try:
        assert await asyncio.wait_for(aside(300, len, "short"), 20) == 5
        assert not any(one.done() for one in long)
    finally:
        may_end.set()
    assert await asyncio.gather(*long) == [True] * 3


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
