# SPDX-License-Identifier: Apache-2.0
"""Live captions through a real server: finals are the model's own, whatever was shown before."""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from ct2_triton.client import SyncTranslationClient, TranslationClient
from ct2_triton.errors import InvalidCallError
from ct2_triton.live import (
    Caption,
    LiveOptions,
    LiveTranslator,
    SegmentUpdate,
    SyncLiveTranslator,
)
from ct2_triton.prepared_model import PreparedModel
from ct2_triton.serve import TritonServer
from server.live.conftest import growing, in_turn
from support.metrics import fresh
from support.servers import MakeServer
from support.waiting import wait_until

pytestmark = pytest.mark.server

SENTENCES = [
    "Next week in Stockholm: fog.",
    "On the A21, a bus has broken down and is blocking one lane.",
    "After a long check, the goal by Dlamini stands, and it is now 3-3 in Bruges.",
]
TARGETS = ["deu_Latn", "fra_Latn"]


async def paced(updates: list[SegmentUpdate]) -> AsyncIterator[SegmentUpdate]:
    """Gives an update when the one before has had time to be shown: 20 ms, or longer by luck."""
    for update in updates:
        yield update
        await asyncio.sleep(0.02)


async def offline(client: TranslationClient) -> dict[tuple[str, str | None], str]:
    answers = await client.translate(SENTENCES, source="en", targets=TARGETS)
    return {(str(i), one.target): one.text for i, row in enumerate(answers) for one in row}


@pytest.mark.parametrize("mode", ["final", "steady", "append"])
async def test_finals_are_the_offline_translation_and_committed_text_stays(
    either_client: TranslationClient, mode: str
) -> None:
    client = either_client
    options = LiveOptions(mode=mode, min_words=1, min_interval_ms=0, source="newest")  # type: ignore[arg-type]
    live = LiveTranslator(client, source="en", targets=TARGETS, options=options)
    updates = in_turn(*(growing(str(i), text) for i, text in enumerate(SENTENCES)))
    captions = [caption async for caption in live.run(paced(updates))]
    truth = await offline(client)
    assert {(c.segment, c.target): c.transcript for c in captions if c.final} == truth
    for segment, target in truth:
        mine = [c for c in captions if (c.segment, c.target) == (segment, target)]
        stays = mine if mode == "append" else mine[:-1]
        for before, after in itertools.pairwise(stays):
            assert after.committed.startswith(before.committed)
        assert mine[-1].tail == ""
        assert mode == "steady" or all(caption.tail == "" for caption in mine)
    assert live.counts.finals == len(truth)
    if mode == "final":
        assert live.counts.requests == len(truth)


async def test_words_are_committed_while_more_are_said(either_client: TranslationClient) -> None:
    options = LiveOptions(mode="append", min_words=1, min_interval_ms=0)
    live = LiveTranslator(either_client, source="en", targets=["de"], options=options)

    async def one_by_one() -> AsyncIterator[SegmentUpdate]:
        """A text is sent when the one before is answered, if it is sent at all."""
        for update in growing("1", SENTENCES[2]):
            before = live.counts.requests
            yield update
            with suppress(AssertionError):
                await asyncio.to_thread(
                    wait_until, lambda before=before: live.counts.requests > before, limit_s=2.0
                )

    *interims, last = [caption async for caption in live.run(one_by_one())]
    assert any(interim.committed for interim in interims)
    assert last.committed.startswith(interims[-1].committed)


async def test_running_text_is_translated_sentence_by_sentence(client: TranslationClient) -> None:
    options = LiveOptions(min_interval_ms=0)
    live = LiveTranslator(client, source="en", targets=TARGETS, options=options)
    nothing = SegmentUpdate("nothing", "", final=True)
    updates = [*growing("1", " ".join(SENTENCES)), nothing]
    captions = [caption async for caption in live.run(paced(updates))]
    names = ["1", "1~2", "1~3"]
    truth = {(names[int(i)], target): text for (i, target), text in (await offline(client)).items()}
    finals = {(c.segment, c.target): c.transcript for c in captions if c.final}
    assert finals == {**truth, **{("nothing", target): "" for target in TARGETS}}


async def test_an_answer_goes_on_from_its_own_start_and_leans_to_it(
    client: TranslationClient,
) -> None:
    free = await client.translate(SENTENCES[1], source="en", targets="de")
    for length in range(0, len(free.ids), 5):
        start = free.ids[:length]
        forced = await client.translate(SENTENCES[1], source="en", targets="de", prefix=start)
        assert forced == free
    other = await client.translate(SENTENCES[0], source="en", targets="de")
    forced = await client.translate(SENTENCES[1], source="en", targets="de", prefix=other.ids[:3])
    assert forced.ids[:3] == other.ids[:3]
    biased = await client.translate(
        SENTENCES[1], source="en", targets="de", prefix=free.ids[:4], prefix_bias_beta=0.3
    )
    assert biased.text == free.text
    with pytest.raises(InvalidCallError, match="one sentence in one language"):
        await client.translate(SENTENCES[0], source="en", targets=TARGETS, prefix=(4,))
    again = await client.translate(SENTENCES[1], source="en", targets="de")
    assert again == free


async def test_beginnings_and_drafts_are_texts_as_well(
    either_client: TranslationClient, demo_server: TritonServer
) -> None:
    """The same from a model of ids, whose text is split here, and from one that takes text."""

    async def german(**given: Any) -> str:
        one = await either_client.translate(SENTENCES[1], source="en", targets="de", **given)
        return one.text

    free = await german()
    for start in ("Auf der", "Heute ist auf der A21", free[: free.rindex(" ")]):
        forced = await german(prefix=start)
        assert forced.startswith(start)
        assert (forced == free) is free.startswith(start)
        before = _kept(demo_server, either_client)
        assert await german(prefix=start, draft=forced, beam_size=1) == forced
        assert _kept(demo_server, either_client) > before
    # A prefix may end inside a piece of the draft, or be all of it.
    for start, draft in (("Don", "Donnerstag ist es."), ("Heute", "Heute"), (" Auf", "Auf der")):
        forced = await german(prefix=start)
        assert await german(prefix=start, draft=draft, beam_size=1) == forced
        near = await german(prefix=start, draft=draft, draft_bias=0.9)
        assert near.startswith(start.strip())
        assert "Don nerstag" not in near
    assert await german(draft="Das ist etwas anderes.", beam_size=1) == free
    biased = await german(draft="Das ist etwas anderes.", draft_bias=0.99)
    assert biased.startswith("Das ist etwas")
    with pytest.raises(InvalidCallError, match="draft is for one sentence in one language"):
        await either_client.translate(SENTENCES[:2], source="en", targets="de", draft="Das")
    assert await german() == free


def _kept(server: TritonServer, client: TranslationClient) -> float:
    return fresh(server, client.model)["ct2_loop_draft_tokens_kept_total"]


def test_the_synchronous_twin(demo_server: TritonServer, demo_model: PreparedModel) -> None:
    repository = demo_model.directory.parent
    with SyncTranslationClient(demo_server.grpc_url, "demo", repository=repository) as client:
        live = SyncLiveTranslator(client, source="en", targets=TARGETS)
        captions = list(live.run(growing("1", SENTENCES[1])))
        expected = client.translate(SENTENCES[1], source="en", targets=TARGETS)
        for _ in live.run(growing("2", SENTENCES[0])):
            break  # leaving early ends the translation, and the client goes on
        again = client.translate(SENTENCES[1], source="en", targets=TARGETS)
    assert {c.target: c.transcript for c in captions if c.final} == {
        one.target: one.text for one in expected
    }
    assert again == expected


async def test_a_server_that_is_killed_loses_no_final(
    make_server: MakeServer, demo_model: PreparedModel
) -> None:
    """Killed with finals and interims under way; others are spoken while there is none."""
    repository = demo_model.directory.parent
    first = make_server(repository)
    captions: list[Caption] = []
    killed = asyncio.Event()
    many = {str(i): SENTENCES[i % 3] for i in range(24)}

    async def spoken() -> AsyncIterator[SegmentUpdate]:
        for name, text in many.items():
            for update in growing(name, text)[-3:]:
                yield update
            if name == "11":
                while not captions:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                first.process.send_signal(signal.SIGKILL)
                await asyncio.to_thread(first.process.wait)
                killed.set()

    async def read(live: LiveTranslator) -> None:
        async for caption in live.run(spoken()):
            captions.append(caption)  # noqa: PERF401 - read while it grows

    async with TranslationClient(first.grpc_url, "demo", repository=repository) as client:
        live = LiveTranslator(client, source="en", targets=TARGETS)
        reading = asyncio.create_task(read(live))
        await asyncio.wait_for(killed.wait(), 600)
        await asyncio.to_thread(make_server, repository, ports=first.ports)
        await asyncio.wait_for(reading, 120)
        truth = await offline(client)
    finals = sorted((int(c.segment), c.target, c.transcript) for c in captions if c.final)
    assert finals == sorted(
        (int(name), target, truth[str(int(name) % 3), target])
        for name in many
        for target in TARGETS
    )
