# SPDX-License-Identifier: Apache-2.0
"""Subtitle files of an event: WebVTT (.vtt) and SubRip (.srt)."""

from __future__ import annotations

import html
import textwrap
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ct2_triton.live.hub import Entry

Format = Literal["vtt", "srt"]
KINDS: tuple[Format, ...] = ("vtt", "srt")
_SHORTEST_S = 1.0
_LINE_LETTERS = 42  # the width that broadcasters use


def write_subtitles(finals: Iterable[Entry], kind: Format) -> str:
    """Write the finals of a language as subtitles; each is shown for a second at least.

    Args:
        finals: In the order of their times.
        kind: The format.

    Returns:
        The file's text.
    """
    import pysubs2

    subtitles = pysubs2.SSAFile()
    for entry in finals:
        text = entry.caption.transcript or ""
        lines = textwrap.fill(text, _LINE_LETTERS, break_long_words=False)
        if not lines:
            continue
        end_s = max(entry.end_s, entry.start_s + _SHORTEST_S)
        event = pysubs2.SSAEvent(round(1000 * entry.start_s), round(1000 * end_s))
        lines = lines.translate({ord("{"): "(", ord("}"): ")"})  # the library's own markup
        event.plaintext = html.escape(lines, quote=False) if kind == "vtt" else lines
        subtitles.append(event)
    return str(subtitles.to_string(kind))
