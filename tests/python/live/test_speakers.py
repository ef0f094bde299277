# SPDX-License-Identifier: Apache-2.0
"""The end of an event while the server does not answer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

import pytest

from ct2_triton.errors import InvalidCallError
from ct2_triton.live import Caption, LiveInputError, LiveTranslator, SegmentUpdate
from ct2_triton.live.hub import SOURCE, Entry, Hub
from ct2_triton.live.speakers import EventFullError, Speakers
from python.live.scripted import AT_ONCE, ScriptedClient, live


async def test_an_end_that_takes_too_long_closes_every_translation() -> None:
    """Closing lets requests under way end: one that is cancelled can end a server."""
    client, made = ScriptedClient(), []

    def make() -> LiveTranslator:
        made.append(LiveTranslator(client, targets=["de"], options=AT_ONCE))
        return made[-1]

    hub = Hub()
    speakers = Speakers(hub, make, ["de"], most=2, grace_s=30)
    client.gate.clear()
    async with speakers.joined("anna") as anna, speakers.joined("ben") as ben:
        for one in (anna, ben):
            await one.say(SegmentUpdate("1", "A fog.", final=True))
        await client.arrived.wait()
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(speakers.end(), 0.05)
    client.gate.set()
    await speakers.close()
    assert len(hub.finals(SOURCE)) == len(made) == 2
    for translation in made:
        with pytest.raises(InvalidCallError, match="is closed"):
            await translation.push(SegmentUpdate("2", "Rain."))


async def test_finals_without_a_translation_at_the_end_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ct2_triton.live.requests._GRACE_S", 0.01)
    client, hub = ScriptedClient(), Hub()
    speakers = Speakers(hub, lambda *_: live(client, ["de", "fr"]), ["de", "fr"], 2, grace_s=30)
    async with speakers.joined("anna") as anna:
        await anna.say(SegmentUpdate("1", "A fog.", final=True))
        async with aclosing(hub.follow(None, ["de", "fr"], 30)) as messages:
            assert [json.loads(await anext(messages))["committed"] for _ in "12"] == ["A FOG."] * 2
        client.gate.clear()
        await anna.say(SegmentUpdate("2", "Rain.", final=True))
    assert await speakers.close() == 2
    for language in ("de", "fr"):
        first, second = (one.caption for one in hub.finals(language))
        assert (first.committed, first.error) == ("A FOG.", None)
        assert (second.source, second.committed) == ("Rain.", "")
        assert second.error == "the event ended before the server answered"


async def test_nothing_is_taken_once_the_event_ends() -> None:
    """It would be translated by nobody."""
    client, hub = ScriptedClient(), Hub()
    speakers = Speakers(hub, lambda *_: live(client), ["de"], most=2, grace_s=30)
    client.gate.clear()
    async with speakers.joined("anna") as anna:
        await anna.say(SegmentUpdate("1", "A fog.", final=True))
        ending = asyncio.create_task(speakers.end())
        await client.arrived.wait()
        with pytest.raises(LiveInputError, match="segment '2' comes too late: the event ends"):
            await anna.say(SegmentUpdate("2", "Rain.", final=True))
    with pytest.raises(EventFullError, match="speaker 'ben' comes too late: the event ends"):
        async with speakers.joined("ben"):
            pass
    client.gate.set()
    await ending
    assert await speakers.close() == 0
    assert [one.caption.committed for one in hub.finals("de")] == ["A FOG."]


def _final(number: int, segment: str, target: str | None, error: str | None = None) -> Entry:
    caption = Caption(segment, target, f"{segment}.", "", final=True, revision=1, error=error)
    return Entry(number, caption, 0.0, 1.0)


@pytest.mark.parametrize("back_s", [3600.0, 2.0, -1.7e9], ids=["behind", "a bit", "from 1970"])
async def test_a_clock_that_was_set_does_not_set_that_of_the_event(back_s: float) -> None:
    hub = Hub()
    said = Caption("anna/1", SOURCE, "A fog.", "", final=True, revision=1, transcript="A fog.")
    hub.restore("event", [Entry(1, said, 4.0, 5.0)])
    speakers = Speakers(hub, lambda *_: live(ScriptedClient()), ["de"], most=2, grace_s=30)
    speakers.resume(time.time() - 5.0 + back_s, hub.entries())
    async with speakers.joined("anna") as anna:
        await anna.say(SegmentUpdate("2", "Rain.", final=True))
    await speakers.end()
    first, second = hub.finals(SOURCE)
    assert (first.caption.committed, second.caption.committed) == ("A fog.", "Rain.")
    assert first.end_s <= second.start_s < 3600


async def test_the_name_of_a_segment_may_be_as_long_whoever_says_it() -> None:
    """The speaker's name, which goes before it, does not count; nor does a piece's number."""
    hub, options = Hub(), replace(AT_ONCE, max_words=2)
    make = lambda *_: LiveTranslator(  # noqa: E731
        ScriptedClient(), targets=["de"], options=options, key="k" * 80
    )
    speakers = Speakers(hub, make, ["de"], most=2, grace_s=30)
    speakers._identities["a" * 40] = 9_999_999
    async with speakers.joined("a" * 40) as anna:
        await anna.say(SegmentUpdate("s" * 100, "a b c", final=True))
        with pytest.raises(LiveInputError, match="segment has 101 bytes; 1 to 100 are allowed"):
            SegmentUpdate.from_json(f'{{"segment": "{"s" * 101}", "text": "a"}}')
    await speakers.end()
    assert [one.caption.committed for one in hub.finals("de")] == ["A B", "C"]


async def test_after_100_hours_updates_are_taken_at_the_last_time_of_subtitles() -> None:
    """Without a time of their own; a time that is too late is refused, and harms no other."""
    hub = Hub()
    speakers = Speakers(hub, lambda *_: live(ScriptedClient()), ["de"], most=2, grace_s=30)
    speakers._started -= 400_000
    async with speakers.joined("anna") as anna:
        with pytest.raises(LiveInputError, match=r"time is 1800000000.0; .*100 hours"):
            await anna.say(SegmentUpdate("1", "A fog.", time=1.8e9))
        await anna.say(SegmentUpdate("1", "A fog", time=1.0))
        await anna.say(SegmentUpdate("1", "A fog.", final=True, time=2.0))
        await anna.say(SegmentUpdate("2", "Rain.", final=True))
    await speakers.end()
    times = [(one.caption.committed, one.start_s, one.end_s) for one in hub.finals(SOURCE)]
    assert times == [("A fog.", 1.0, 2.0), ("Rain.", 359_999.999, 359_999.999)]


async def test_after_a_crash_only_what_is_missing_is_asked_for() -> None:
    """A segment whose final was an error lacks it, and a failure of one segment is its own."""
    client = ScriptedClient([RuntimeError("made by a test")])

    def make(targets: Sequence[str | None] = ("de", "fr")) -> LiveTranslator:
        return live(client, targets)

    hub = Hub()
    known = [(one, language) for one in "abc" for language in (SOURCE, "de", "fr")]
    known.remove(("a", "de"))
    known.remove(("b", "fr"))
    errors = {("c", "de"): "the server did not answer"}
    finals = [_final(i, *one, errors.get(one)) for i, one in enumerate(known, 1)]
    hub.restore("event", finals)
    speakers = Speakers(hub, make, ["de", "fr"], most=2, grace_s=30)
    speakers.resume(0.0, hub.entries())
    await speakers.end()
    assert sorted(call[:2] for call in client.calls) == [("a.", "de"), ("b.", "fr"), ("c.", "de")]
    new = {(one.caption.segment, one.caption.target) for one in hub.since(len(known), ["de", "fr"])}
    assert new == {("b", "fr"), ("c", "de")}
    assert await speakers.close() == 1  # the failure is said
    [told] = hub.since(len(known) + 2, ["de", "fr"])[2:]
    assert (told.caption.segment, told.caption.target) == ("a", "de")
    assert told.caption.error


async def test_a_second_end_without_answers_also_says_what_is_missing() -> None:
    """Of an event that catches up, what its last process said to be missing is so still."""
    client, hub = ScriptedClient(), Hub()
    client.gate.clear()
    many = [_final(i, f"s{i}", SOURCE) for i in range(1, 21)]  # more than are sent at a time
    hub.restore("event", [*many, _final(21, "s1", "de", "the event ended")])
    speakers = Speakers(hub, lambda *_: live(client), ["de"], most=2, grace_s=30)
    speakers.resume(0.0, hub.entries())
    await client.arrived.wait()
    client.gate.set()
    assert await speakers.close() == 20
