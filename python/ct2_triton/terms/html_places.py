# SPDX-License-Identifier: Apache-2.0
"""Find the places of a sentence's elements in its translation.

The words of an element are found by its tokens' attention, or by a search that the caller has.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from ct2_triton.terms.html_parts import escaped

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from ct2_triton.client.results import Translation
    from ct2_triton.client.tokenization import Tokenizer
    from ct2_triton.terms.html_parts import Element

Span: TypeAlias = tuple[int, int]
Find: TypeAlias = "Callable[[Element, str, Span], Span | None]"

_WORD = re.compile(r"\w+(?:['\u2019-]\w+)*")
_SPACE = re.compile(r"[ \t\r\n\f]+")
_MOST_IDS = 300  # of a sentence; more are decoded too often


@dataclass(frozen=True)
class Alignment:
    """The words of a sentence and of its translation, and the links between them.

    Attributes:
        text: The translation.
        sources: Where each word of the sentence begins and ends, in characters.
        targets: Words of the translation.
        links: Numbers of words of the translation, each with that of a source word it attends to.
    """

    text: str
    sources: Sequence[tuple[int, int]]
    targets: Sequence[tuple[int, int]]
    links: Collection[tuple[int, int]]

    @classmethod
    def of(cls, tokenizer: Tokenizer, answer: Translation) -> Alignment:
        """Read the alignments of an answer's tokens."""
        source = tokenizer.source(answer.source)
        (target,) = tokenizer.targets(answer.target)
        mark = -1  # no id
        first = tokenizer.rules.input_ids([mark], source, target).index(mark)
        source_words = _words_of(tokenizer.encode(answer.source_text).ids, tokenizer.decode)
        target_words = _words_of(answer.ids, tokenizer.decode)
        links = {
            (word, behind)
            for word, position in zip(target_words, answer.alignments or (), strict=False)
            if 0 <= position - first < len(source_words)
            if word is not None and (behind := source_words[position - first]) is not None
        }
        return cls(answer.text, _spans(answer.source_text), _spans(answer.text), links)

    @classmethod
    def of_ranges(cls, answer: Translation) -> Alignment:
        """Read the alignments of an answer of a text model."""
        sources, targets = _spans(answer.source_text), _spans(answer.text)
        at_source, at_target = _characters(answer.source_text), _characters(answer.text)
        links = {
            (word, behind)
            for left, right, start, end in answer.alignment_ranges or ()
            for word in _touched(targets, at_target[start], at_target[end])
            for behind in _touched(sources, at_source[left], at_source[right])
        }
        return cls(answer.text, sources, targets, links)

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """Find the translation of a part of the source; None if its words are not contiguous."""
        inside = {
            number
            for number, (left, right) in enumerate(self.sources)
            if start <= left and right <= end
        }
        found = {word for word, behind in self.links if behind in inside}
        others = {word for word, behind in self.links if behind not in inside}
        if not found or max(found) >= len(self.targets):
            return None
        if not others.isdisjoint(range(min(found), max(found) + 1)):
            return None
        return self.targets[min(found)][0], self.targets[max(found)][1]


def _spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _WORD.finditer(text)]


def _characters(text: str) -> list[int]:
    """Return for each byte of a text, and for its end, the number of the character."""
    bytes_of = ([i] * len(letter.encode()) for i, letter in enumerate(text))
    return [*chain.from_iterable(bytes_of), len(text)]


def _touched(spans: Sequence[tuple[int, int]], start: int, end: int) -> range:
    """Return the indices of the words with a character between two positions."""
    return range(
        bisect_right(spans, start, key=lambda span: span[1]),
        bisect_left(spans, end, key=lambda span: span[0]),
    )


def _words_of(ids: Sequence[int], decode: Callable[[Sequence[int]], str]) -> list[int | None]:
    """Return the index of the word of each ID, from 0; None for an ID without a word."""
    some = ids[:_MOST_IDS]
    words = [len(_WORD.findall(decode(some[: i + 1]))) - 1 for i in range(len(some))]
    return [
        word if word >= 0 and _WORD.search(decode([token])) else None
        for token, word in zip(some, words, strict=True)
    ]


def place_aligned(sentence: Element, alignment: Alignment) -> str | None:
    """Put the elements of a sentence around the translations of their words.

    None if a place is not found, or out of order.
    """

    def find(element: Element, before: str, _within: Span) -> Span | None:
        start = len(_seen(before + "x")) - 1
        return alignment.span(start, len(_seen(before + element.text + "x")) - 1)

    return place(sentence, alignment.text, (0, len(alignment.text)), find)


def place(
    element: Element, translated: str, within: Span, find: Find, before: str = ""
) -> str | None:
    """Write the content of an element between two positions of a translation.

    Elements without text, such as icons and comments, go where as large a part of the words is
    before them as in the source.

    Args:
        element: The element.
        translated: The translation.
        within: Where its content begins and ends in the translation, in characters.
        find: Finds the place of an element in it, given the source before it and where to search.
        before: The source before this element.

    Returns:
        The content as HTML; None if a place is not found, or out of order.
    """
    elements: list[tuple[Element, str]] = []  # each with the source before it
    at = before
    for child in element.children:
        if not isinstance(child, str):
            elements.append((child, at))
        at += child if isinstance(child, str) else child.text
    gaps = _Gaps(at, len(before), translated, within)
    spots = _spots(elements, gaps, within, find)
    if spots is None:
        return None
    parts: list[str] = []
    end = within[0]
    for (child, left), spot in zip(elements, spots, strict=True):
        written: str | None = child.html
        if child.text.strip():
            inner = place(child, translated, spot, find, left)
            written = None if inner is None else f"{child.start}{inner}{child.end}"
        if written is None:
            return None
        parts += [escaped(translated[end : spot[0]]), written]
        end = spot[1]
    return "".join([*parts, escaped(translated[end : within[1]])])


def _spots(
    elements: Sequence[tuple[Element, str]], gaps: _Gaps, within: Span, find: Find
) -> list[Span] | None:
    """Return the places of elements, in order; those without text take none from others."""
    spots: list[Span] = []
    at = within[0]
    for element, before in elements:
        if element.text.strip():
            spot = find(element, before, within)
            if spot is None or spot[0] < at or spot[1] > within[1]:
                return None
            at = spot[1]
        else:
            spot = (max(at, gaps.after(before)),) * 2
        spots.append(spot)
    limit = within[1]
    for i, (start, end) in reversed(list(enumerate(spots))):
        if start == end:
            spots[i] = (min(start, limit),) * 2
        limit = spots[i][0]
    return spots


@dataclass(frozen=True)
class _Gaps:
    """Between the words of an element's translation.

    Attributes:
        source: The source up to the element's end.
        first: Where the element begins in it.
        translated: The translation.
        within: Where that of the element begins and ends.
    """

    source: str
    first: int
    translated: str
    within: Span

    def after(self, before: str) -> int:
        """Return the place of what comes after a part of the source."""
        earlier = len(_spans(before[self.first :]))
        later = len(_spans(self.source[len(before) :]))
        start, end = self.within
        words = [(a, b) for a, b in _spans(self.translated) if start <= a and b <= end]
        if not earlier or not words:
            return start
        if not later or len(words) == 1:
            return end
        count = round(len(words) * earlier / (earlier + later))
        count = min(max(1, count), len(words) - 1)
        return words[count][0] if before[-1:].isspace() else words[count - 1][1]


def _seen(text: str) -> str:
    """Return the start of a sentence as the model sees it."""
    return _SPACE.sub(" ", text).lstrip()
