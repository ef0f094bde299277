# SPDX-License-Identifier: Apache-2.0
"""Subtitle cues with short lines and enough time to read them, as broadcasters require."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ct2_triton.errors import InvalidCallError
from ct2_triton.live.updates import piece_of
from ct2_triton.subtitles import Cue, filled, width
from ct2_triton.words import split_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ct2_triton.live.hub import Entry

_SHORTEST_MS = 1000
_LATEST_MS = 10_000  # longest delay of a cue so that earlier ones can be read
_KEPT_TEXTS = 20_000


@dataclass(frozen=True)
class CueLimits:
    """Limits on the text of a cue and its speed.

    Attributes:
        line_chars: Most characters of a line; wide ones, such as Chinese, count twice, and
            combining marks do not count.
        lines: Most lines of a cue.
        chars_per_s: Characters that viewers read in a second.
    """

    line_chars: int = 42
    lines: int = 2
    chars_per_s: float = 17.0

    def __post_init__(self) -> None:
        """Check the values."""
        for name, least in (("line_chars", 10), ("lines", 1), ("chars_per_s", 1)):
            if not getattr(self, name) >= least:
                raise InvalidCallError(
                    f"{name} is {getattr(self, name)}; it must be {least} or more"
                )


def make_cues(finals: Iterable[Entry], limits: CueLimits) -> list[Cue]:
    """Split finals, ordered by time, into cues in that order.

    The cues of a speaker do not overlap: a cue that takes long to read delays the next by at most
    10 seconds. If a speaker is faster for longer, cues are shown for less time than they need.
    """
    cues: list[Cue] = []
    free_ms: dict[str, int] = {}  # when the last cue of each speaker ends
    for entry in finals:
        texts = cut_text(entry.caption.transcript or "", limits)
        speaker, _ = piece_of(entry.caption.segment.rpartition("/")[0])  # also after a return
        for cue in _timed(texts, entry, free_ms.get(speaker, 0), limits):
            cues.append(cue)
            free_ms[speaker] = cue.end_ms
    return sorted(cues, key=lambda cue: cue.start_ms)


def _timed(
    texts: Sequence[Sequence[str]], entry: Entry, free_ms: int, limits: CueLimits
) -> Iterable[Cue]:
    """Divide the time of a final among its cues by their length."""
    begin_ms, spoken_ms = 1000 * entry.start_s, 1000 * (entry.end_s - entry.start_s)
    widths = [sum(map(width, lines)) for lines in texts]
    before, whole = 0, sum(widths)
    if not whole:
        return  # only invisible characters
    for lines, size in zip(texts, widths, strict=True):
        own_start = round(begin_ms + spoken_ms * before / whole)
        before += size
        own_end = round(begin_ms + spoken_ms * before / whole)
        start = max(own_start, free_ms)
        least = max(_SHORTEST_MS, math.ceil(1000 * size / limits.chars_per_s))
        if start - own_start > _LATEST_MS:
            least = min(least, max(_SHORTEST_MS, own_end - own_start))
        free_ms = max(own_end, start + least)
        yield Cue(start, free_ms, lines)


@lru_cache(_KEPT_TEXTS)
def cut_text(text: str, limits: CueLimits) -> tuple[tuple[str, ...], ...]:
    """Split a text, with white space reduced to single spaces, into cues of about equal lines."""
    words = [part for word in split_words(" ".join(text.split())) for part in _parts(word, limits)]
    if not words:
        return ()
    least = len(filled(words, limits.line_chars))
    cues = math.ceil(least / limits.lines)
    most = cues * limits.lines if cues > 1 else least
    low, high = 1, limits.line_chars
    while low < high:  # find the narrowest width with as few lines
        middle = (low + high) // 2
        low, high = (low, middle) if len(filled(words, middle)) <= most else (middle + 1, high)
    lines = filled(words, low)
    return tuple(tuple(lines[i : i + limits.lines]) for i in range(0, len(lines), limits.lines))


def _parts(word: str, limits: CueLimits) -> list[str]:
    """Split a word that is longer than a line."""
    if width(word.rstrip()) <= limits.line_chars:
        return [word]
    size = limits.line_chars // 2  # fits even for wide characters
    return [word[i : i + size] for i in range(0, len(word), size)]
