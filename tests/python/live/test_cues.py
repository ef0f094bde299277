# SPDX-License-Identifier: Apache-2.0
"""Subtitles: lines and times of cues, and that an event goes on while they are written."""

from __future__ import annotations

import asyncio
import sys
from itertools import pairwise

import aiohttp
import pysubs2
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from ct2_triton.errors import InvalidCallError
from ct2_triton.live import Caption
from ct2_triton.live.archive import KINDS, write_subtitles
from ct2_triton.live.cues import CueLimits, cut_text, make_cues, width
from ct2_triton.live.hub import SOURCE, Entry, Hub
from ct2_triton.live.server import Access, CaptionServer

TEXTS = st.text(st.sampled_from("ab cd,.é水语ไท \u0301"), max_size=300)


def final(segment: str, text: str, start_s: float, end_s: float, number: int = 1) -> Entry:
    caption = Caption(segment, "de", text, "", final=True, revision=1, transcript=text)
    return Entry(number, caption, start_s, end_s)


@settings(max_examples=200)
@given(text=TEXTS, line=st.integers(10, 50), lines=st.integers(1, 3))
def test_no_line_is_too_long_and_no_character_is_lost(text: str, line: int, lines: int) -> None:
    cues = cut_text(text, CueLimits(line, lines))
    assert all(1 <= len(cue) <= lines for cue in cues)
    assert all(width(one) <= line for cue in cues for one in cue)
    assert "".join("".join(one.split()) for cue in cues for one in cue) == "".join(text.split())


def test_lines_are_about_equally_long() -> None:
    text = "Der Fahrkartenschalter im Hauptbahnhof öffnet heute erst um 5:45 Uhr."
    assert cut_text(text, CueLimits()) == (
        ("Der Fahrkartenschalter im Hauptbahnhof", "öffnet heute erst um 5:45 Uhr."),
    )
    assert cut_text("Kurz.", CueLimits()) == (("Kurz.",),)
    assert [len(cue) for cue in cut_text("水" * 60, CueLimits())] == [2, 2]


@settings(max_examples=100)
@given(
    spoken=st.lists(st.tuples(st.integers(0, 200), st.floats(0.5, 8)), max_size=12),
    limits=st.builds(CueLimits, chars_per_s=st.sampled_from([12.0, 17.0])),
)
def test_cues_can_be_read_follow_each_other_and_stay_near_the_speech(
    spoken: list[tuple[int, float]], limits: CueLimits
) -> None:
    finals, now = [], 0.0
    for i, (words, seconds) in enumerate(spoken):
        finals.append(final(f"anna/{i}", "ab " * words, now, now + seconds))
        now += seconds
    cues = make_cues(finals, limits)
    ends = {entry.caption.segment: entry.end_s for entry in finals}
    for one, other in pairwise(cues):
        assert one.end_ms <= other.start_ms
    slow = [c for c in cues if sum(map(width, c.lines)) > limits.chars_per_s * _seconds(c)]
    if sum(3 * words for words, _ in spoken) < limits.chars_per_s * 10:
        assert slow == []
    assert all(_seconds(cue) >= 1 for cue in cues)
    assert len(ends) == len(finals)


def _seconds(cue: object) -> float:
    return (cue.end_ms - cue.start_ms) / 1000  # type: ignore[attr-defined]


def test_cues_of_a_speaker_who_has_returned_come_after_those_of_before() -> None:
    finals = [final("anna/1", "ab " * 60, 0, 1), final("anna~2/1", "Rain.", 1, 2)]
    cues = make_cues(finals, CueLimits())
    assert cues[-1].lines == ("Rain.",)
    assert cues[-1].start_ms == cues[-2].end_ms > 9000


@pytest.mark.parametrize("text", ["\u200b", " \u00ad ", "\u0301", "\ufeff\u2060"])
def test_a_text_that_nobody_can_see_has_no_cue_and_harms_no_other(text: str) -> None:
    finals = [final("anna/1", text, 0, 1), final("anna/2", "Rain.", 1, 2)]
    assert [cue.lines for cue in make_cues(finals, CueLimits())] == [("Rain.",)]


def test_speakers_at_the_same_time_do_not_delay_each_other() -> None:
    text = "Das ist ein langer Satz, der in einer Sekunde gesagt wurde, und der Zeit braucht."
    cues = make_cues([final("anna/1", text, 1, 2), final("ben/1", text, 1, 2)], CueLimits())
    assert [cue.start_ms for cue in cues[:2]] == [1000, 1000]


@pytest.mark.parametrize("kind", KINDS)
def test_other_programs_read_what_is_written(kind: str) -> None:
    text = "Tom & <i>Jerry</i> {\\b1} --> " + "ein langer Satz " * 12
    written = write_subtitles([final("1", text, 3661.25, 3662)], kind)  # type: ignore[arg-type]
    events = list(pysubs2.SSAFile.from_string(written, kind))
    assert events[0].start == 3_661_250
    shown = " ".join(event.plaintext.replace("\n", " ") for event in events)
    assert shown.endswith("ein langer Satz")
    assert max(len(event.plaintext.splitlines()) for event in events) == 2


async def test_many_captions_are_written_outside_the_event_loop_once() -> None:
    """Counted: calls of functions in the loop's own thread, of a GET after a new final."""
    hub = Hub()
    for number in range(19_000):
        text = f"Das ist der Satz mit der Nummer {number}."
        hub.put(Caption(f"a/{number}", SOURCE, text, "", True, 1, text), number)
    runner = CaptionServer(hub, None, {"de": "de"}, Access()).runner(0.1)  # type: ignore[arg-type]
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/subtitles.vtt?to=source"
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    async with aiohttp.ClientSession() as session:

        async def get() -> str:
            async with session.get(url) as response:
                return await response.text()

        await get()
        hub.put(Caption("a/x", SOURCE, "Neu.", "", True, 1, "Neu."), 20_000)
        sys.setprofile(count)
        try:
            texts = await asyncio.gather(*(get() for _ in range(5)))
        finally:
            sys.setprofile(None)
    await runner.cleanup()
    assert all(one.count("Das ist der Satz") == 19_000 and "Neu." in one for one in texts)
    assert calls < 100_000


def test_limits_that_no_text_fits_are_refused() -> None:
    for wrong in ({"line_chars": 9}, {"lines": 0}, {"chars_per_s": float("nan")}):
        with pytest.raises(InvalidCallError, match=next(iter(wrong))):
            CueLimits(**wrong)  # type: ignore[arg-type]
