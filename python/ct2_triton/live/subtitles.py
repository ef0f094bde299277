# SPDX-License-Identifier: Apache-2.0
"""Subtitle files of an event: WebVTT (.vtt) and SubRip (.srt)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from ct2_triton.live.cues import CueLimits, make_cues
from ct2_triton.live.hub import finals_of
from ct2_triton.subtitles import write_cues

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ct2_triton.live.hub import Entry, Hub

Format = Literal["vtt", "srt"]
KINDS: tuple[Format, ...] = ("vtt", "srt")


def write_subtitles(finals: Iterable[Entry], kind: Format, limits: CueLimits | None = None) -> str:
    """Write the finals of a language as subtitles."""
    return write_cues(make_cues(finals, limits or CueLimits()), f".{kind}")


class SubtitleFiles:
    """The subtitles of an event that goes on, written in a thread, once for each new final."""

    def __init__(self, hub: Hub, limits: CueLimits) -> None:
        """Start with none."""
        self._hub = hub
        self._limits = limits
        self._texts: dict[tuple[str, Format], tuple[int, asyncio.Future[str]]] = {}

    async def text(self, language: str, kind: Format) -> str:
        """Give the subtitles of a language so far."""
        newest = self._hub.newest_final(language)
        known = self._texts.get((language, kind))
        if known is None or known[0] != newest or known[1].cancelled():
            writing = asyncio.to_thread(self._write, self._hub.entries(), language, kind)
            known = newest, asyncio.ensure_future(writing)
            self._texts[language, kind] = known
        return await asyncio.shield(known[1])

    def _write(self, entries: Sequence[Entry], language: str, kind: Format) -> str:
        return write_subtitles(finals_of(entries, language), kind, self._limits)
