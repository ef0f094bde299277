# SPDX-License-Identifier: Apache-2.0
"""Order, bounds and superseding of a stream, with a translator that answers when the test says."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from ct2_triton.client.results import Hypothesis, Translation
from ct2_triton.client.stream import Sentence, StreamItem, StreamOptions, TranslationStream
from ct2_triton.errors import InvalidCallError, RequestRejectedError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from ct2_triton.client.stream import Send

TARGETS = ("deu", "fra")


class Desk:
    """Translators that wait until they are told to answer; it notes what happens to them."""

    def __init__(self, targets: tuple[str, ...] = TARGETS) -> None:
        self.targets = targets
        self.gates: dict[tuple[str, str], asyncio.Event] = {}
        self.started: list[tuple[str, str]] = []
        self.cancelled: list[tuple[str, str]] = []
        self.read = 0

    def gate(self, text: str, target: str) -> asyncio.Event:
        return self.gates.setdefault((text, target), asyncio.Event())

    def answer(self, text: str, *targets: str) -> None:
        for target in targets or self.targets:
            self.gate(text, target).set()

    def start(self, sentence: Sentence) -> dict[str | None, Send]:
        return {target: partial(self._translate, sentence.text, target) for target in self.targets}

    async def _translate(self, text: str, target: str) -> Translation:
        self.started.append((text, target))
        try:
            await self.gate(text, target).wait()
        except asyncio.CancelledError:
            self.cancelled.append((text, target))
            raise
        if text.startswith("bad"):
            raise RequestRejectedError(f"{text} is refused")
        return Translation(text, "eng", target, (Hypothesis(f"{target}:{text}"),))

    async def sentences(
        self, texts: Iterable[str | Sentence]
    ) -> AsyncGenerator[str | Sentence, None]:
        for text in texts:
            self.read += 1
            yield text

    def stream(
        self, texts: Iterable[str | Sentence], **options: Any
    ) -> AsyncGenerator[StreamItem, None]:
        return TranslationStream(self.start, StreamOptions(**options)).run(self.sentences(texts))


async def settle() -> None:
    """Lets every task go on until all wait."""
    for _ in range(50):
        await asyncio.sleep(0)


def brief(items: Iterable[StreamItem]) -> list[tuple[int, str, str | None]]:
    return [(item.position, item.sentence.text, item.target) for item in items]


async def collect(items: AsyncGenerator[StreamItem, None]) -> list[StreamItem]:
    return [item async for item in items]


async def test_order_is_kept_in_each_language_and_languages_run_ahead() -> None:
    desk = Desk()
    async with aclosing(desk.stream(["a", "b"])) as items:
        first = asyncio.ensure_future(anext(items))
        desk.answer("b", "deu", "fra")
        await settle()
        assert not first.done()
        desk.answer("a", "fra")
        assert brief([await first, await anext(items)]) == [(0, "a", "fra"), (1, "b", "fra")]
        desk.answer("a", "deu")
        assert brief([item async for item in items]) == [(0, "a", "deu"), (1, "b", "deu")]


async def test_as_completed_waits_for_nobody() -> None:
    desk = Desk(("deu",))
    async with aclosing(desk.stream(["a", "b"], order="as-completed")) as items:
        desk.answer("b")
        assert brief([await anext(items)]) == [(1, "b", "deu")]
        desk.answer("a")
        assert brief([await anext(items)]) == [(0, "a", "deu")]


async def test_the_input_is_read_no_further_than_the_bound_and_one() -> None:
    desk = Desk()
    texts = [str(i) for i in range(20)]
    async with aclosing(desk.stream(texts, max_in_flight=3)) as items:
        first = asyncio.ensure_future(anext(items))
        await settle()
        assert (desk.read, len(desk.started)) == (4, 6)
        desk.answer("0")
        await first
        await settle()
        assert (desk.read, len(desk.started)) == (4, 6)  # one language is not yet taken
        await anext(items)
        await settle()
        assert (desk.read, len(desk.started)) == (5, 8)
        for text in texts:
            desk.answer(text)
        assert len([item async for item in items]) == 38


async def test_a_reader_that_does_not_take_stops_the_input() -> None:
    desk = Desk(("deu",))
    for i in range(20):
        desk.answer(str(i))
    async with aclosing(desk.stream([str(i) for i in range(20)], max_in_flight=3)) as items:
        await anext(items)
        await settle()
        assert desk.read == 5


async def test_a_newer_version_cancels_the_older_one() -> None:
    desk = Desk(("deu",))
    versions = [Sentence("one", id=7), Sentence("one two", id=7), Sentence("next", id=8)]
    async with aclosing(desk.stream(versions)) as items:
        first = asyncio.ensure_future(anext(items))
        await settle()
        desk.answer("one")
        desk.answer("one two")
        desk.answer("next")
        rest = [await first] + [item async for item in items]
    assert brief(rest) == [(1, "one two", "deu"), (2, "next", "deu")]


async def test_superseding_reaches_a_call_that_is_under_way() -> None:
    desk = Desk(("deu",))
    newer = asyncio.Event()

    async def captions() -> AsyncGenerator[Sentence, None]:
        yield Sentence("one", id=7)
        await newer.wait()
        yield Sentence("one two", id=7)

    stream = TranslationStream(desk.start, StreamOptions(max_in_flight=1))
    async with aclosing(stream.run(captions())) as items:
        first = asyncio.ensure_future(anext(items))
        await settle()
        assert desk.started == [("one", "deu")]
        newer.set()
        await settle()
        assert desk.cancelled == [("one", "deu")]
        assert desk.started == [("one", "deu"), ("one two", "deu")]
        desk.answer("one two")
        assert brief([await first]) == [(1, "one two", "deu")]


async def test_an_answered_version_that_waits_for_its_turn_is_dropped_too() -> None:
    desk = Desk(("deu",))
    newer = asyncio.Event()

    async def captions() -> AsyncGenerator[Sentence, None]:
        yield Sentence("slow")
        yield Sentence("one", id=7)
        await newer.wait()
        yield Sentence("one two", id=7)

    async with aclosing(TranslationStream(desk.start, StreamOptions()).run(captions())) as items:
        first = asyncio.ensure_future(anext(items))
        desk.answer("one")
        await settle()
        newer.set()
        await settle()
        desk.answer("slow")
        desk.answer("one two")
        got = [await first] + [item async for item in items]
    assert brief(got) == [(0, "slow", "deu"), (2, "one two", "deu")]


async def test_keep_yields_every_version() -> None:
    desk = Desk(("deu",))
    desk.answer("one")
    desk.answer("one two")
    versions = [Sentence("one", id=7), Sentence("one two", id=7)]
    got = await collect(desk.stream(versions, superseded="keep"))
    assert brief(got) == [(0, "one", "deu"), (1, "one two", "deu")]
    assert desk.cancelled == []


async def test_leaving_early_cancels_everything_and_closes_the_input() -> None:
    desk = Desk()
    closed = asyncio.Event()

    async def endless() -> AsyncGenerator[str, None]:
        try:
            for i in range(10**6):
                yield str(i)
        finally:
            closed.set()

    stream = TranslationStream(desk.start, StreamOptions(max_in_flight=3))
    async with aclosing(stream.run(endless())) as items:
        desk.answer("0")
        await anext(items)
    assert closed.is_set()
    assert sorted(desk.cancelled) == sorted((t, g) for t in "12" for g in TARGETS)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_failure_ends_the_stream_and_the_rest_is_cancelled() -> None:
    desk = Desk(("deu",))
    desk.answer("bad")
    with pytest.raises(RequestRejectedError, match="bad is refused"):
        await collect(desk.stream(["bad", "a", "b"]))
    assert desk.cancelled == [("a", "deu"), ("b", "deu")]


async def test_a_failure_can_be_yielded_instead() -> None:
    desk = Desk(("deu",))
    for text in ("a", "bad", "b"):
        desk.answer(text)
    got = await collect(desk.stream(["a", "bad", "b"], on_error="yield"))
    assert [type(item.outcome) for item in got] == [Translation, RequestRejectedError, Translation]
    assert got[0].translation.text == "deu:a"
    with pytest.raises(RequestRejectedError):
        _ = got[1].translation


async def test_an_input_that_fails_gives_what_was_read_and_then_its_error() -> None:
    desk = Desk(("deu",))
    desk.answer("a")

    async def broken() -> AsyncGenerator[str, None]:
        yield "a"
        raise OSError("the microphone is gone")

    items = TranslationStream(desk.start, StreamOptions()).run(broken())
    assert brief([await anext(items)]) == [(0, "a", "deu")]
    with pytest.raises(OSError, match="microphone"):
        await anext(items)


async def test_no_input_gives_no_output() -> None:
    assert await collect(Desk().stream([])) == []


@pytest.mark.parametrize(
    "options",
    [{"max_in_flight": 0}, {"order": "x"}, {"superseded": "x"}, {"on_error": "x"}],
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidCallError, match=next(iter(options))):
        StreamOptions(**options)
