# SPDX-License-Identifier: Apache-2.0
"""The end of an event while the server does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from ct2_triton.errors import InvalidCallError
from ct2_triton.live import Caption, LiveTranslator, SegmentUpdate
from ct2_triton.live.hub import SOURCE, Entry, Hub
from ct2_triton.live.speakers import Speakers
from python.live.scripted import AT_ONCE, ScriptedClient, live


async def test_an_end_that_takes_too_long_closes_every_translation() -> None:
    """Closing lets requests under way end: one that is cancelled can end a server."""
    client, made = ScriptedClient(), []

    def make() -> LiveTranslator:
        made.append(LiveTranslator(client, targets=["de"], options=AT_ONCE))
        return made[-1]

    hub = Hub()
    speakers = Speakers(hub, make, most=2, grace_s=30)
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


def _final(number: int, segment: str, target: str | None, error: str | None = None) -> Entry:
    caption = Caption(segment, target, f"{segment}.", "", final=True, revision=1, error=error)
    return Entry(number, caption, 0.0, 1.0)


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
    speakers = Speakers(hub, make, most=2, grace_s=30)
    speakers.resume(began=0.0)
    await speakers.end()
    assert sorted(call[:2] for call in client.calls) == [("a.", "de"), ("b.", "fr"), ("c.", "de")]
    new = {(one.caption.segment, one.caption.target) for one in hub.since(len(known), ["de", "fr"])}
    assert new == {("b", "fr"), ("c", "de")}
    assert hub.is_translated("c", "de")
