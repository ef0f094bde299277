# SPDX-License-Identifier: Apache-2.0
"""Draw clean sentences with their translations from the grammar of the demo model.

Writes two files: the English sentences, one a line, and JSON lines `{"source", "target",
"translation"}`, one for each sentence and target language. They are the input of `held_out.py`.
Of the grammar's syntax it reads what `demo_model/grammar/README.md` describes.
"""

import argparse
import datetime as dt
import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from babel import dates, numbers, units

LOCALES = {
    "eng": "en_GB",
    "deu": "de_DE",
    "fra": "fr_FR",
    "spa": "es_ES",
    "ita": "it_IT",
    "por": "pt_PT",
    "nld": "nl_NL",
}
TIMES = {"fra": "{} h {:02}", "por": "{}h{:02}", "nld": "{}.{:02}"}
VARIABLE = re.compile(r"\{(\^?)(\w+)(?:\.(\w+))?(?:\?([^}]*))?\}")
Forms = dict[str, dict[str, str]]  # language, form: text


def value_forms(value: Mapping[str, Any]) -> Forms:
    """All forms of a value that a grammar file lists."""
    forms: Forms = {}
    for language in LOCALES:
        text = value.get(language, value.get("all"))
        forms[language] = (
            {k: str(v) for k, v in text.items()} if isinstance(text, dict) else {"nom": str(text)}
        )
    return forms


def number_text(kind: str, name: str, number: float, language: str) -> str:
    """A number of `kind` as `language` writes it."""
    locale = LOCALES[language]
    if kind == "int":
        return numbers.format_decimal(number, locale=locale)
    if kind == "decimal":
        return numbers.format_decimal(number + 0.5, format="0.0", locale=locale)
    if kind == "percent":
        return numbers.format_percent(number / 100, locale=locale)
    if kind == "unit":
        return str(units.format_unit(number, name, locale=locale))
    if kind == "money":
        text = numbers.format_currency(number, "EUR", locale=locale)
        return re.sub(r"[.,]00", "", text)
    return str(int(number))


def draw_number(rng: random.Random, kind: str) -> Forms:
    """A number, time, date or score of one of the kinds that are not lists."""
    name, *rest = kind.split()
    unit = rest.pop(0) if name == "unit" else ""
    low, high = (int(x) for x in rest[0].split("..")) if rest and ".." in rest[0] else (5, 23)
    number = rng.randrange(low, high + 1, int(rest[2]) if len(rest) > 2 else 1)
    minute, other = rng.randrange(60), rng.randint(low, high)
    day = dt.date(2031, rng.randint(1, 12), rng.randint(2, 28)) if name == "date" else None
    forms: Forms = {}
    for language, locale in LOCALES.items():
        if name == "time":
            text = TIMES.get(language, "{}:{:02}").format(number, minute)
        elif name == "score":
            text = f"{number}{':' if language == 'deu' else '-'}{other}"
        elif day is not None:
            text = dates.format_skeleton("MMMMd", day, locale=locale)
        else:
            text = number_text(name, unit, number, language)
        text = re.sub(r"\s+", " ", text)
        one = number == 1 or (number == 0 and language in {"fra", "por"})
        forms[language] = {"nom": text, "agr": "one" if one else "other"}
    return forms


def fill(template: str, language: str, chosen: Mapping[str, Forms]) -> str:
    """`template` with its variables replaced."""

    def replace(match: re.Match[str]) -> str:
        capital, name, form, choices = match.groups()
        forms = chosen[name][language]
        if choices is None:
            text = forms[form or "nom"]
        else:
            texts = dict(choice.split(":", 1) for choice in choices.split("|"))
            text = texts.get(forms.get("agr", "*"), texts.get("*", ""))
        return text[:1].upper() + text[1:] if capital else text

    return VARIABLE.sub(replace, template)


def read_grammar(folder: Path) -> tuple[list[dict[str, Any]], dict[str, list[Forms]]]:
    """Templates and values of all files in `folder`."""
    templates: list[dict[str, Any]] = []
    values: dict[str, list[Forms]] = {}
    for path in sorted(folder.glob("*.yaml")):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        templates += content.get("templates", [])
        for kind, listed in content.get("values", {}).items():
            values[kind] = [value_forms(value) for value in listed]
    return templates, values


def draw(
    rng: random.Random, template: Mapping[str, Any], values: Mapping[str, list[Forms]]
) -> dict[str, str]:
    """One sentence of a template, in every language."""
    slots = template["slots"]
    if isinstance(slots, list):
        slots = {slot: slot for slot in slots}
    chosen: dict[str, Forms] = {}
    for name, kind in slots.items():
        if kind in values:
            chosen[name] = rng.choice([v for v in values[kind] if v not in chosen.values()])
        else:
            chosen[name] = draw_number(rng, kind)
    return {language: fill(template[language], language, chosen) for language in LOCALES}


def main() -> None:
    """Write the sentences and the pairs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--grammar", type=Path, default=Path("demo_model/grammar"), help="folder of the grammar"
    )
    parser.add_argument(
        "--sentences", type=Path, required=True, help="file of English sentences to write"
    )
    parser.add_argument("--pairs", type=Path, required=True, help="JSON lines of pairs to write")
    parser.add_argument("--count", type=int, default=600, help="number of sentences")
    parser.add_argument("--seed", type=int, default=36)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    templates, values = read_grammar(args.grammar)
    drawn: dict[str, dict[str, str]] = {}
    while len(drawn) < args.count:
        texts = draw(rng, rng.choice(templates), values)
        drawn.setdefault(texts["eng"], texts)
    args.sentences.write_text("".join(f"{source}\n" for source in drawn), encoding="utf-8")
    with args.pairs.open("w", encoding="utf-8") as file:
        for source, texts in drawn.items():
            for target in LOCALES:
                if target != "eng":
                    row = {"source": source, "target": target, "translation": texts[target]}
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
