# SPDX-License-Identifier: Apache-2.0
"""A client whose answers a test holds in its hand: for moments that a real server gives by luck."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from ct2_triton.client import Hypothesis, Translation, Verdict
from ct2_triton.live import Caption, LiveOptions, LiveTranslator, SegmentUpdate

AT_ONCE = LiveOptions(min_words=1, min_interval_ms=0, source="newest")


class Tokens:
    """A token for each letter, and languages that are what they are called."""

    rules = SimpleNamespace(input_ids=lambda pieces, source, target: [1, *pieces, 2])

    def encode(self, text: str) -> Any:
        return SimpleNamespace(ids=tuple(map(ord, text)))

    def source(self, name: str | None) -> None:
        return None

    def targets(self, names: Any) -> list[Any]:
        names = [names] if isinstance(names, str) else names
        return [SimpleNamespace(code=name) for name in names]

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(map(chr, ids))


class ScriptedClient:
    """Translates into capital letters; a test may hold requests or make them fail.

    Attributes:
        calls: Text, language and options of each request.
        gate: Requests wait for it.
        failures: Raised one by one, each in place of an answer.
        aligns: Whether it says where each letter comes from, when it is asked.
        drafts: Whether it takes drafts; they change no answer.
        takes_text: Whether its model takes text, and so has no ids.
        flags: What is flagged where a verdict is asked for, by text.
    """

    def __init__(
        self,
        failures: Iterable[Exception | None] = (),
        *,
        aligns: bool = False,
        drafts: bool = False,
        takes_text: bool = False,
        flags: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.flags = flags or {}
        self.aligns, self.drafts = aligns, drafts
        self.tokenizer = self.languages = Tokens()
        self.takes_text = takes_text
        self.calls: list[tuple[str, str, dict[str, Any]]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.arrived = asyncio.Event()
        self.failures = iter(failures)

    def gives_alignments(self) -> bool:
        return self.aligns

    def takes_drafts(self) -> bool:
        return self.drafts

    async def translate(
        self,
        text: str,
        *,
        targets: str,
        session: str,
        prefix: Any = (),
        **options: Any,
    ) -> Translation:
        self.calls.append((text, targets, {**options, "prefix": prefix}))
        self.arrived.set()
        await self.gate.wait()
        await asyncio.sleep(0)
        if failure := next(self.failures, None):
            raise failure
        answer = text.upper()
        if prefix:
            start = prefix if self.takes_text else self.tokenizer.decode(prefix)
            answer = start + answer[len(start) :]
        flags = self.flags.get(text, ())
        verdict = Verdict(0.2 if flags else 0.9, flags) if options.get("quality") else None
        is_aligned = "return_alignments" in options
        if self.takes_text:
            letters = (
                tuple((i, i + 1, i, i + 1) for i in range(len(answer))) if is_aligned else None
            )
            hypothesis = Hypothesis(answer, alignment_ranges=letters, verdict=verdict)
        else:
            ids = tuple(map(ord, answer))
            positions = tuple(range(1, len(answer) + 1)) if is_aligned else None
            hypothesis = Hypothesis(answer, ids, alignments=positions, verdict=verdict)
        return Translation(text, None, targets, (hypothesis,))


def live(client: Any, targets: Any = ("de",), options: LiveOptions = AT_ONCE) -> LiveTranslator:
    """Makes a translator on a scripted client."""
    return LiveTranslator(client, targets=list(targets), options=options, key="test")


async def each(updates: Iterable[SegmentUpdate]) -> AsyncIterator[SegmentUpdate]:
    """Gives updates, and the loop a turn after each."""
    for update in updates:
        yield update
        await asyncio.sleep(0)


async def collect(translator: LiveTranslator, updates: Iterable[SegmentUpdate]) -> list[Caption]:
    """Runs updates through."""
    return [caption async for caption in translator.run(each(updates))]


def texts(segment: str, *steps: str) -> list[SegmentUpdate]:
    """Updates of a segment; the last is final."""
    last = len(steps) - 1
    return [SegmentUpdate(segment, text, final=i == last) for i, text in enumerate(steps)]
