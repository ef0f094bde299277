# SPDX-License-Identifier: Apache-2.0
"""Speakers with clocks of their own, replayed against a live server; what is shown, and when."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ct2_triton.live import LiveTranslator
from ct2_triton.live.policies import Agreement, Append, Draft, Interim, Shown
from ct2_triton.words import join_words, split_words

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from ct2_triton.client import TranslationClient
    from ct2_triton.live import Caption, LiveOptions, SegmentUpdate
    from ct2_triton.live.policies import Decode, Policy
    from ct2_triton.live.track import LiveCounts

    Speech = Sequence[SegmentUpdate]

_NEVER_CUT = 100_000


class Retranslation:
    """Show every interim translation and commit nothing: the baseline of the modes."""

    has_interims = True
    attends = False

    def __init__(self, *, mask: int = 0, bias: float = 0.0) -> None:
        """Start a segment.

        Args:
            mask: Words at the end of an interim translation that are not shown (mask-k).
            bias: Above 0, each is biased towards the previous one (`draft_bias`).
        """
        self._mask = mask
        self._bias = bias
        self._last = Interim("")

    def draft(self) -> Draft:
        """Return no draft, or the previous translation if there is a bias towards it."""
        return Draft((), self._last.tokens, self._bias) if self._bias > 0 else Draft()

    def take(self, interim: Interim) -> Shown:
        """Show the interim translation without its masked words."""
        self._last = interim
        words = split_words(interim.text)
        return Shown("", join_words(words[: max(0, len(words) - self._mask)]))

    def held(self, interim: Interim) -> Shown:
        """Show the interim translation in any case: no word is committed."""
        return self.take(interim)

    def completion(self, final: Interim) -> None:
        """Let the final replace everything shown so far."""


# Ways to make captions, beside the three modes, that are measured for comparison.
POLICIES: dict[str, Callable[[Decode], Policy]] = {
    "retranslate": lambda _: Retranslation(),
    "mask-4": lambda _: Retranslation(mask=4),
    "bias-0.4": lambda _: Retranslation(bias=0.4),
    "bias-0.4-mask-4": lambda _: Retranslation(bias=0.4, mask=4),
    "agree-2-hold-2": lambda _: Agreement(hold=2),
    "agree-2-bias-0.4": lambda _: Agreement(bias=0.4),
    "agree-3": lambda _: Agreement(agreeing_interims=3),
    "agree-2": lambda _: Agreement(),
    "append-free-end": lambda decode: Append(decode, bias=0.0),
    "append-held": lambda decode: Append(decode, guard=None),
    "append-guard-3": lambda decode: Append(decode, guard=3),
    "append-2-forced": lambda decode: Append(
        decode, agreeing_interims=2, hold=2, guard=None, forces=True
    ),
    "append-3-forced": lambda decode: Append(decode, guard=None, forces=True),
    "agree-2-tail-4": lambda _: Agreement(tail_mask=4),
    "agree-2-tail-6": lambda _: Agreement(tail_mask=6),
    "agree-2-bias-0.2": lambda _: Agreement(bias=0.2),
}


@dataclass(frozen=True)
class Seen:
    """A caption and the time at which it was shown, in seconds since the event began."""

    caption: Caption
    at_s: float


@dataclass
class Replay:
    """What one way to make captions did with an event.

    Attributes:
        name: The mode or policy.
        seen: Captions, as they came.
        updates: The updates of each segment.
        counts: Counters of each speaker's translator.
    """

    name: str
    seen: list[Seen] = field(default_factory=list)
    updates: dict[str, list[SegmentUpdate]] = field(default_factory=dict)
    counts: list[LiveCounts] = field(default_factory=list)


async def replay(
    client: TranslationClient,
    name: str,
    speeches: Sequence[Speech],
    languages: Mapping[str, str | Sequence[str]],
    options: LiveOptions,
) -> Replay:
    """Replay an event in real time.

    Args:
        client: Connected to the server.
        name: A mode, or one of `POLICIES`.
        speeches: Updates of each speaker; no segment is named twice.
        languages: `source` and `targets`.
        options: How often to translate.

    Returns:
        What was shown.
    """
    result = Replay(name)
    for update in (update for speech in speeches for update in speech):
        result.updates.setdefault(update.segment, []).append(update)
    # Segments are not cut, so the figures are of those that the recognizer ended.
    chosen = replace(options, cut_sentences=False, max_words=_NEVER_CUT)
    policy = POLICIES.get(name)
    chosen = replace(chosen, policy=policy) if policy else replace(chosen, mode=name)  # type: ignore[arg-type]
    start = time.monotonic() + 0.1

    async def speaker(speech: Speech) -> None:
        live = LiveTranslator(client, options=chosen, **languages)  # type: ignore[arg-type]
        result.counts.append(live.counts)
        async with aclosing(live.run(_spoken(speech, start))) as captions:
            async for caption in captions:
                result.seen.append(Seen(caption, time.monotonic() - start))

    await asyncio.gather(*map(speaker, speeches))
    return result


async def _spoken(speech: Speech, start: float) -> AsyncIterator[SegmentUpdate]:
    """Yield each update at its time; delays of a late one are also measured from that time."""
    for update in speech:
        assert update.time is not None
        await asyncio.sleep(max(0.0, start + update.time - time.monotonic()))
        yield update
