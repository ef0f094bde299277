# SPDX-License-Identifier: Apache-2.0
"""A request that several coroutines wait for, and what threads compute."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

import pytest

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


async def test_one_client_of_long_texts_does_not_hold_up_the_long_texts_of_others() -> None:
    may_end = threading.Event()
    long = asyncio.create_task(aside(100_000, may_end.wait, 20))
    try:
        assert await asyncio.wait_for(aside(100_000, len, "other"), 20) == 5
        assert not long.done()
    finally:
        may_end.set()
    assert await long


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
def test_a_forked_process_computes_with_threads_of_its_own() -> None:
    code = (
        "import asyncio, os, sys\n"
        "from ct2_triton.client.tasks import aside\n"
        "assert asyncio.run(aside(300, len, 'text')) == 4\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(asyncio.run(asyncio.wait_for(aside(300, len, 'text'), 20)))\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert result.returncode == 4


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
