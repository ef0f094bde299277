# SPDX-License-Identifier: Apache-2.0
"""The end of an event while the server does not answer."""

from __future__ import annotations

import asyncio

import pytest

from ct2_triton.errors import InvalidCallError
from ct2_triton.live import LiveTranslator, SegmentUpdate
from ct2_triton.live.hub import SOURCE, Hub
from ct2_triton.live.speakers import Speakers
from python.live.scripted import AT_ONCE, ScriptedClient


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
