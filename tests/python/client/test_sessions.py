# SPDX-License-Identifier: Apache-2.0
"""Which calls go to one version of a model; the server notes what is asked of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from ct2_triton.client import Tokenizer, TranslationClient
from ct2_triton.live import LiveOptions, LiveTranslator, SegmentUpdate
from ct2_triton.terms.finding import Terms
from ct2_triton.terms.translation import stream_terms
from support.fault_server import FaultServer, echo, serving

HALVES = {"1": 0.5, "2": 0.5}


class Recorder(FaultServer):
    """Keeps the version that each request asks for."""

    def __init__(self) -> None:
        super().__init__(self.keep)
        self.versions: list[str] = []

    async def keep(self, server: FaultServer, request: Any, context: Any) -> Any:
        self.versions.append(request.model_version)
        return await echo(server, request, context)


async def _segments(count: int) -> AsyncIterator[SegmentUpdate]:
    for number in range(count):
        yield SegmentUpdate(f"segment-{number}", f"Sentence {number}.", final=True)
        await asyncio.sleep(0)


async def test_all_segments_of_a_talk_go_to_one_version(tokenizer: Tokenizer) -> None:
    chosen = set()
    for talk in range(12):
        server = Recorder()
        async with (
            serving(server) as url,
            TranslationClient(url, "m", tokenizer=tokenizer, versions=HALVES) as client,
            LiveTranslator(
                client, source="en", targets="de", options=LiveOptions(), key=f"talk-{talk}"
            ) as live,
        ):
            assert len([caption async for caption in live.run(_segments(8))]) >= 8
        assert len(server.versions) >= 8
        assert len(set(server.versions)) == 1
        chosen.update(server.versions)
    assert chosen == {"1", "2"}


async def test_a_session_is_apart_from_the_key(tokenizer: Tokenizer) -> None:
    server = Recorder()
    async with (
        serving(server) as url,
        TranslationClient(url, "m", tokenizer=tokenizer, versions=HALVES) as client,
    ):
        for number in range(8):
            text, key = f"Sentence {number}.", f"talk/{number}"
            call = {"source": "en", "targets": "de", "supersede": key}
            await client.translate(text, session="talk", **call)
    assert len(server.versions) == 8
    assert len(set(server.versions)) == 1


async def _lines() -> AsyncIterator[str]:
    for number in range(8):
        yield f"<dnt>Term {number}</dnt>, and the line behind it."


async def test_all_lines_with_terms_go_to_one_version(tokenizer: Tokenizer) -> None:
    """Also what is asked again for a line, whose first answer has lost a term."""
    chosen: set[str] = set()
    for _ in range(200):  # each run draws its version
        server = Recorder()
        async with (
            serving(server) as url,
            TranslationClient(url, "m", tokenizer=tokenizer, versions=HALVES) as client,
        ):
            call: dict[str, Any] = {"source": "en", "targets": ["de"], "max_in_flight": 4}
            items = stream_terms(client, Terms(("line",)), _lines(), **call)
            assert len([item async for item in items]) == 8
        assert len(server.versions) > 8
        assert len(set(server.versions)) == 1
        chosen.update(server.versions)
        if len(chosen) == 2:
            return
    raise AssertionError(f"all runs chose version {chosen}")
