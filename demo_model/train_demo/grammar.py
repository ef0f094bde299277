# SPDX-License-Identifier: Apache-2.0
"""The whole grammar: read from its files, checked, and drawn from."""

from __future__ import annotations

import random
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from train_demo.kinds import GrammarError, Kind, listed_kind
from train_demo.templates import Sentence, Template, read_template

FOLDER = Path(__file__).parents[1] / "grammar"
_SHARED = "shared.yaml"
_FEWEST_COMBINATIONS = 20
_UNWANTED = ("  ", "\u2026", "\u2013", "\u2014", "\u2019", '"', "\u00ab", "\u00a0")


@dataclass(frozen=True)
class Grammar:
    """Templates by domain (a file's name), and the listed kinds."""

    domains: dict[str, list[Template]]
    kinds: dict[str, Kind]

    @property
    def templates(self) -> list[Template]:
        """All templates, in the order of files and lines."""
        return [template for templates in self.domains.values() for template in templates]


def read_grammar(folder: Path = FOLDER, only: str | None = None) -> Grammar:
    """Read all files of the grammar, or `shared.yaml` and one domain.

    Args:
        folder: Where the files are.
        only: The domain, which is the name of its file without the ending; None for all.

    Raises:
        GrammarError: A file has a mistake, or there is no such domain.
    """
    files = [path for path in sorted(folder.glob("*.yaml")) if path.name != _SHARED]
    if only is not None:
        known = [path.stem for path in files]
        if only not in known:
            raise GrammarError(f"no domain is called {only!r}; there are {', '.join(known)}")
        files = [folder / f"{only}.yaml"]
    contents = {path.stem: _load(path) for path in files}
    kinds: dict[str, Kind] = {}
    for content in [_load(folder / _SHARED), *contents.values()]:
        for name, entries in (content.get("values") or {}).items():
            if name in kinds:
                raise GrammarError(f"the kind {name} is written twice")
            kinds[name] = listed_kind(name, entries)
    domains = {
        domain: [read_template(entry, kinds) for entry in content.get("templates") or []]
        for domain, content in contents.items()
    }
    grammar = Grammar(domains, kinds)
    _check_ids(grammar)
    return grammar


def check_samples(grammar: Grammar, count: int, seed: int = 0) -> list[str]:
    """Draws from each template and names what no text may have.

    Returns:
        A line for each mistake: odd spacing or characters, a text that Unicode NFKC changes, too
        few combinations, an English sentence with two translations, a length outside 3 to 40 words.
    """
    rng = random.Random(seed)
    mistakes = [
        f"{t.id}: only {t.combinations} combinations of values"
        for t in grammar.templates
        if t.combinations < _FEWEST_COMBINATIONS
    ]
    translations: dict[str, tuple[str, Sentence]] = {}
    for template in grammar.templates:
        for _ in range(count):
            sentence = template.draw(rng)
            mistakes += _mistakes(sentence)
            _, other = translations.setdefault(sentence.texts["eng"], (template.id, sentence))
            if other.texts != sentence.texts:
                mistakes.append(f"{template.id} and {other.template}: {sentence.texts['eng']}")
    return sorted(set(mistakes))


def _mistakes(sentence: Sentence) -> list[str]:
    found = []
    for language, text in sentence.texts.items():
        where = f"{sentence.template}, {language}: {text}"
        if unicodedata.normalize("NFKC", text) != text:
            found.append(f"{where}: not as NFKC writes it")
        found += [f"{where}: has {part!r}" for part in _UNWANTED if part in text]
        if text != text.strip() or text[:1].islower():
            found.append(f"{where}: begins or ends oddly")
        if language == "fra" and any(f"{c}{mark}" in text for mark in "!?;" for c in _LETTERS):
            found.append(f"{where}: no space before ! ? ;")
        if language == "spa" and (
            ("?" in text) != ("\u00bf" in text) or ("!" in text) != ("\u00a1" in text)
        ):
            found.append(f"{where}: marks are not in pairs")
    words = len(sentence.texts["eng"].split())
    if not 3 <= words <= 40:
        found.append(f"{sentence.template}: {words} words")
    return found


_LETTERS = "abcdefghijklmnopqrstuvwxyzéèêàç0123456789"


def _check_ids(grammar: Grammar) -> None:
    ids = [template.id for template in grammar.templates]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise GrammarError(f"template ids that occur twice: {twice}")


def _load(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise GrammarError(f"{path.name}: {error}") from error
    unknown = set(content) - {"values", "templates"}
    if unknown:
        raise GrammarError(f"{path.name}: unknown {sorted(unknown)}")
    return content
