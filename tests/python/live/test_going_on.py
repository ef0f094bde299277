# SPDX-License-Identifier: Apache-2.0
"""A segment that its speaker has not ended goes on after a crash and after a long absence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ct2_triton.live import LiveInputError, LiveOptions, SegmentUpdate
from ct2_triton.live.archive import Archive
from ct2_triton.live.cues import CueLimits
from ct2_triton.live.hub import SOURCE, Hub
from ct2_triton.live.speakers import Speakers
from python.live.scripted import AT_ONCE, ScriptedClient, live

CUT = replace(AT_ONCE, cut_sentences=False, max_words=4, max_chars=60)
WORDS = [f"w{number}" for number in range(60)]


def talk(end: int, words: list[str] = WORDS, segment: str = "talk") -> SegmentUpdate:
    return SegmentUpdate(segment, " ".join(words[:end]))


@asynccontextmanager
async def event(
    folder: Path, *, options: LiveOptions = CUT, max_entries: int = 20_000
) -> AsyncIterator[tuple[Hub, Speakers, ScriptedClient]]:
    """An event with a journal, which crashes at the end of the block."""
    hub, archive, client = Hub(max_entries), Archive(folder, CueLimits()), ScriptedClient()
    past = archive.begin(hub, is_new=False)
    speakers = Speakers(hub, lambda *_: live(client, options=options), ["de"], 4, grace_s=30)
    if past is not None:
        speakers.resume(past.began, past.entries)
    yield hub, speakers, client
    hub.on_final = lambda _: None
    archive.close()
    await speakers.close()


def said(hub: Hub) -> list[tuple[str, str]]:
    """The final source texts that are not empty, with their segments."""
    finals = sorted(hub.entries(), key=lambda entry: entry.number)
    captions = [one.caption for one in finals if one.caption.target == SOURCE]
    return [(one.segment, one.committed) for one in captions if one.final and one.committed]


def words_of(hub: Hub) -> list[str]:
    return " ".join(text for _, text in said(hub)).split()


async def test_a_segment_goes_on_after_two_crashes_and_is_not_too_long(tmp_path: Path) -> None:
    async with event(tmp_path) as (_, speakers, _), speakers.joined("anna") as anna:
        for end in range(1, 22, 2):
            await anna.say(talk(end))
    async with event(tmp_path) as (_, speakers, _), speakers.joined("anna") as anna:
        for end in range(23, 42, 2):
            await anna.say(talk(end))
    async with event(tmp_path) as (hub, speakers, _):
        async with speakers.joined("anna") as anna:
            for end in range(43, 60, 2):
                await anna.say(talk(end))
            await anna.say(replace(talk(60), final=True))
            with pytest.raises(LiveInputError, match="segment 'anna~3/talk' is final already"):
                await anna.say(talk(60))
        await speakers.end()
        assert words_of(hub) == WORDS
        names = [segment for segment, _ in said(hub)]
        numbers = [f"~{number}" if number > 1 else "" for number in range(1, 16)]
        assert [name.partition("/")[2] for name in names] == [f"talk{one}" for one in numbers]
        assert list(dict.fromkeys(name.partition("/")[0] for name in names)) == [
            "anna", "anna~2", "anna~3",
        ]  # fmt: skip
        german = {one.caption.segment: one.caption.committed for one in hub.finals("de")}
        assert [german[segment] for segment in names] == [text.upper() for _, text in said(hub)]


@settings(max_examples=50, deadline=None)
@given(
    ends=st.lists(st.tuples(st.integers(1, 60), st.booleans()), max_size=12),
    max_words=st.integers(2, 7),
)
def test_no_word_is_lost_or_doubled_wherever_it_crashes(
    ends: list[tuple[int, bool]], max_words: int
) -> None:
    options = replace(CUT, max_words=max_words, max_chars=1000)

    async def run(folder: Path) -> None:
        rest = sorted(ends)
        while rest:
            crashes = False
            async with (
                event(folder, options=options) as (_, speakers, _),
                speakers.joined("anna") as anna,
            ):
                while rest and not crashes:
                    end, crashes = rest.pop(0)
                    await anna.say(talk(end))
        async with event(folder, options=options) as (hub, speakers, _):
            async with speakers.joined("anna") as anna:
                await anna.say(replace(talk(60), final=True))
            assert words_of(hub) == WORDS

    with TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


@pytest.mark.parametrize("crashes", [True, False], ids=["a crash", "the grace"])
@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("w0 w1 w2 w3 w4 w5 w6 w7 w8 w9", "w8 w9"),
        ("w0 w1 so w2 w3 w4 w5 w6 w7 w8 w9", "w8 w9"),  # a word more before the end
        ("w1 w2 w3 w4 w5 w6 w7 w8 w9", "w8 w9"),
        ("w0 w1 w2 x x x x x w8 w9", "w8 w9"),  # the end is revised: by the number of words
        ("w0 w1 w2 w3 w4", ""),
        ("x x x x x x x x w8 w9", "x x x x x x x x w8 w9"),  # another text
        ("w0", "w0"),  # begins anew
        ("w0 w1", "w0 w1"),
    ],
)
async def test_a_revised_text_goes_on_and_another_one_of_the_name_is_new(
    text: str, rest: str, *, crashes: bool, tmp_path: Path
) -> None:
    async with event(tmp_path) as (hub, speakers, _):
        async with speakers.joined("anna") as anna:
            await anna.say(SegmentUpdate("talk", "w0 w1 w2 w3 w4 w5 w6 w7"))
            if crashes:
                await anna.say(SegmentUpdate("talk", "w0 w1 w2 w3 w4 w5 w6 w7 . . . ."))
                await anna.say(SegmentUpdate("talk", "w0 w1 w2 w3 w4 w5 w6 w7 . . . ."))
        if not crashes:
            speakers._dismiss("anna")  # as the timer does
            async with speakers.joined("anna") as anna:
                await anna.say(SegmentUpdate("talk", text, final=True))
        before = said(hub)
    if crashes:
        async with event(tmp_path) as (hub, speakers, _), speakers.joined("anna") as anna:
            await anna.say(SegmentUpdate("talk", text, final=True))
            before = said(hub)
    assert before[:2] == [("anna/talk", "w0 w1 w2 w3"), ("anna/talk~2", "w4 w5 w6 w7")]
    assert " ".join(said_text for _, said_text in before[2:]) == rest


async def test_a_segment_that_was_ended_does_not_go_on(tmp_path: Path) -> None:
    """Of a recognizer that counts from 1 again, each segment is new, however alike."""
    async with event(tmp_path) as (_, speakers, _), speakers.joined("anna") as anna:
        await anna.say(SegmentUpdate("1", "It rains.", final=True))
        await anna.say(SegmentUpdate("2", "a b c d e f g h i j", final=True))
    async with event(tmp_path) as (hub, speakers, _), speakers.joined("anna") as anna:
        await anna.say(SegmentUpdate("1", "It rains.", final=True))
        await anna.say(SegmentUpdate("2", "a b c d e f g h i j k", final=True))
        assert said(hub)[4:] == [
            ("anna~2/1", "It rains."),
            ("anna~2/2", "a b c d"), ("anna~2/2~2", "e f g h"), ("anna~2/2~3", "i j k"),
        ]  # fmt: skip


async def test_a_new_text_of_an_old_name_goes_on_by_itself(tmp_path: Path) -> None:
    new = [word.replace("w", "n") for word in WORDS]
    async with event(tmp_path) as (_, speakers, _), speakers.joined("anna") as anna:
        for end in (12, 13):
            await anna.say(talk(end))
    async with event(tmp_path) as (_, speakers, _), speakers.joined("anna") as anna:
        for end in range(1, 22):
            await anna.say(talk(end, new))
    async with event(tmp_path) as (hub, speakers, _), speakers.joined("anna") as anna:
        await anna.say(replace(talk(30, new), final=True))
        assert words_of(hub) == [*WORDS[:8], *new[:30]]


async def test_who_returns_before_the_text_is_ended_waits_for_it(tmp_path: Path) -> None:
    """Its last final waits for room, because the server does not answer."""
    options = replace(CUT, max_waiting_finals=1)
    async with event(tmp_path, options=options) as (hub, speakers, client):
        client.gate.clear()
        async with speakers.joined("anna") as anna:
            await anna.say(talk(6))
            await anna.say(talk(6))
        speakers._dismiss("anna")  # as the timer does
        async with speakers.joined("anna") as anna:
            saying = asyncio.create_task(anna.say(replace(talk(9), final=True)))
            await client.arrived.wait()
            client.gate.set()
            await saying
        await speakers.end()
        assert said(hub) == [
            ("anna/talk", "w0 w1 w2 w3"), ("anna/talk~2", "w4 w5"), ("anna~2/talk~3", "w6 w7 w8"),
        ]  # fmt: skip


async def test_a_segment_goes_on_when_its_first_finals_have_left_the_memory(tmp_path: Path) -> None:
    async with event(tmp_path) as (_, speakers, _), speakers.joined("anna") as anna:
        for end in range(1, 42, 2):
            await anna.say(talk(end))
    async with (
        event(tmp_path, max_entries=5) as (hub, speakers, _),
        speakers.joined("anna") as anna,
    ):
        await anna.say(replace(talk(46), final=True))
        assert words_of(hub)[-6:] == WORDS[40:46]
        assert WORDS[0] not in words_of(hub)
