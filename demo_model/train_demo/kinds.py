# SPDX-License-Identifier: Apache-2.0
"""Kinds of slot values: lists written in the grammar, and numbers, times and dates from CLDR."""

from __future__ import annotations

import datetime as dt
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from babel import Locale, dates, numbers, units

from train_demo.languages import CLDR, LANGUAGES, SOURCE

if TYPE_CHECKING:
    import random

Forms = Mapping[str, str]
"""A value in one language: the text of each form, and its `agr`."""

LEAP_YEAR = 2028
PLAIN_FORM, AGREEMENT = "nom", "agr"


class GrammarError(Exception):
    """A mistake in the grammar's files; the text says where."""


@dataclass(frozen=True)
class Value:
    """What fills a slot: a name that is unique within its kind, and its forms by language."""

    key: str
    forms: Mapping[str, Forms]


@dataclass(frozen=True)
class Kind:
    """Where a slot's values come from.

    Attributes:
        draw: Gives a value, chosen by the generator.
        count: How many different values there are.
        values: All of them, if they are written out in the grammar.
    """

    draw: Callable[[random.Random], Value]
    count: int
    values: tuple[Value, ...] = ()


def listed_kind(name: str, entries: list[dict[str, Any]]) -> Kind:
    """Read the values of a kind from the grammar.

    Args:
        name: The kind, for messages.
        entries: Each maps a language, or `all`, to a text or to its forms.

    Raises:
        GrammarError: A language is missing, values have other forms than the first, or two are
            equal.
    """
    values = tuple(_listed_value(name, entry) for entry in entries)
    for value in values:
        for language in LANGUAGES:
            given, first = set(value.forms[language]), set(values[0].forms[language])
            if given != first:
                raise GrammarError(
                    f"{name}, {value.key}, {language}: forms {sorted(given)}, the first value has "
                    f"{sorted(first)}"
                )
    if len({value.key for value in values}) != len(values):
        raise GrammarError(f"{name}: two values are the same in English")
    return Kind(lambda rng: rng.choice(values), len(values), values)


def number_kind(text: str) -> Kind | None:
    """Make a kind such as `int 2..90 step 5` or `time`; None if `text` is not one in code."""
    name, *arguments = text.split()
    if name == "time":
        hours = _range(text, arguments or ["5..23"])
        return _kind_of(range(hours.start * 60, hours.stop * 60, 5), _time_forms)
    if name == "date":
        days = [dt.date(LEAP_YEAR, month, day) for month in range(1, 13) for day in range(2, 29)]
        return _kind_of(days, _date_forms)
    if name == "score":
        goals = _range(text, arguments)
        return _kind_of([(a, b) for a in goals for b in goals], _score_forms)
    if name == "unit":
        unit = arguments[0] if arguments else ""
        return _kind_of(_range(text, arguments[1:]), lambda n, lang: _unit_forms(n, unit, lang))
    writers = {
        "int": _integer_forms,
        "year": lambda n, _: {PLAIN_FORM: str(n)},
        "decimal": _decimal_forms,
        "percent": lambda n, lang: _plain(numbers.format_percent(n / 100, locale=CLDR[lang])),
        "money": lambda n, lang: _plain(
            numbers.format_currency(
                n,
                "EUR",
                locale=CLDR[lang],
                currency_digits=False,
                format=_money_pattern(lang),
                group_separator=_is_grouped(n, lang),
            )
        ),
    }
    if name not in writers:
        return None
    numbers_drawn = _range(text, arguments)
    if name == "decimal":
        numbers_drawn = range(numbers_drawn.start * 10 + 1, numbers_drawn.stop * 10 - 10)
    return _kind_of(numbers_drawn, writers[name])


def _listed_value(kind: str, entry: dict[str, Any]) -> Value:
    unknown = set(entry) - {"all", *LANGUAGES}
    if unknown:
        raise GrammarError(f"{kind}: no language is called {sorted(unknown)}")
    forms = {}
    for language in LANGUAGES:
        given = entry.get(language, entry.get("all"))
        if given is None:
            raise GrammarError(f"{kind}, {entry}: {language} is missing")
        forms[language] = {PLAIN_FORM: given} if isinstance(given, str) else dict(given)
    return Value(forms[SOURCE][PLAIN_FORM], forms)


def _range(text: str, arguments: list[str]) -> range:
    try:
        first, last = arguments[0].split("..")
        step = int(arguments[2]) if arguments[1:] else 1
        return range(int(first), int(last) + 1, step)
    except (ValueError, IndexError) as error:
        raise GrammarError(f"{text}: expected A..B or A..B step S") from error


def _kind_of(items: Iterable[Hashable], forms: Callable[[Any, str], Forms]) -> Kind:
    choices = list(items)

    @cache
    def value(item: Hashable) -> Value:
        return Value(str(item), {language: forms(item, language) for language in LANGUAGES})

    return Kind(lambda rng: value(rng.choice(choices)), len(choices))


def _plain(text: str) -> Forms:
    return {PLAIN_FORM: unicodedata.normalize("NFKC", text)}


def _integer_forms(number: int, language: str) -> Forms:
    locale = Locale.parse(CLDR[language])
    grouped = _is_grouped(number, language)
    text = numbers.format_decimal(number, locale=locale, group_separator=grouped)
    return {**_plain(text), AGREEMENT: locale.plural_form(number)}


def _is_grouped(number: int, language: str) -> bool:
    """CLDR's minimumGroupingDigits, which Babel leaves out: 2 in Spanish and Portuguese."""
    return language not in ("spa", "por") or number >= 10_000


def _decimal_forms(tenths: int, language: str) -> Forms:
    return _plain(numbers.format_decimal(tenths / 10, format="0.0", locale=CLDR[language]))


def _unit_forms(number: int, unit: str, language: str) -> Forms:
    return _plain(units.format_unit(number, unit, length="long", locale=CLDR[language]))


def _money_pattern(language: str) -> str:
    """CLDR's pattern of the language, without the cents."""
    pattern = Locale.parse(CLDR[language]).currency_formats["standard"].pattern
    return pattern.replace(".00", "")


def _score_forms(goals: tuple[int, int], language: str) -> Forms:
    return {PLAIN_FORM: f"{goals[0]}{':' if language == 'deu' else '-'}{goals[1]}"}


def _time_forms(minutes: int, language: str) -> Forms:
    hour, minute = divmod(minutes, 60)
    separator = {"fra": " h ", "por": "h", "nld": "."}.get(language, ":")
    return {PLAIN_FORM: f"{hour}{separator}{minute:02d}"}


def _date_forms(date: dt.date, language: str) -> Forms:
    return _plain(dates.format_skeleton("MMMMd", date, locale=CLDR[language]))
