# SPDX-License-Identifier: Apache-2.0
"""A silent server is given up soon, and one with gRPC's own ping rules is not offended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from ct2_triton import errors
from ct2_triton.client import connection as keepalive
from ct2_triton.client.connection import Connection
from ct2_triton.client.retry import Deadline, RetryPolicy
from support.fault_server import FaultServer, Wire, echo, request, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

# Twice a client's longest wait for a silent server: whoever still waits then, waits for ever.
GUARD_S = 30


def answer_after(seconds: float) -> Any:
    """Makes a behaviour that is silent for a while."""

    async def behave(server: FaultServer, wanted: Any, context: Any) -> Any:
        server.started.set()
        await asyncio.sleep(seconds)
        return await echo(server, wanted, context)

    return behave


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Asks five times as often; a busy machine has as long to answer, and gRPC its own times."""
    for name in ("QUESTION_AFTER_S", "PING_AFTER_S"):
        monkeypatch.setattr(keepalive, name, getattr(keepalive, name) / 5)
    return


def test_the_defaults_give_a_silent_server_up_within_15_s() -> None:
    assert keepalive.PING_AFTER_S + keepalive.PING_TIMEOUT_S + keepalive.CONNECT_TIMEOUT_S <= 15


@pytest.mark.usefixtures("quick")
async def test_a_call_into_silence_fails_and_the_next_one_works() -> None:
    async with serving(FaultServer()) as url:
        wire = Wire(url)
        async with wire.open() as relayed:
            connection = Connection(relayed, RetryPolicy())
            await connection.infer(request(), Deadline(GUARD_S))
            wire.silence()
            with pytest.raises(errors.ConnectionLostError):
                await connection.infer(request(), Deadline(GUARD_S))
            await connection.infer(request(), Deadline(GUARD_S))
            await connection.close()
    assert wire.accepted == 2


@pytest.mark.usefixtures("quick")
async def test_silence_is_noticed_late_in_a_long_call_too() -> None:
    """After two pings gRPC itself is quiet for a minute."""
    server = FaultServer(answer_after(600))
    async with serving(server) as url:
        wire = Wire(url)
        async with wire.open() as relayed:
            connection = Connection(relayed, RetryPolicy())
            call = asyncio.create_task(connection.infer(request(), Deadline(600)))
            await asyncio.sleep(4 * keepalive.PING_AFTER_S)
            assert not call.done()
            wire.silence()
            with pytest.raises(errors.ConnectionLostError):
                await asyncio.wait_for(call, GUARD_S)
            server.behaviour = echo
            await connection.infer(request(), Deadline(GUARD_S))
            await connection.close()


async def test_a_server_with_default_ping_rules_answers_a_call_of_25_s() -> None:
    """Its rules: two pings in five minutes of its own silence, or it ends the connection."""
    async with serving(FaultServer(answer_after(25))) as url:
        wire = Wire(url)
        async with wire.open() as relayed:
            connection = Connection(relayed, RetryPolicy())
            await connection.infer(request(), Deadline(120))
            await connection.close()
    assert wire.accepted == 1


async def test_answers_that_come_need_no_question() -> None:
    asked = asyncio.Event()
    pulse = keepalive.Pulse(asked.set, interval_s=3)  # longer than a busy machine stops
    with pulse.during_call():
        for _ in range(350):
            with pulse.during_call():
                await asyncio.sleep(0.01)
        assert not asked.is_set()
        await asyncio.wait_for(asked.wait(), GUARD_S)
