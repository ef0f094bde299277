# SPDX-License-Identifier: Apache-2.0
"""Find what must come back as it is: what `<dnt>` holds, phrases, glossary words, patterns."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ct2_triton.errors import InvalidCallError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

PATTERNS = {
    "urls": r"(?:https?://|www\.)[^\s<>\"]*[^\s<>\".,;:!?)\]}']",
    "emails": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "numbers": r"(?<![\w.,:])\d+(?:[.,:]\d+)*(?!\w)",
    "emoji": (
        "(?:[\U0001f1e6-\U0001f1ff]{2}|[\u2600-\u27bf\U0001f300-\U0001faff][\ufe0f\U0001f3fb-\U0001f3ff]?"
        "(?:\u200d[\u2600-\u27bf\U0001f300-\U0001faff]\ufe0f?)*)"
    ),
}
"""What `find_terms` finds on its own where that is wanted, by name."""

_TAG = re.compile(r"</?dnt>")
_SHOWN = 40
# A term is not found inside of a longer word. Scripts without spaces have no such ends of words.
_LETTER = "[0-9A-Za-z\u00c0-\u024f]"


@dataclass(frozen=True)
class Term:
    """A place of a text that must come back.

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
        """Give the text with other texts in the places of the terms.

        Args:
            texts: One for each term.

        Returns:
            The text.
        """
        parts: list[str] = []
        at = 0
        for term, text in zip(self.terms, texts, strict=True):
            parts += [self.text[at : term.start], text]
            at = term.end
        return "".join([*parts, self.text[at:]])

    def lost_in(self, translation: str) -> tuple[str, ...]:
        """Tell which terms a translation does not have as often as this text.

        Args:
            translation: The translation.

        Returns:
            What is missing, or too much.
        """
        wanted = self.replaced([term.text for term in self.terms])
        lost: list[str] = []
        for text, places in Counter(term.text for term in self.terms).items():
            # Terms that <dnt> cuts out of a word are no whole words.
            count = occurrences if occurrences(text, wanted) >= places else _pieces
            if count(text, wanted) != count(text, translation):
                lost.append(text)
        return tuple(lost)


def find_terms(
    text: str,
    keep: Collection[str] = (),
    glossary: Mapping[str, str] | None = None,
    patterns: Collection[str] = (),
) -> TermText:
    """Find the terms of a text.

    Args:
        text: The text. `<dnt>` and `</dnt>` around a part of it make that a term.
        keep: Phrases that are terms wherever they stand as whole words, letter by letter.
        glossary: What phrases become in the translation.
        patterns: Which of `PATTERNS` are terms, too.

    Returns:
        The text without `<dnt>`, and its terms. Where two overlap, the first counts; of two that
        begin together, the longer one.

    Raises:
        InvalidCallError: A `<dnt>` has no end, holds nothing or another one; a phrase is empty; a
            pattern is unknown.
    """
    glossary = glossary or {}
    if isinstance(keep, str) or isinstance(patterns, str):
        raise InvalidCallError("keep and patterns are collections: one phrase is ['phrase']")
    for phrase in (*keep, *glossary, *glossary.values()):
        if not phrase.strip():
            raise InvalidCallError(f"{phrase!r} cannot be a term: it has no visible character")
    if unknown := set(patterns) - set(PATTERNS):
        raise InvalidCallError(f"no pattern is named {min(unknown)!r}; there is {list(PATTERNS)}")
    plain, marked = _read_tags(text)
    becomes = {**{phrase: phrase for phrase in keep}, **glossary}
    found = [
        Term(match.start(), match.end(), becomes[phrase])
        for phrase in becomes
        for match in whole(phrase).finditer(plain)
    ]
    found += [
        Term(match.start(), match.end(), match[0])
        for name in patterns
        for match in re.finditer(PATTERNS[name], plain)
    ]
    return TermText(plain, tuple(_without_overlaps(marked, found)))


def occurrences(term: str, text: str) -> int:
    """Count how often a term stands in a text.

    Args:
        term: The term.
        text: The text.

    Returns:
        How often; not counted is where it is a part of a longer word or number.
    """
    return sum(1 for _ in whole(term).finditer(text))


def _pieces(term: str, text: str) -> int:
    return text.count(term)


def whole(phrase: str, flags: int = 0) -> re.Pattern[str]:
    """Find a phrase where it is no part of a longer word or number.

    Args:
        phrase: The phrase.
        flags: Those of `re`.

    Returns:
        What finds it.
    """
    before = f"(?<!{_LETTER})" if re.match(_LETTER, phrase) else ""
    after = f"(?!{_LETTER})" if re.match(_LETTER, phrase[-1]) else ""
    return re.compile(f"{before}{re.escape(phrase)}{after}", flags)


def _read_tags(text: str) -> tuple[str, list[Term]]:
    """Take the tags out."""
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
                raise InvalidCallError(f"<dnt> {where} is inside of another one")
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
    """Give those of the tags, and the others that do not touch one of these."""
    free = [f for f in found if not any(f.start < m.end and m.start < f.end for m in marked)]
    end = 0
    for term in sorted([*marked, *free], key=lambda term: (term.start, -term.end)):
        if term.start >= end:
            yield term
            end = term.end
