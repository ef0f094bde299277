# SPDX-License-Identifier: Apache-2.0
"""What stands in a text for its terms while a model translates it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from ct2_triton.errors import InvalidCallError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ct2_triton.terms.finding import TermText

KINDS = ("X{}", "ID{}", "#{}", "[{}]", "__{}__", "{{{}}}", "<{}>", "@{}", "${}", "({})")
"""Kinds that are in use elsewhere, for measurements. `{}` is the number."""
DEFAULT_KINDS = ("X{}", "[{}]")
"""What is tried, in this order, where nothing else is said."""


@dataclass(frozen=True)
class Marked:
    """A text with placeholders.

    Attributes:
        text: The text.
        placeholders: Finds each placeholder, in the order of the terms.
    """

    text: str
    placeholders: tuple[re.Pattern[str], ...]


def mark(found: TermText, kind: str | Sequence[str]) -> Marked | None:
    """Put placeholders for terms.

    Args:
        found: The text and its terms.
        kind: A text with `{}` for a number, such as `X{}`; or names that are used as they are.

    Returns:
        The text with placeholders, none of which was in it before; None where there are too few
        names.

    Raises:
        InvalidCallError: The kind has no place for a number.
    """
    chosen: list[str] = []
    offered = _all_of(kind)
    while len(chosen) < len(found.terms):
        if (placeholder := next(offered, None)) is None:
            return None
        if not _pattern(placeholder).search(found.text):
            chosen.append(placeholder)
    return Marked(found.replaced(chosen), tuple(map(_pattern, chosen)))


def restore(found: TermText, marked: Marked, translation: str) -> str | None:
    """Put terms back in the places of their placeholders.

    Args:
        found: The text that was translated, and its terms.
        marked: The same with placeholders.
        translation: The translation of that.

    Returns:
        The translation with the terms; None where a placeholder is not there exactly once, or
        where the translation then has a term more or less often than the text.
    """
    places: list[tuple[int, int, str]] = []
    for term, pattern in zip(found.terms, marked.placeholders, strict=True):
        matches = list(pattern.finditer(translation))
        if len(matches) != 1:
            return None
        places.append((*matches[0].span(), term.text))
    parts: list[str] = []
    at = 0
    for start, end, text in sorted(places):
        if start < at:
            return None
        parts += [translation[at:start], text]
        at = end
    restored = "".join([*parts, translation[at:]])
    return None if found.lost_in(restored) else restored


def _all_of(kind: str | Sequence[str]) -> Iterator[str]:
    if not isinstance(kind, str):
        return iter(dict.fromkeys(kind))
    if kind.count("{}") != 1 or not kind.replace("{}", "").strip():
        raise InvalidCallError(f"{kind!r} is no kind of placeholder: one is 'X{{}}'")
    return (kind.replace("{}", str(number)) for number in count(1))


def _pattern(placeholder: str) -> re.Pattern[str]:
    """Find it also where the model has put spaces into it, or changed its case."""
    parts = re.findall(r"[^\W\d_]+|\d+|[^\w\s]|_+|\s+", placeholder)
    body = r"\s?".join(re.escape(part) for part in parts if part.strip())
    return re.compile(rf"(?<![0-9A-Za-z]){body}(?![0-9A-Za-z])", re.IGNORECASE)
