# SPDX-License-Identifier: Apache-2.0
"""A server that is away, busy or broken for a while, and a client that was told to wait for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from ct2_triton import errors
from ct2_triton.client import RetryPolicy, Tokenizer, TranslationClient
from support.fault_server import FaultServer, Wire, abort, echo, serving
from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


CALL: dict[str, Any] = {"source": "eng_Latn", "targets": "deu_Latn"}
TEXTS = [f"Number {i}." for i in range(40)]
PATIENT = RetryPolicy(budget_s=0.1, initial_backoff_s=0.01, max_backoff_s=0.05, outage_s=120)


async def arriving(texts: list[str]) -> AsyncGenerator[str, None]:
    for text in texts:
        yield text


def client(url: str, tokenizer: Tokenizer, policy: RetryPolicy) -> TranslationClient:
    return TranslationClient(url, "m", tokenizer=tokenizer, retry=policy)


async def test_a_stream_outlasts_a_server_that_is_gone_longer_than_a_call_waits(
    tokenizer: Tokenizer,
) -> None:
    port = free_port()
    async with client(f"127.0.0.1:{port}", tokenizer, PATIENT) as own:
        gone = asyncio.Event()

        async def texts() -> AsyncGenerator[str, None]:
            yield TEXTS[0]
            await gone.wait()
            for text in TEXTS[1:]:
                yield text

        async with serving(FaultServer(), port):
            items = own.stream(texts(), **CALL, timeout_s=3)
            found = [await anext(items)]
        gone.set()
        rest = asyncio.create_task(_rest(items))
        await asyncio.sleep(4)  # longer than the budget and than the deadline of a sentence
        assert not rest.done()
        async with serving(FaultServer(), port):
            found += await rest
    assert [item.translation.source_text for item in found] == TEXTS


async def test_without_the_policy_the_first_failure_is_told(tokenizer: Tokenizer) -> None:
    server = FaultServer(abort(grpc.StatusCode.UNAVAILABLE, "Exceeds maximum queue size"))
    async with serving(server) as url, client(url, tokenizer, RetryPolicy()) as own:
        with pytest.raises(errors.ServerBusyError):
            await own.translate(TEXTS[0], **CALL)
    assert server.calls == 1


async def test_a_busy_server_is_asked_again_until_the_outage_or_the_call_is_over(
    tokenizer: Tokenizer,
) -> None:
    refuse = abort(grpc.StatusCode.UNAVAILABLE, "Exceeds maximum queue size")

    async def third(server: FaultServer, request: Any, context: Any) -> Any:
        return await (refuse if server.calls < 3 else echo)(server, request, context)

    server = FaultServer(third)
    short = RetryPolicy(max_backoff_s=0.1, outage_s=0.5)
    async with serving(server) as url, client(url, tokenizer, PATIENT) as own:
        assert (await own.translate(TEXTS[0], **CALL)).text == TEXTS[0]
    server = FaultServer(refuse)
    async with serving(server) as url, client(url, tokenizer, short) as own:
        with pytest.raises(errors.ServerBusyError):
            await own.translate(TEXTS[0], **CALL)
        server.behaviour = echo
        await own.translate(TEXTS[0], **CALL)
    server = FaultServer()
    async with serving(server) as url, client(url, tokenizer, PATIENT) as own:
        await own.translate(TEXTS[0], **CALL)  # it is connected
        server.behaviour = refuse
        # The time ends in a pause, or in the last attempt.
        with pytest.raises((errors.ServerBusyError, errors.DeadlineExceededError)):
            await own.translate(TEXTS[0], **CALL, timeout_s=0.3)
        server.behaviour = echo
        await own.translate(TEXTS[0], **CALL)


async def test_a_model_that_ends_with_its_server_is_waited_for_and_a_missing_one_is_not(
    tokenizer: Tokenizer,
) -> None:
    unknown = "Request for unknown model: 'm' "
    leave = abort(grpc.StatusCode.NOT_FOUND, f"{unknown}has no available versions")

    async def third(server: FaultServer, request: Any, context: Any) -> Any:
        return await (leave if server.calls < 3 else echo)(server, request, context)

    server = FaultServer(third)
    async with serving(server) as url, client(url, tokenizer, PATIENT) as own:
        assert (await own.translate(TEXTS[0], **CALL)).text == TEXTS[0]
        server.behaviour = abort(grpc.StatusCode.NOT_FOUND, f"{unknown}is not found")
        with pytest.raises(errors.ModelNotFoundError, match="is not found"):
            await own.translate(TEXTS[0], **CALL)
    assert server.calls == 4
    short = RetryPolicy(max_backoff_s=0.1, outage_s=0.5)
    async with serving(FaultServer(leave)) as url, client(url, tokenizer, short) as own:
        with pytest.raises(errors.ServerBusyError, match="no available versions; .*was unloaded"):
            await own.translate(TEXTS[0], **CALL)


async def test_the_sentence_that_breaks_connections_is_found_and_the_others_answered(
    tokenizer: Tokenizer,
) -> None:
    poison = b"".join(i.to_bytes(4, "little") for i in tokenizer.encode("poison").ids)

    async def behave(server: FaultServer, request: Any, context: Any) -> Any:
        if poison in request.raw_input_contents[0]:
            wire.cut()
        await asyncio.sleep(0.05)
        return await echo(server, request, context)

    async with serving(FaultServer(behave)) as url:
        wire = Wire(url)
        async with wire.open() as relayed, client(relayed, tokenizer, PATIENT) as own:
            texts = [*TEXTS[:20], "poison", *TEXTS[20:]]
            items = own.stream(arriving(texts), **CALL, on_error="yield")
            found = [item async for item in items]
    failed = [item for item in found if isinstance(item.outcome, errors.ClientError)]
    assert [item.sentence.text for item in failed] == ["poison"]
    assert isinstance(failed[0].outcome, errors.ConnectionLostError)
    assert len(found) == len(texts)
    assert wire.accepted == 4  # three broke


async def _rest(items: Any) -> list[Any]:
    return [item async for item in items]
