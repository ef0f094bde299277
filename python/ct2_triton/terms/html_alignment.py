# SPDX-License-Identifier: Apache-2.0
"""Find the words of an HTML element in a translation by its tokens' attention."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from ct2_triton.terms.html_parts import escaped

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from ct2_triton.client.results import Translation
    from ct2_triton.client.tokenization import Tokenizer
    from ct2_triton.terms.html_parts import Element

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
    return _place(sentence, alignment, "", (0, len(alignment.text)))


def _place(
    element: Element, alignment: Alignment, before: str, span: tuple[int, int]
) -> str | None:
    """Write the content of an element, between two positions of the translation."""
    parts: list[str] = []
    at = span[0]
    for child in element.children:
        if isinstance(child, str):
            before += child
            continue
        start = len(_seen(before + "x")) - 1
        place = alignment.span(start, len(_seen(before + child.text + "x")) - 1)
        if place is None or place[0] < at or place[1] > span[1]:
            return None
        inner = _place(child, alignment, before, place)
        if inner is None:
            return None
        parts += [escaped(alignment.text[at : place[0]]), child.start, inner, child.end]
        at = place[1]
        before += child.text
    return "".join([*parts, escaped(alignment.text[at : span[1]])])


def _seen(text: str) -> str:
    """Return the start of a sentence as the model sees it."""
    return _SPACE.sub(" ", text).lstrip()
