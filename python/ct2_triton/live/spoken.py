# SPDX-License-Identifier: Apache-2.0
"""Where the texts of unfinished segments go on after a crash or a long absence of the speaker."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ct2_triton.live.cutting import FARTHEST_WORDS, KNOWN_WORDS, Cut, bare
from ct2_triton.live.updates import piece_of
from ct2_triton.words import split_words

if TYPE_CHECKING:
    from ct2_triton.live.hub import Entry

_REMEMBERED = 10_000


@dataclass(frozen=True)
class Spoken:
    """The final text of a segment that its speaker has not ended.

    Attributes:
        cut: Where it ends.
        first: Its first words, without the space after each.
    """

    cut: Cut
    first: tuple[str, ...] = ()

    def followed_by(self, text: str) -> Spoken:
        """Return the final text with one more piece."""
        words = bare(split_words(text))
        last = (*self.cut.last, *words)[-KNOWN_WORDS:]
        cut = Cut(self.cut.words + len(words), last, self.cut.pieces + 1)
        return Spoken(cut, (*self.first, *words)[:KNOWN_WORDS])

    def begins(self, text: str) -> bool:
        """Return whether a text begins with this one, perhaps revised; else it is a new text.

        A recognizer that begins anew may use old names, but its first text is shorter.
        """
        words = split_words(text)
        is_as_long = len(words) >= self.cut.words - FARTHEST_WORDS
        is_alike = is_as_long and bare(words[:KNOWN_WORDS]) == self.first
        return is_alike or self.cut.find(words) is not None


class Unfinished:
    """The final texts of segments that their speakers have not ended."""

    def __init__(self) -> None:
        """Start without segments."""
        self._spoken: OrderedDict[str, Spoken] = OrderedDict()

    def note(self, entry: Entry) -> None:
        """Take a final source text."""
        name, number = _name_of(entry.caption.segment)
        before = self._spoken.pop(name, None)
        if entry.goes_on:
            known = before if before and number > 1 else Spoken(Cut())
            self._spoken[name] = known.followed_by(entry.caption.committed)
            if len(self._spoken) > _REMEMBERED:
                self._spoken.popitem(last=False)

    def get(self, segment: str) -> Spoken | None:
        """Return the final text of a segment, also if it was said under an earlier name."""
        return self._spoken.get(_name_of(segment)[0])


def _name_of(segment: str) -> tuple[str, int]:
    """Return a segment's name as the speaker says it, NAME/SEGMENT, and the piece's number."""
    speaker, _, rest = segment.partition("/")
    own, number = piece_of(rest)
    return f"{piece_of(speaker)[0]}/{own}", number
