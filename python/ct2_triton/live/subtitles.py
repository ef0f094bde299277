# SPDX-License-Identifier: Apache-2.0
"""Subtitle files of an event: WebVTT (.vtt) and SubRip (.srt)."""

from __future__ import annotations

import asyncio
import html
from typing import TYPE_CHECKING, Literal

from ct2_triton.live.cues import CueLimits, make_cues
from ct2_triton.live.hub import finals_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ct2_triton.live.cues import Cue
    from ct2_triton.live.hub import Entry, Hub

Format = Literal["vtt", "srt"]
KINDS: tuple[Format, ...] = ("vtt", "srt")
_NO_MARKUP = {ord("{"): "(", ord("}"): ")"}  # players read {...} in SubRip as markup


def write_subtitles(finals: Iterable[Entry], kind: Format, limits: CueLimits | None = None) -> str:
    """Write the finals of a language as subtitles.

    Args:
        finals: In the order of their times.
        kind: The format.
        limits: What a cue may have.

    Returns:
        The file's text.
    """
    cues = make_cues(finals, limits or CueLimits())
    blocks = [_block(number, cue, kind) for number, cue in enumerate(cues, 1)]
    return "\n".join(["WEBVTT\n", *blocks] if kind == "vtt" else blocks)


class SubtitleFiles:
    """The subtitles of an event that goes on, written in a thread, once for each new final."""

    def __init__(self, hub: Hub, limits: CueLimits) -> None:
        """Start with none.

        Args:
            hub: The captions.
            limits: What a cue may have.
        """
        self._hub = hub
        self._limits = limits
        self._texts: dict[tuple[str, Format], tuple[int, asyncio.Future[str]]] = {}

    async def text(self, language: str, kind: Format) -> str:
        """Give the subtitles of a language so far.

        Args:
            language: Its code, or `SOURCE`.
            kind: The format.
        """
        newest = self._hub.newest_final(language)
        known = self._texts.get((language, kind))
        if known is None or known[0] != newest or known[1].cancelled():
            writing = asyncio.to_thread(self._write, self._hub.entries(), language, kind)
            known = newest, asyncio.ensure_future(writing)
            self._texts[language, kind] = known
        return await asyncio.shield(known[1])

    def _write(self, entries: Sequence[Entry], language: str, kind: Format) -> str:
        return write_subtitles(finals_of(entries, language), kind, self._limits)


def _block(number: int, cue: Cue, kind: Format) -> str:
    from pysubs2.formats.subrip import SubripFormat
    from pysubs2.formats.webvtt import WebVTTFormat

    lines = "\n".join(cue.lines).translate(_NO_MARKUP)
    stamp = (WebVTTFormat if kind == "vtt" else SubripFormat).ms_to_timestamp
    times = f"{stamp(cue.start_ms)} --> {stamp(cue.end_ms)}"
    if kind == "vtt":
        return f"{times}\n{html.escape(lines, quote=False)}\n"
    return f"{number}\n{times}\n{lines}\n"
