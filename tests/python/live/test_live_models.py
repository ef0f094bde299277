# SPDX-License-Identifier: Apache-2.0
"""Live translations whose model answers without ids, takes no bias, or becomes another."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from ct2_triton.client.results import Hypothesis, Translation
from ct2_triton.errors import RequestRejectedError
from ct2_triton.live.policies import Append
from python.live.scripted import AT_ONCE, ScriptedClient, live, texts


class Loses(ScriptedClient):
    """Gives no ids at every second request, as where terms were put back."""

    async def translate(self, text: str, **options: Any) -> Translation:
        answer = await super().translate(text, **options)
        if len(self.calls) % 2:
            return answer
        lost = Hypothesis("LOST " + answer.text.split(" ")[-1])
        return replace(answer, hypotheses=(lost,))


@pytest.mark.parametrize("mode", ["steady", "append"])
@pytest.mark.parametrize("takes_text", [False, True], ids=["ids", "text"])
async def test_an_answer_without_ids_ends_nothing(mode: Any, takes_text: bool) -> None:
    """As one has whose terms were put back: nothing of it is sent as ids."""
    client = Loses(drafts=True, takes_text=takes_text)
    translator = live(client, options=replace(AT_ONCE, mode=mode))
    words = ["we", "met", "anna", "today", "in", "the", "old", "town", "near", "here"]
    steps = [" ".join(words[:count]) for count in range(1, len(words) + 1)]

    async def one_by_one():  # noqa: ANN202
        for update in texts("1", *steps):
            yield update
            for _ in range(30):
                await asyncio.sleep(0)

    *_, last = [caption async for caption in translator.run(one_by_one())]
    assert last.final
    assert last.error is None
    for _, _, options in client.calls:
        for name in ("prefix", "draft"):
            kind = str if takes_text else int
            given = options.get(name) or ()
            assert isinstance(given, str) if takes_text and given else True
            assert all(isinstance(token, kind) for token in given)


@pytest.mark.parametrize("takes_text", [False, True], ids=["ids", "text"])
async def test_a_model_that_takes_no_bias_goes_on_without(takes_text: bool) -> None:
    """As one that is decoded by calls of CTranslate2."""

    class Refuses(ScriptedClient):
        async def translate(self, text: str, **options: Any) -> Translation:
            if "draft_bias" in options:
                self.refused += 1
                raise RequestRejectedError("draft_bias needs a decode loop")
            return await super().translate(text, **options)

        refused = 0

    client = Refuses(drafts=True, takes_text=takes_text)
    translator = live(client, options=AT_ONCE)

    async def one_by_one():  # noqa: ANN202
        for update in texts("1", "a", "a b", "a b c", "a b c d", "a b c d e"):
            yield update
            for _ in range(30):
                await asyncio.sleep(0)

    captions = [caption async for caption in translator.run(one_by_one())]
    assert client.refused == 1
    assert translator.counts.failed_interims == 0
    assert [text for text, *_ in client.calls] == ["a", "a b", "a b c", "a b c d", "a b c d e"]
    assert captions[-1].committed == "A B C D E"


async def test_a_model_of_another_kind_takes_the_place_of_one() -> None:
    """Within a segment nothing more is committed; the final, and all later ones, are there."""
    client = ScriptedClient(drafts=True)
    at_once = partial(Append, agreeing_interims=1, guard=None, hold=0)
    translator = live(client, options=replace(AT_ONCE, policy=at_once))

    async def one_by_one():  # noqa: ANN202
        for update in [*texts("1", "a", "a b", "a b c"), *texts("2", "a", "a b", "a b c")]:
            yield update
            for _ in range(30):
                await asyncio.sleep(0)
            client.takes_text = True

    captions = [caption async for caption in translator.run(one_by_one())]
    assert [c.committed for c in captions if c.segment == "1"] == ["A", "A B C"]
    assert [c.committed for c in captions if c.segment == "2"] == ["A", "A B", "A B C"]
    assert all(caption.error is None for caption in captions)
