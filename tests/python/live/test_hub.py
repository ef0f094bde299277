# SPDX-License-Identifier: Apache-2.0
"""The hub: viewers that come late, come back, or read slowly; and subtitles of what they saw."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pysubs2
from hypothesis import given, settings
from hypothesis import strategies as st

from ct2_triton.live import Caption
from ct2_triton.live.archive import write_subtitles
from ct2_triton.live.hub import SOURCE, Hub

IDLE_S = 60.0


def caption(segment: str, text: str, revision: int, *, final: bool = False) -> Caption:
    transcript = text if final else None
    return Caption(segment, "de", text, "", final, revision, transcript)


async def take(hub: Hub, position: str | None, count: int) -> list[dict[str, Any]]:
    """The next messages to a viewer, who then leaves."""
    found = []
    async with aclosing(hub.follow(position, ["de"], IDLE_S)) as messages:
        async for message in messages:
            found.append(json.loads(message))
            if len(found) == count:
                break
    return found


@settings(max_examples=100)
@given(
    changes=st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=20),
    leaves=st.lists(st.integers(1, 4), max_size=6),
)
def test_a_viewer_that_leaves_and_comes_back_gets_every_final_once(
    changes: list[tuple[str, bool]], leaves: list[int]
) -> None:
    async def run() -> None:
        hub, finals, seen, position = Hub(), [], [], None
        stays = iter(leaves)
        for number, (name, is_final) in enumerate(changes, 1):
            segment = f"{name}{len([f for f in finals if f[0] == name])}"
            hub.put(caption(segment, str(number), number, final=is_final), number)
            if is_final:
                finals.append(segment)
            if (count := next(stays, 0)) and hub.since(hub.position(position), ["de"]):
                waiting = len(hub.since(hub.position(position), ["de"]))
                for message in await take(hub, position, min(count, waiting)):
                    seen.append(message)
                    position = message["id"]
        hub.end()
        seen += await take(hub, position, 1000)
        assert seen[-1]["type"] == "end"
        assert sorted(m["segment"] for m in seen[:-1] if m["final"]) == sorted(finals)
        for segment in {m["segment"] for m in seen[:-1]}:
            revisions = [m["revision"] for m in seen[:-1] if m["segment"] == segment]
            assert revisions == sorted(set(revisions))  # nothing doubled, nothing older later

    asyncio.run(run())


async def test_a_slow_viewer_skips_tails_and_no_final() -> None:
    hub = Hub()
    hub.put(caption("1", "a", 1), 0)
    hub.put(caption("2", "b", 1), 0)
    async with aclosing(hub.follow(None, ["de"], IDLE_S)) as messages:
        first = json.loads(await anext(messages))
        for revision in range(2, 50):
            hub.put(caption("2", "b" * revision, revision, final=revision == 49), 1)
            hub.put(caption("1", "a" * revision, revision), 1)
        rest = [json.loads(await anext(messages)) for _ in range(2)]
    assert (first["segment"], first["revision"]) == ("1", 1)
    assert [(m["segment"], m["revision"], m["final"]) for m in rest] == [
        ("2", 49, True), ("1", 49, False),
    ]  # fmt: skip


async def test_a_position_of_another_event_or_none_at_all_starts_anew() -> None:
    hub = Hub()
    hub.put(caption("1", "a", 1, final=True), 0)
    for position in (None, "", "x", "other-1", f"{hub.name}-x", f"{hub.name}-{'9' * 30}"):
        assert [m["committed"] for m in await take(hub, position, 1)] == ["a"]
    assert hub.since(hub.position(f"{hub.name}-1"), ["de"]) == []


async def test_nothing_new_is_said_and_what_is_kept_is_bounded() -> None:
    hub = Hub(max_entries=3)
    async with aclosing(hub.follow(None, ["de"], 0.001)) as messages:
        assert await anext(messages) == ""
    hub.put(caption("open", "still", 1), 0)
    for number in range(5):
        hub.put(caption(str(number), "a", 1, final=True), number)
    assert [e.caption.segment for e in hub.since(0, ["de"])] == ["open", "3", "4"]


def test_subtitles_have_the_times_and_no_markup() -> None:
    hub = Hub()
    hub.put(Caption("1", SOURCE, "said", "", False, 1), 3599.5)
    hub.put(caption("2", "Zweiter", 1, final=True), 4000)
    long = "Tom & <i>Jerry</i> {\\b1} --> " + "ein langer Satz " * 5
    hub.put(caption("1", long.strip(), 1, final=True), 3661.25)
    hub.put(caption("3", " ", 1, final=True), 4001)
    finals = hub.finals("de")
    for kind in ("vtt", "srt"):
        text = write_subtitles(finals, kind)  # type: ignore[arg-type]
        read = pysubs2.SSAFile.from_string(text, kind)
        assert [(event.start, event.end) for event in read] == [
            (3_599_500, 3_631_257), (3_631_257, 3_661_250), (4_000_000, 4_001_000),
        ]  # fmt: skip
        assert max(map(len, text.splitlines())) <= 42 + len("&lt;&gt;&lt;&gt;")
    vtt = write_subtitles(finals, "vtt")
    assert vtt.startswith("WEBVTT")
    assert "Tom &amp; &lt;i&gt;Jerry&lt;/i&gt; (\\b1) --&gt; ein" in vtt.replace("\n", " ")
