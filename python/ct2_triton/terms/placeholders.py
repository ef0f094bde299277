# SPDX-License-Identifier: Apache-2.0
"""Placeholders that replace terms in a text while a model translates it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, islice
from typing import TYPE_CHECKING, TypeAlias

from ct2_triton.client.tokenization import Tokenizer, find_rules
from ct2_triton.errors import InvalidCallError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ct2_triton.client.client import TranslationClient
    from ct2_triton.prepared_model import TokenRules
    from ct2_triton.terms.finding import TermText

KINDS = ("X{}", "ID{}", "#{}", "[{}]", "__{}__", "{{{}}}", "<{}>", "@{}", "${}", "({})")
"""Kinds used by other programs, for measurements. `{}` is the number."""
DEFAULT_KINDS = ("X{}", "[{}]")
"""The kinds to try, in this order, with an unknown model."""

Kind: TypeAlias = str | tuple[str, ...]
"""A text with `{}` for a number, such as `X{}`; or names that are used as they are."""

Spans: TypeAlias = dict[str, list[tuple[int, int]]]  # places by placeholder
Find: TypeAlias = Callable[[str], Spans]


@dataclass(frozen=True)
class Marked:
    """A text with placeholders.

    Attributes:
        text: The text.
        placeholders: The placeholder of each term.
        find: Finds all placeholders of their kind in a text.
    """

    text: str
    placeholders: tuple[str, ...]
    find: Find


def kinds_of(client: TranslationClient) -> Sequence[Kind]:
    """Return the kinds of placeholders to try with a model.

    They are those that ct2-prepare found it to copy, where the model's folder is at hand.
    """
    if isinstance(client.languages, Tokenizer):
        rules: TokenRules | None = client.languages.rules
    else:
        rules = find_rules(client.model, client.repository)
    return DEFAULT_KINDS if rules is None or rules.placeholders is None else rules.placeholders


def check_kind(kind: str | Sequence[str]) -> None:
    """Check that a kind of placeholders is valid."""
    if isinstance(kind, str) and (kind.count("{}") != 1 or not kind.replace("{}", "").strip()):
        raise InvalidCallError(f"{kind!r} is not a kind of placeholder, such as 'X{{}}'")


def mark(found: TermText, kind: str | Sequence[str]) -> Marked | None:
    """Put placeholders, none of which was in the text, for terms; None: too few names.

    A kind is a text with `{}` for a number, such as `X{}`, or names that are used as they are.
    """
    check_kind(kind)
    if isinstance(kind, str):
        find = _numbers(kind)
        offered: Iterator[str] = (kind.replace("{}", str(number)) for number in count(1))
    else:
        find = _names(kind)
        offered = iter(dict.fromkeys(kind))
    taken = find(found.text)
    free = (placeholder for placeholder in offered if placeholder not in taken)
    chosen = tuple(islice(free, len(found.terms)))
    return Marked(found.replaced(chosen), chosen, find) if len(chosen) == len(found.terms) else None


def restore(found: TermText, marked: Marked, translation: str) -> str | None:
    """Replace placeholders by their terms.

    None if a placeholder does not occur exactly once, or the result has a term more or less often
    than the text.
    """
    spans = marked.find(translation)
    places: list[tuple[int, int, str]] = []
    for term, placeholder in zip(found.terms, marked.placeholders, strict=True):
        if len(spans.get(placeholder, ())) != 1:
            return None
        places.append((*spans[placeholder][0], term.text))
    parts: list[str] = []
    at = 0
    for start, end, text in sorted(places):
        if start < at:
            return None
        parts += [translation[at:start], text]
        at = end
    restored = "".join([*parts, translation[at:]])
    return None if found.lost_in(restored) else restored


def _numbers(kind: str) -> Find:
    """Find placeholders with any number, in one scan."""
    before, after = kind.split("{}")
    body = r"(\d+)"
    if before.strip():
        body = _loose(before) + (r"\s?" if not before[-1].isdecimal() else "") + body
    if after.strip():
        body += (r"\s?" if not after[0].isdecimal() else "") + _loose(after)
    pattern = _alone(body)

    def find(text: str) -> Spans:
        spans: Spans = {}
        for match in pattern.finditer(text):
            spans.setdefault(kind.replace("{}", match[2]), []).append(match.span(1))
        return spans

    return find


def _names(names: Sequence[str]) -> Find:
    """Find each of the names."""
    patterns = {name: _alone(_loose(name)) for name in names}

    def find(text: str) -> Spans:
        spans = {
            name: [match.span(1) for match in pattern.finditer(text)]
            for name, pattern in patterns.items()
        }
        return {name: places for name, places in spans.items() if places}

    return find


def _loose(text: str) -> str:
    """Allow spaces that a model inserts into a placeholder."""
    parts = re.findall(r"[^\W\d_]+|\d+|[^\w\s]|_+", text)
    return r"\s?".join(map(re.escape, parts))


def _alone(body: str) -> re.Pattern[str]:
    """Find it in any case, no part of a longer word, also where two have a sign in common."""
    return re.compile(rf"(?<![0-9A-Za-z])(?=({body})(?![0-9A-Za-z]))", re.IGNORECASE)
