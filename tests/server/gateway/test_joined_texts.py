# SPDX-License-Identifier: Apache-2.0
"""Texts that come together share a request, and none of them is the worse for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ct2_triton.client import TranslationClient, text_codec
from ct2_triton.client.connection import Connection
from ct2_triton.client.text_codec import MOST_CHARACTERS, MOST_TEXTS
from ct2_triton.errors import InvalidCallError, RequestRejectedError
from ct2_triton.serve import TritonServer
from server.gateway.conftest import GERMAN, MODEL, SENTENCE

pytestmark = pytest.mark.server


@pytest.fixture
async def client(demo_server: TritonServer) -> AsyncIterator[TranslationClient]:
    async with TranslationClient(demo_server.grpc_url, MODEL, join_texts=True) as client:
        await client.translate(SENTENCE, source="en", targets="de")  # it is connected
        yield client


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests that go to a server, by model."""
    requests: list[str] = []
    infer = Connection.infer

    async def counted(self: Connection, request: Any, *given: Any) -> Any:
        requests.append(request.model_name)
        return await infer(self, request, *given)

    monkeypatch.setattr(Connection, "infer", counted)
    return requests


async def translated(client: TranslationClient, text: str, *targets: str) -> list[str]:
    found = await client.translate(text, source="en", targets=targets)
    return [one.text for one in found]


async def test_what_comes_together_is_one_request(
    client: TranslationClient, sent: list[str]
) -> None:
    sent.clear()
    found = await asyncio.gather(
        translated(client, SENTENCE, "de"),
        translated(client, f"{SENTENCE} {SENTENCE}", "de"),
        translated(client, SENTENCE, "fr"),
        translated(client, "", "de"),
    )
    [[french]] = [await translated(client, SENTENCE, "fr")]
    assert found == [[GERMAN], [f"{GERMAN} {GERMAN}"], [french], [""]]
    assert len(sent) == 2
    pairs = await asyncio.gather(*(translated(client, SENTENCE, "de", "fr") for _ in range(3)))
    assert pairs == [[GERMAN, french]] * 3
    assert len(sent) == 3


async def test_a_request_has_some_short_texts_asked_for_alike(
    client: TranslationClient, sent: list[str]
) -> None:
    sent.clear()
    many = [translated(client, SENTENCE, "de") for _ in range(MOST_TEXTS + 1)]
    assert await asyncio.gather(*many) == [[GERMAN]] * (MOST_TEXTS + 1)
    assert len(sent) == 2
    long = " ".join([SENTENCE] * (MOST_CHARACTERS // len(SENTENCE) + 1))
    found = await asyncio.gather(
        translated(client, SENTENCE, "de"),
        translated(client, long, "de"),
        client.translate(SENTENCE, source="en", targets="de", num_hypotheses=2, beam_size=2),
        client.translate(SENTENCE, source="en", targets="de", session="a"),
        client.translate(SENTENCE, source="en", targets="de", supersede="b"),
    )
    assert found[0] == [GERMAN]
    assert found[1][0].startswith(f"{GERMAN} {GERMAN}")
    assert len(found[2].hypotheses) == 2
    assert len(sent) == 7


async def test_the_error_of_a_text_is_its_own(client: TranslationClient) -> None:
    found = await asyncio.gather(
        translated(client, SENTENCE, "de"),
        translated(client, SENTENCE, "xx"),
        translated(client, "\ud800", "de"),
        translated(client, SENTENCE, "de"),
        return_exceptions=True,
    )
    assert [found[0], found[3]] == [[GERMAN]] * 2
    assert isinstance(found[1], RequestRejectedError)
    assert isinstance(found[2], InvalidCallError)
    assert await translated(client, SENTENCE, "de") == [GERMAN]


async def test_who_goes_away_takes_no_other_along(client: TranslationClient) -> None:
    gone = asyncio.create_task(translated(client, SENTENCE, "de"))
    stays = asyncio.create_task(translated(client, SENTENCE, "de"))
    await asyncio.sleep(0)
    gone.cancel()
    assert await stays == [GERMAN]
    with pytest.raises(asyncio.CancelledError):
        await gone
    alone = asyncio.create_task(translated(client, SENTENCE, "de"))
    await asyncio.sleep(0)
    alone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await alone
    assert await translated(client, SENTENCE, "de") == [GERMAN]


@pytest.mark.parametrize("waits", [True, False], ids=["gone", "going"])
async def test_a_text_that_nobody_waits_for_is_not_sent(
    client: TranslationClient, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    """And whoever comes while it is given up is not given up along with it.

    What was sent is not cancelled: Triton 2.51 may not survive that.
    """
    sizes: list[int] = []
    infer, running, cancelled = Connection.infer, 0, 0
    idle = asyncio.Event()
    idle.set()

    async def sized(self: Connection, request: Any, *given: Any) -> Any:
        nonlocal running, cancelled
        sizes.append(request.inputs[0].shape[0])
        running += 1
        idle.clear()
        try:
            return await infer(self, request, *given)
        except asyncio.CancelledError:
            cancelled += 1
            raise
        finally:
            running -= 1
            if running == 0:
                idle.set()

    async def all_answered() -> None:
        for _ in range(5):  # what is on its way is sent
            await asyncio.sleep(0)
        await idle.wait()

    monkeypatch.setattr(Connection, "infer", sized)
    for turns in range(12):
        gone = asyncio.create_task(translated(client, SENTENCE, "de"))
        for _ in range(turns):
            await asyncio.sleep(0)
        gone.cancel()
        if waits:
            await asyncio.wait([gone])
            await all_answered()
            sizes.clear()
        assert await asyncio.create_task(translated(client, SENTENCE, "de")) == [GERMAN]
        assert sizes in ([1], [1, 1])  # the other was on its way
        assert len(sizes) == 1 or not waits
        await asyncio.wait([gone])
        await all_answered()
        sizes.clear()
    assert cancelled == 0


async def test_while_a_request_is_under_way_texts_wait_for_others(
    client: TranslationClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    infer, under_way, may_go_on = Connection.infer, asyncio.Event(), asyncio.Event()

    async def held(self: Connection, request: Any, *given: Any) -> Any:
        sizes.append(request.inputs[0].shape[0])
        if len(sizes) == 1:
            under_way.set()
            await may_go_on.wait()
        return await infer(self, request, *given)

    monkeypatch.setattr(Connection, "infer", held)
    first = asyncio.create_task(translated(client, SENTENCE, "de"))
    await under_way.wait()
    assert await translated(client, SENTENCE, "de") == [GERMAN]  # it does not wait for ever
    monkeypatch.setattr(text_codec, "WAIT_S", 3600.0)
    others = []
    for _ in range(MOST_TEXTS):
        others.append(asyncio.create_task(translated(client, SENTENCE, "de")))
        for _ in range(5):
            await asyncio.sleep(0)
    assert await asyncio.gather(*others) == [[GERMAN]] * MOST_TEXTS
    assert sizes == [1, 1, MOST_TEXTS]
    may_go_on.set()
    assert await first == [GERMAN]
    assert await translated(client, SENTENCE, "de") == [GERMAN]  # nothing is under way


async def test_versions_are_not_mixed(demo_server: TritonServer, sent: list[str]) -> None:
    """Each text goes to the version that its own words choose."""
    async with TranslationClient(
        demo_server.grpc_url, MODEL, join_texts=True, versions={"1": 1.0}
    ) as client:
        await translated(client, SENTENCE, "de")
        sent.clear()
        await asyncio.gather(*(translated(client, SENTENCE, "de") for _ in range(3)))
    assert len(sent) == 3
