# SPDX-License-Identifier: Apache-2.0
"""Find text to keep unchanged or by a glossary: content of `<dnt>`, phrases and patterns."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import ahocorasick

from ct2_triton.errors import InvalidCallError
from ct2_triton.words import UNSPACED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

PATTERNS = {
    "urls": r"(?:https?://|www\.)[^\s<>\"]*[^\s<>\".,;:!?)\]}']",
    "emails": r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "numbers": r"(?<![\w.,:])\d+(?:[.,:]\d+)*(?!\w)",
    "emoji": (
        "(?:[\U0001f1e6-\U0001f1ff]{2}|[\u2600-\u27bf\U0001f300-\U0001faff][\ufe0f\U0001f3fb-\U0001f3ff]?"
        "(?:\u200d[\u2600-\u27bf\U0001f300-\U0001faff]\ufe0f?)*)"
    ),
}
"""The patterns that `Terms` can find, by name."""

_TAG = re.compile(r"</?dnt>")
_SHOWN = 40
# Characters that do not extend a word: scripts without spaces, Korean, which appends particles to
# names, and the selectors after emoji, which Unicode classifies as marks.
_ENDS_WORDS = re.compile(rf"[{UNSPACED}\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff\ufe00-\ufe0f]")
_OF_WORDS = ("L", "M", "N")  # Unicode's letters, marks and numbers


@dataclass(frozen=True)
class Term:
    """A part of a text that its translation must keep.

    Attributes:
        start: Where it begins, in characters.
        end: Where it ends.
        text: What the translation must have there.
    """

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class TermText:
    """A text and its terms.

    Attributes:
        text: The text, without marks.
        terms: The terms, in order; no two overlap.
    """

    text: str
    terms: tuple[Term, ...]

    def replaced(self, texts: Collection[str]) -> str:
        """Return the text with the terms replaced by other texts."""
        parts: list[str] = []
        at = 0
        for term, text in zip(self.terms, texts, strict=True):
            parts += [self.text[at : term.start], text]
            at = term.end
        return "".join([*parts, self.text[at:]])

    def translated(self) -> str | None:
        """Return the translation of a text with no words except terms; None for other texts."""
        if any(map(str.isalnum, self.replaced([""] * len(self.terms)))):
            return None
        return self.replaced([term.text for term in self.terms])

    def lost_in(self, translation: str) -> tuple[str, ...]:
        """Return the terms that a translation has more or less often than this text."""
        wanted = self.replaced([term.text for term in self.terms])
        lost: list[str] = []
        for text, places in Counter(term.text for term in self.terms).items():
            # Terms that <dnt> marks inside a word are not whole words.
            count = occurrences if occurrences(text, wanted) >= places else _pieces
            if count(text, wanted) != count(text, translation):
                lost.append(text)
        return tuple(lost)


@dataclass(frozen=True)
class Terms:
    """The terms to keep: checked and compiled once, for any number of texts.

    Attributes:
        keep: Phrases that are terms wherever they occur as whole words, matched exactly.
        glossary: What phrases become in the translation.
        patterns: Which of `PATTERNS` are terms, too.
    """

    keep: Collection[str] = ()
    glossary: Mapping[str, str] = field(default_factory=dict)
    patterns: Collection[str] = ()

    def __post_init__(self) -> None:
        """Check them.

        Raises:
            InvalidCallError: A phrase is empty, or a pattern is unknown.
        """
        if isinstance(self.keep, str) or isinstance(self.patterns, str):
            raise InvalidCallError("keep and patterns are collections: one phrase is ['phrase']")
        for phrase in (*self.keep, *self.glossary, *self.glossary.values()):
            if not phrase.strip():
                raise InvalidCallError(f"{phrase!r} cannot be a term: it has no visible character")
        if unknown := set(self.patterns) - set(PATTERNS):
            known = list(PATTERNS)
            raise InvalidCallError(f"no pattern is named {min(unknown)!r}; there is {known}")

    def __bool__(self) -> bool:
        """Return whether there are any terms."""
        return bool(self.keep or self.glossary or self.patterns)

    def find(self, text: str) -> TermText:
        """Find the terms of a text.

        Args:
            text: The text. `<dnt>` and `</dnt>` around a part of it make that a term.

        Returns:
            The text without `<dnt>`, and its terms. Where two overlap, the first counts; of two
            that begin together, the longer one.

        Raises:
            InvalidCallError: A `<dnt>` has no end, holds nothing or another one.
        """
        plain, marked = _read_tags(text)
        found = [*self._phrases_in(plain)]
        found += [
            Term(match.start(), match.end(), match[0])
            for name in self.patterns
            for match in re.finditer(PATTERNS[name], plain)
        ]
        return TermText(plain, tuple(_without_overlaps(marked, found)))

    def _phrases_in(self, text: str) -> Iterator[Term]:
        """Yield the occurrences of all phrases; those of one phrase do not overlap."""
        if self._automaton is None:
            return
        ends: dict[str, int] = {}
        for last, (phrase, becomes) in self._automaton.iter(text):
            start, end = last + 1 - len(phrase), last + 1
            if start >= ends.get(phrase, 0) and _stands_alone(text, start, end):
                ends[phrase] = end
                yield Term(start, end, becomes)

    @cached_property
    def _automaton(self) -> Any:  # noqa: ANN401 - an Aho-Corasick automaton: one scan for all phrases
        phrases = {**{phrase: phrase for phrase in self.keep}, **self.glossary}
        if not phrases:
            return None
        automaton = ahocorasick.Automaton()
        for phrase, becomes in phrases.items():
            automaton.add_word(phrase, (phrase, becomes))
        automaton.make_automaton()
        return automaton


def occurrences(term: str, text: str) -> int:
    """Count how often a term occurs in a text, not as a part of a longer word or number."""
    return sum(1 for _ in places(term, text))


def _pieces(term: str, text: str) -> int:
    return text.count(term)


def places(phrase: str, text: str, *, in_any_case: bool = False) -> Iterator[int]:
    """Yield where a phrase begins as whole words; occurrences do not overlap.

    A word consists of letters, marks and numbers of any script. In scripts without spaces, and in
    Korean, word ends are unknown, so a phrase is found everywhere.
    """
    pattern = re.compile(re.escape(phrase), re.IGNORECASE) if in_any_case else None

    def find(at: int) -> int:
        if pattern is None:
            return text.find(phrase, at)
        match = pattern.search(text, at)
        return -1 if match is None else match.start()

    start = find(0)
    while start >= 0:
        end = start + len(phrase)
        if _stands_alone(text, start, end):
            yield start
        else:
            end = _end_of_word(text, start) if _is_of_word(text[start]) else start + 1
        start = find(end)


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Return whether no word of a text crosses the start or the end of a part of it."""
    begins_within = _is_of_word(text[start - 1 : start]) and _is_of_word(text[start])
    return not (begins_within or (_is_of_word(text[end - 1]) and _is_of_word(text[end : end + 1])))


def _end_of_word(text: str, start: int) -> int:
    """Return the end of the word that a character is in."""
    return next((i for i in range(start, len(text)) if not _is_of_word(text[i])), len(text))


def _is_of_word(letter: str) -> bool:
    """Return whether a character is a part of a word; "" is not."""
    is_part = bool(letter) and unicodedata.category(letter)[0] in _OF_WORDS
    return is_part and _ENDS_WORDS.match(letter) is None


def _read_tags(text: str) -> tuple[str, list[Term]]:
    """Return the text without tags, and the marked terms."""
    terms: list[Term] = []
    plain = ""
    at = 0
    begin: int | None = None
    for tag in _TAG.finditer(text):
        plain += text[at : tag.start()]
        at = tag.end()
        where = f"at character {tag.start()}"
        if tag[0] == "<dnt>":
            if begin is not None:
                raise InvalidCallError(f"<dnt> {where} is inside another one")
            begin = len(plain)
        elif begin is None:
            raise InvalidCallError(f"</dnt> {where} has no <dnt> before it")
        elif not plain[begin:].strip():
            raise InvalidCallError(f"</dnt> {where} ends a term without a visible character")
        else:
            terms.append(Term(begin, len(plain), plain[begin:]))
            begin = None
    if begin is not None:
        raise InvalidCallError(f"<dnt> before {text[at : at + _SHOWN]!r} has no </dnt>")
    return plain + text[at:], terms


def _without_overlaps(marked: list[Term], found: list[Term]) -> Iterator[Term]:
    """Yield the terms of tags, and the others that do not overlap with them."""
    ends = [term.end for term in marked]

    def is_free(term: Term) -> bool:
        at = bisect_right(ends, term.start)  # the first that ends after its start
        return at == len(marked) or term.end <= marked[at].start

    free = filter(is_free, found)
    end = 0
    for term in sorted([*marked, *free], key=lambda term: (term.start, -term.end)):
        if term.start >= end:
            yield term
            end = term.end
