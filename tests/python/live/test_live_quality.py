# SPDX-License-Identifier: Apache-2.0
"""What verdicts change in live captions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from ct2_triton.client import Translation
from ct2_triton.live import SegmentUpdate
from ct2_triton.live.policies import Append
from python.live.scripted import AT_ONCE, ScriptedClient, collect, live, texts

JUDGED = replace(AT_ONCE, quality=True)
LOOP = dict.fromkeys(["one two two two", "one two two two two"], ("repeats",))


async def paced(client: ScriptedClient, *steps: str) -> AsyncIterator[SegmentUpdate]:
    """A segment, whose interims are each taken before it grows; the last step is the final."""
    *interims, final = steps
    for step in interims:
        client.arrived.clear()
        yield SegmentUpdate("a", step)
        await client.arrived.wait()
        for _ in range(9):  # until the answer is taken
            await asyncio.sleep(0)
    yield SegmentUpdate("a", final, final=True)


@pytest.mark.parametrize("flags", [LOOP, {}])
async def test_a_flagged_interim_is_shown_and_not_committed(
    flags: dict[str, tuple[str, ...]],
) -> None:
    client = ScriptedClient(flags=flags)
    translator = live(client, ["de"], replace(JUDGED, mask_words=0))
    looping = "one two two two"

    said = paced(client, "one two", "one two three", looping, f"{looping} two", "one two three")
    captions = [caption async for caption in translator.run(said)]
    assert (looping.upper() in {one.committed for one in captions}) is not bool(flags)
    assert any(looping.upper() in one.shown for one in captions[:-1])
    assert captions[-1].committed == "ONE TWO THREE"
    assert translator.counts.flagged_interims == (2 if flags else 0)


@pytest.mark.parametrize("flag", ["unsure", "length"])
async def test_half_a_sentence_may_be_short_and_unsure(flag: str) -> None:
    client = ScriptedClient(flags={"one two": (flag,)})
    translator = live(client, ["de"], JUDGED)
    await collect(translator, texts("a", "one", "one two", "one two three"))
    assert translator.counts.flagged_interims == 0


async def test_a_completion_that_is_flagged_marks_the_final() -> None:
    class Forced(ScriptedClient):
        """Only what is forced to begin with what was seen loops."""

        async def translate(self, text: str, *, prefix: Any = (), **more: Any) -> Translation:
            self.flags = {text: ("repeats",)} if prefix else {}
            return await super().translate(text, prefix=prefix, **more)

    options = replace(
        JUDGED,
        policy=lambda decode: Append(decode, agreeing_interims=1, hold=0, guard=None),
    )
    client = Forced(drafts=True)
    translator = live(client, ["de"], options)
    said = paced(client, "one two", "one two three", "six seven but four")
    captions = [caption async for caption in translator.run(said)]
    assert captions[-1].flags == ("repeats",)


async def test_a_flagged_final_is_marked_and_shown() -> None:
    client = ScriptedClient(flags=LOOP)
    [caption] = await collect(live(client, options=JUDGED), texts("a", "one two two two"))
    assert caption.committed == caption.transcript == "ONE TWO TWO TWO"
    assert caption.flags == ("repeats",)
    assert '"flags": ["repeats"]' in caption.to_json()


async def test_without_quality_nothing_is_judged() -> None:
    client = ScriptedClient(flags=LOOP)
    [caption] = await collect(live(client), texts("a", "one two two two"))
    assert caption.flags is None
    assert "quality" not in client.calls[0][2]
    assert "flags" not in caption.to_json()


def finals(*said: str) -> list[SegmentUpdate]:
    return [SegmentUpdate(str(i), text, final=True) for i, text in enumerate(said)]


async def test_a_sentence_that_silence_repeats_is_shown_twice() -> None:
    thanks = ["Thank you for watching.", "thank you for watching", "Thank you for watching!"]
    client = ScriptedClient()
    said = finals(*thanks, "We go on.", "Thank you for watching.")
    captions = {one.segment: one for one in await collect(live(client, options=JUDGED), said)}
    assert [captions[str(i)].repeated for i in range(5)] == [None, None, True, None, None]
    assert (captions["2"].committed, captions["2"].transcript) == ("", "")
    assert captions["4"].committed == "THANK YOU FOR WATCHING."
    assert len(client.calls) == 4


async def test_what_begins_to_repeat_has_no_interim() -> None:
    client = ScriptedClient()
    thanks = "Thank you for watching."
    again = texts("again", "Thank you", "Thank you for", thanks)
    await collect(live(client, options=JUDGED), [*finals(thanks, thanks), *again])
    assert [text for text, *_ in client.calls] == [thanks, thanks]


async def test_a_word_may_be_said_again_and_again() -> None:
    captions = await collect(live(ScriptedClient(), options=JUDGED), finals(*["Goal!"] * 5))
    assert [one.committed for one in captions] == ["GOAL!"] * 5
