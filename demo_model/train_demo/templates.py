# SPDX-License-Identifier: Apache-2.0
"""Sentence templates with slots: how they are written, checked and filled."""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from train_demo.kinds import AGREEMENT, PLAIN_FORM, Forms, GrammarError, Kind, Value, number_kind
from train_demo.languages import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Mapping

_SLOT = re.compile(r"\{(\^?)([a-z_0-9]+)(?:\.([a-z_0-9]+)|\?([^{}]*))?\}")


@dataclass(frozen=True)
class Slot:
    """A place in a text: the form of a variable's value, or a choice by its `agr`."""

    variable: str
    form: str = PLAIN_FORM
    choices: Mapping[str, str] | None = None
    capital: bool = False

    def fill(self, forms: Forms) -> str:
        """Return the text for a value's forms in this language."""
        if self.choices is None:
            text = forms[self.form]
        else:
            agreement = forms[AGREEMENT]
            text = self.choices[agreement if agreement in self.choices else "*"]
        return text[:1].upper() + text[1:] if self.capital else text


Part = str | Slot


@dataclass(frozen=True)
class Sentence:
    """One filled template.

    Attributes:
        template: Its id.
        key: Names the combination of values; unique within the template.
        texts: By language.
        places: By language, the places of slot values in the text: variable, first character, end
            (exclusive).
    """

    template: str
    key: str
    texts: Mapping[str, str]
    places: Mapping[str, tuple[tuple[str, int, int], ...]]


@dataclass(frozen=True)
class Template:
    """A sentence in all languages, with the kind of each variable."""

    id: str
    kinds: Mapping[str, Kind]
    names: Mapping[str, str]  # of the kinds, by variable
    parts: Mapping[str, tuple[Part, ...]]

    @property
    def combinations(self) -> int:
        """How many fillings there are, equal values of two variables included."""
        return math.prod(kind.count for kind in self.kinds.values())

    def draw(self, rng: random.Random) -> Sentence:
        """Fill the slots by chance; variables of one kind get different values."""
        values: dict[str, Value] = {}
        for variable, kind in self.kinds.items():
            taken = {values[v].key for v in values if self.names[v] == self.names[variable]}
            value = kind.draw(rng)
            while value.key in taken:
                value = kind.draw(rng)
            values[variable] = value
        return self.fill(values)

    def fill(self, values: Mapping[str, Value]) -> Sentence:
        """Write the sentence in every language."""
        texts, places = {}, {}
        for language, parts in self.parts.items():
            text, found = "", []
            for part in parts:
                start = len(text)
                if isinstance(part, str):
                    text += part
                    continue
                text += part.fill(values[part.variable].forms[language])
                if part.choices is None:
                    found.append((part.variable, start, len(text)))
            texts[language], places[language] = text, tuple(found)
        key = "|".join(value.key for value in values.values())
        return Sentence(self.id, key, texts, places)


def read_template(entry: Mapping[str, Any], listed: Mapping[str, Kind]) -> Template:
    """Read one template of a grammar file.

    Args:
        entry: `id`, `slots`, and a text for each language.
        listed: The kinds that are written out, by name.

    Raises:
        GrammarError: A kind, form or variable does not exist, or a language lacks one.
    """
    name = str(entry.get("id"))
    unknown = set(entry) - {"id", "slots", *LANGUAGES}
    missing = {"id", *LANGUAGES} - set(entry)
    if unknown or missing:
        raise GrammarError(f"{name}: unknown {sorted(unknown)}, missing {sorted(missing)}")
    slots = entry.get("slots") or {}
    names = dict(slots) if isinstance(slots, dict) else {slot: slot for slot in slots}
    kinds = {variable: _kind(name, kind, listed) for variable, kind in names.items()}
    for variable, kind in names.items():
        if kinds[variable].count < list(names.values()).count(kind):
            raise GrammarError(f"{name}: more slots of the kind {kind!r} than it has values")
    parts = {language: _parse(name, language, entry[language]) for language in LANGUAGES}
    template = Template(name, kinds, names, parts)
    for language in LANGUAGES:
        _check_variables(template, language)
        _check_forms(template, language)
    return template


def _kind(template: str, text: str, listed: Mapping[str, Kind]) -> Kind:
    kind = listed.get(text) or number_kind(text)
    if kind is None:
        raise GrammarError(f"{template}: no kind is called {text!r}")
    return kind


def _parse(template: str, language: str, text: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    end = 0
    for match in _SLOT.finditer(text):
        parts.append(text[end : match.start()])
        capital, variable, form, choices = match.groups()
        if choices is None:
            parts.append(Slot(variable, form or PLAIN_FORM, capital=bool(capital)))
        else:
            pairs = [choice.partition(":") for choice in choices.split("|")]
            if not all(colon for _, colon, _ in pairs):
                raise GrammarError(f"{template}, {language}: a choice without a colon: {text}")
            chosen = {agreement: words for agreement, _, words in pairs}
            parts.append(Slot(variable, choices=chosen, capital=bool(capital)))
        end = match.end()
    parts.append(text[end:])
    if any(brace in part for part in parts if isinstance(part, str) for brace in "{}"):
        raise GrammarError(f"{template}, {language}: a brace that is no slot: {text}")
    return tuple(part for part in parts if part != "")


def _check_variables(template: Template, language: str) -> None:
    used = {part.variable for part in template.parts[language] if isinstance(part, Slot)}
    if used != set(template.kinds):
        raise GrammarError(
            f"{template.id}, {language}: uses {sorted(used)}, slots are {sorted(template.kinds)}"
        )


def _check_forms(template: Template, language: str) -> None:
    for part in template.parts[language]:
        if not isinstance(part, Slot):
            continue
        kind = template.kinds[part.variable]
        for value in kind.values or [kind.draw(random.Random(i)) for i in range(50)]:
            try:
                part.fill(value.forms[language])
            except KeyError as error:
                raise GrammarError(
                    f"{template.id}, {language}: {part.variable} = {value.key} has no {error}; "
                    f"it has {value.forms[language]}"
                ) from error
