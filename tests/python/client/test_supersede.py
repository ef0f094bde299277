# SPDX-License-Identifier: Apache-2.0
"""Keys by which a newer request ends an older one; the server here does as the backend is to do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from ct2_triton import errors
from ct2_triton.client import (
    RetryPolicy,
    Sentence,
    SyncTranslationClient,
    Tokenizer,
)
from python.client.conftest import client_of
from support.fault_server import FaultServer, echo, serving_in_a_thread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


TEXT = "The old sailor noticed the harbour."
CALL: dict[str, Any] = {"source": "eng_Latn", "targets": ["deu_Latn", "fra_Latn"]}


class KeyedServer(FaultServer):
    """Answers a request with a key when it is told to, or ends it when a newer one comes."""

    def __init__(self) -> None:
        super().__init__(self.keyed)
        self.keys: list[str] = []
        self.release = asyncio.Event()
        self.was_cancelled = False
        self._newest: dict[str, asyncio.Event] = {}

    async def keyed(self, server: FaultServer, request: Any, context: Any) -> Any:
        key = request.parameters["supersede_key"].string_param
        self.keys.append(key)
        if key:
            if key in self._newest:
                self._newest[key].set()
            ended = self._newest[key] = asyncio.Event()
            waits = [asyncio.ensure_future(one.wait()) for one in (ended, self.release)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                self.was_cancelled = True
                raise
            if ended.is_set():
                await context.abort(grpc.StatusCode.CANCELLED, f"superseded by a newer {key!r}")
        return await echo(server, request, context)


class ReorderingServer(KeyedServer):
    """Takes the first request with a key after the second one."""

    def __init__(self) -> None:
        super().__init__()
        self.is_first = True

    async def keyed(self, server: FaultServer, request: Any, context: Any) -> Any:
        was_first, self.is_first = self.is_first, False
        if was_first:
            await arrived(self, 1)
        return await super().keyed(server, request, context)


async def arrived(server: KeyedServer, count: int) -> None:
    """Waits for requests, for half a minute at most."""
    for _ in range(3000):
        if len(server.keys) >= count:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{len(server.keys)} requests arrived, not {count}")


async def test_a_newer_call_ends_the_older_one_in_every_language(tokenizer: Tokenizer) -> None:
    server = KeyedServer()
    async with client_of(server, tokenizer) as client:
        older = asyncio.create_task(client.translate(TEXT, **CALL, supersede="speaker-1"))
        await arrived(server, 2)
        other = asyncio.create_task(client.translate(TEXT, **CALL, supersede="speaker-2"))
        newer = asyncio.create_task(client.translate(TEXT, **CALL, supersede="speaker-1"))
        with pytest.raises(errors.SupersededError, match="^superseded") as caught:
            await older
        assert isinstance(caught.value.__cause__, grpc.RpcError)
        server.release.set()
        assert [one.text for one in await newer] == [one.text for one in await other] == [TEXT] * 2
        await client.translate(TEXT, **CALL)
    assert set(server.keys[:2]) == {"speaker-1/deu_Latn", "speaker-1/fra_Latn"}
    assert server.keys[-2:] == ["", ""]
    assert not server.was_cancelled


async def test_what_is_superseded_is_not_sent_again(tokenizer: Tokenizer) -> None:
    server = KeyedServer()
    patient = RetryPolicy(outage_s=60)
    async with client_of(server, tokenizer, retry=patient) as client:
        older = asyncio.create_task(client.translate(TEXT, **CALL, supersede="a"))
        await arrived(server, 2)
        newer = asyncio.create_task(client.translate(TEXT, **CALL, supersede="a"))
        with pytest.raises(errors.SupersededError):
            await older
        server.release.set()
        await newer
    assert len(server.keys) == 4


async def test_versions_of_a_streams_sentence_end_each_other_without_cancelling(
    tokenizer: Tokenizer,
) -> None:
    server = KeyedServer()

    async def captions() -> AsyncGenerator[Sentence | str, None]:
        for number, text in enumerate(("The old", "The old sailor", TEXT)):
            yield Sentence(text, id=7)
            await arrived(server, number + 1)
        yield "Alone."
        await arrived(server, 4)
        server.release.set()

    async with client_of(server, tokenizer) as client:
        call = client.stream(captions(), source="eng_Latn", targets="de", supersede="hall-2")
        items = [item async for item in call]
    assert [item.sentence.text for item in items] == [TEXT, "Alone."]
    assert server.keys == ["hall-2/7/deu_Latn"] * 3 + [""]
    assert not server.was_cancelled


async def test_a_version_that_an_older_one_ended_is_sent_again(tokenizer: Tokenizer) -> None:
    server = ReorderingServer()

    async def captions() -> AsyncGenerator[Sentence, None]:
        yield Sentence("The old", id=7)
        yield Sentence(TEXT, id=7)
        await arrived(server, 3)  # the newer one, the older one, the newer one again
        server.release.set()

    async with client_of(server, tokenizer) as client:
        call = client.stream(captions(), source="eng_Latn", targets="de", supersede="hall-2")
        items = [item async for item in call]
    assert [item.translation.text for item in items] == [TEXT]
    assert server.keys == ["hall-2/7/deu_Latn"] * 3


async def test_a_version_that_somebody_else_ended_is_not_sent_again(tokenizer: Tokenizer) -> None:
    server = KeyedServer()

    async def captions() -> AsyncGenerator[Sentence, None]:
        yield Sentence(TEXT, id=7)
        await arrived(server, 1)
        other = client.translate("Mine.", source="eng_Latn", targets="de", supersede="hall-2/7")
        others.append(asyncio.create_task(other))

    others: list[asyncio.Task[Any]] = []
    async with client_of(server, tokenizer) as client:
        call = client.stream(captions(), source="eng_Latn", targets="de", supersede="hall-2")
        with pytest.raises(errors.SupersededError):
            [item async for item in call]
        server.release.set()
        assert (await others[0]).source_text == "Mine."
    assert server.keys == ["hall-2/7/deu_Latn"] * 2


async def test_versions_that_are_kept_have_no_key(tokenizer: Tokenizer) -> None:
    server = KeyedServer()

    async def captions() -> AsyncGenerator[Sentence, None]:
        for text in ("The old", TEXT):
            yield Sentence(text, id=7)

    async with client_of(server, tokenizer) as client:
        call = client.stream(captions(), **CALL, supersede="hall-2", superseded="keep")
        assert len([item async for item in call]) == 4
    assert set(server.keys) == {""}


@pytest.mark.parametrize("key", ["", 7, "x" * 257, "ä" * 129])
async def test_a_key_that_cannot_be_is_refused_at_once(tokenizer: Tokenizer, key: Any) -> None:
    server = KeyedServer()
    async with client_of(server, tokenizer) as client:
        with pytest.raises(errors.InvalidCallError, match="^supersede "):
            await client.translate(TEXT, **CALL, supersede=key)
        with pytest.raises(errors.InvalidCallError, match="^supersede "):
            await client.translate([TEXT, TEXT], **CALL, supersede="a")
        await client.translate(TEXT, **CALL)
        with pytest.raises(errors.InvalidCallError, match="'supersede_key' is"):
            await client.translate(TEXT, **CALL, supersede="\ud800")
        await client.translate(TEXT, **CALL)
    assert server.keys == [""] * 4


async def test_a_call_that_the_server_cancels_otherwise_is_not_superseded(
    tokenizer: Tokenizer,
) -> None:
    async def cancel(_server: FaultServer, _request: Any, context: Any) -> Any:
        await context.abort(grpc.StatusCode.CANCELLED, "the request was cancelled")

    async with client_of(FaultServer(cancel), tokenizer) as client:
        with pytest.raises(errors.ServerFailedError):
            await client.translate(TEXT, **CALL, supersede="a")


def test_the_synchronous_twin_sends_keys_too(tokenizer: Tokenizer) -> None:
    with (
        serving_in_a_thread(KeyedServer) as (server, url),
        SyncTranslationClient(url, "m", tokenizer=tokenizer) as client,
    ):
        server.release.set()
        client.translate(TEXT, **CALL, supersede="a")
        list(client.stream([Sentence("One.", id=1)], **CALL, supersede="b"))
    assert sorted(server.keys) == ["a/deu_Latn", "a/fra_Latn", "b/1/deu_Latn", "b/1/fra_Latn"]
