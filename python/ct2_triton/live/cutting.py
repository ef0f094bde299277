# SPDX-License-Identifier: Apache-2.0
"""Cut a long segment into pieces, each of which is translated as a segment.

It is cut at the end of a sentence when some words after it are stable, else by length.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from ct2_triton.engine_library import EngineLibraryError, load_core
from ct2_triton.live.updates import piece_name
from ct2_triton.words import common_words, join_words, split_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ct2_triton.live.updates import SegmentUpdate

    Segmenter = Callable[[bytes, str], list[tuple[int, int]]]

_LOG = logging.getLogger(__name__)
_WORDS_AFTER = 3  # stable words after an end, so that it is not an abbreviation or revised
KNOWN_WORDS = 3  # words by which a cut is found again in a revised text
FARTHEST_WORDS = 5
_CLAUSE_ENDS = (",", ";", ":", "、", "，", "；", "：", "،", "؛")  # noqa: RUF001
# A possible end of a sentence that is followed by something.
_ENDS = re.compile(r"[.!?…።।؟۔][\"'”’»)\]]*\s+\S|[。！？]\S|\n\s*\S")  # noqa: RUF001


@dataclass(frozen=True)
class Piece:
    """A segment, or a part of one that was too long.

    Attributes:
        update: The update of the piece.
        stable: The text to translate; for a final one, all of it.
    """

    update: SegmentUpdate
    stable: str


@dataclass(frozen=True)
class Cut:
    """Where a segment was cut.

    Attributes:
        words: Number of words before the cut.
        last: The last of them, without the space after each.
        pieces: Number of pieces before the cut.
    """

    words: int = 0
    last: tuple[str, ...] = ()
    pieces: int = 0

    def find(self, words: Sequence[str]) -> int | None:
        """Return the cut's index in a text; words before it may have been added or removed."""
        size = len(self.last)
        for distance in range(FARTHEST_WORDS + 1):
            for place in (self.words + distance, self.words - distance):
                if place >= size and bare(words[place - size : place]) == self.last:
                    return place
        return None

    def place(self, words: Sequence[str]) -> int:
        """Return the cut's index in a text; if it is not found, by the number of words."""
        found = self.find(words)
        return min(self.words, len(words)) if found is None else found


class Cuts:
    """The pieces of one segment."""

    def __init__(
        self, language: str = "", *, sentences: bool = True, max_words: int, agreement: bool = True
    ) -> None:
        """Start a segment; the code of its language selects the abbreviations.

        It is cut at ends of sentences if `sentences` is true, and before `max_words`. With
        `agreement`, two updates must agree on the text to translate.
        """
        self._language = language
        self._sentences = sentences
        self._max_words = max_words
        self._stable = StableSource()
        self._worth = StableSource(agreement=agreement)
        self._cut = Cut()
        self.cut_chars = 0
        self.newest: SegmentUpdate | None = None

    def go_on(self, cut: Cut, text: str) -> None:
        """Begin after the cut of a text whose earlier pieces are final."""
        words = split_words(text)
        self._move(words, cut.place(words), cut.pieces)

    def take(self, update: SegmentUpdate) -> list[Piece]:
        """Take the segment's next update, with all of its text, and return the pieces.

        The last piece is open, unless the update is final.
        """
        self.newest = update
        words = split_words(update.text)
        place = self._cut.place(words)
        if update.final:
            ends = [*self._ends(words, place, len(words), is_final=True), len(words)]
        else:
            stable, worth = self._stable.take(update), self._worth.take(update)
            ends = self._ends(words, place, len(split_words(stable)), is_final=False)
        number = self._cut.pieces + 1
        bounds = enumerate(pairwise([place, *ends]), number)
        pieces = [_over(update, piece, words[start:end]) for piece, (start, end) in bounds]
        place, number = ends[-1] if ends else place, number + len(ends)
        self._move(words, place, number - 1)
        if update.final:
            return pieces
        rest = words[place:]
        text = join_words(rest)
        known = update.stable_chars
        if known is not None:
            known = min(len(text), max(0, known - (len(update.text) - len("".join(rest)))))
        name = piece_name(update.segment, number)
        open_one = replace(update, segment=name, text=text, stable_chars=known)
        return [*pieces, Piece(open_one, join_words(split_words(worth)[place:]))]

    def _move(self, words: Sequence[str], place: int, pieces: int) -> None:
        """Note the cut, with its words as the text now has them."""
        self._cut = Cut(place, bare(words[max(0, place - KNOWN_WORDS) : place]), pieces)
        self.cut_chars = sum(map(len, words[:place]))

    def _ends(self, words: list[str], place: int, stable: int, *, is_final: bool) -> list[int]:
        """Return the numbers of words before each cut."""
        ends, after = [], 0 if is_final else _WORDS_AFTER
        if self._sentences:
            found = sentence_ends(words[place:stable], self._language)
            ends = [end for end in found if end + after <= stable - place]
        cuts: list[int] = []
        last = 0
        for end in [*ends, stable - place]:
            while end - last > self._max_words:
                last += _end_by_length(words[place + last : place + last + self._max_words])
                cuts.append(place + last)
            if end in ends:
                last = end
                cuts.append(place + last)
        return cuts


def _over(update: SegmentUpdate, number: int, words: Sequence[str]) -> Piece:
    name, text = piece_name(update.segment, number), join_words(words)
    over = replace(update, segment=name, text=text, final=True, stable_chars=None)
    return Piece(over, text)


def bare(words: Sequence[str]) -> tuple[str, ...]:
    """Return words without the space after each."""
    return tuple(word.rstrip() for word in words)


def sentence_ends(words: list[str], language: str) -> list[int]:
    """Return the numbers of words at which sentences end, without the last; by the segmenter."""
    text = "".join(words)
    if not _ENDS.search(text) or (segment := _segmenter()) is None:
        return []
    found, length, ranges = [], 0, segment(text.encode(), language)
    ends = [end for _, end in ranges[:-1]]
    for number, word in enumerate(words, start=1):
        length += len(word.rstrip().encode())
        if ends and length >= ends[0]:
            ends.pop(0)
            found.append(number)
        length += len(word.encode()) - len(word.rstrip().encode())
    return found


def _end_by_length(words: list[str]) -> int:
    """Return the end of the last clause in the second half of the words, else that of all."""
    for end in range(len(words), len(words) // 2, -1):
        if words[end - 1].rstrip().endswith(_CLAUSE_ENDS):
            return end
    return len(words)


@cache
def _segmenter() -> Segmenter | None:
    """Load the segmenter; None without the compiled core."""
    try:
        return load_core().segment  # type: ignore[no-any-return]
    except (ImportError, EngineLibraryError) as error:
        _LOG.warning("live captions are not cut at the ends of sentences: %s", error)
        return None


class StableSource:
    """The stable part of one segment's text.

    It is the recognizer's own stable part if it names one, else the words on which two consecutive
    updates agree (local agreement).
    """

    def __init__(self, *, agreement: bool = True) -> None:
        """Start a segment; without agreement, all of the newest text is stable."""
        self._agreement = agreement
        self._previous: list[str] | None = None

    def take(self, update: SegmentUpdate) -> str:
        """Take the next update that is not final; return the text to translate, or ""."""
        words = split_words(update.text)
        previous, self._previous = self._previous, words
        if update.stable_chars is not None:
            return _whole_words(update.text, update.stable_chars)
        if not self._agreement:
            return join_words(words)
        return join_words(words[: common_words(previous or [], words)])


def _whole_words(text: str, length: int) -> str:
    """Truncate a text to a length, and remove a word that would be split."""
    words, kept = split_words(text), 0
    end = len(text) - len("".join(words))
    for word in words:
        end += len(word)
        if end - (len(word) - len(word.rstrip())) > length:
            break
        kept += 1
    return join_words(words[:kept])
