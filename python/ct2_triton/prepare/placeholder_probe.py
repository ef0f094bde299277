# SPDX-License-Identifier: Apache-2.0
"""Find the placeholders that a converted model copies, by translating sentences with each kind.

A kind that no sentence of the first round copies is not tried again. If the model copies no marker
well, name-like words of its own vocabulary are tried. Search is greedy; the rows, and the tokens of
a row, are limited.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ct2_triton.engine_library import EngineLibraryError
from ct2_triton.prepare.local_model import LocalModel
from ct2_triton.prepare.verification.probes import some_languages
from ct2_triton.terms.finding import Term, TermText
from ct2_triton.terms.placeholders import KINDS, mark, restore

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from ct2_triton.prepare.new_model import NewModel
    from ct2_triton.prepared_model import Language, TokenRules
    from ct2_triton.terms.placeholders import Kind

_SENTENCES = (
    "Please send the report to {} before noon.",
    "{} opens at nine.",
    "The price of {} has doubled since last year.",
    "{} said that {} will come tomorrow.",
    "Have you ever heard of {}?",
    "We met {} and {} at the station yesterday.",
)
_FIRST_ROUND = 2  # sentences
_NAME_SENTENCES = ("Have you met {}?", "{} has won the first prize.")
_TERM = "Quixolab"  # replaced by placeholders, so its text does not matter
_MOST_TARGETS = 3
_MOST_NAMES_TRIED = 48
_NAMES = 8  # names of one kind: the most terms of a text
_MOST_KINDS = 2  # each kind that a client tries costs a translation
_GOOD = 0.75  # share of rows from which no names are tried
_LEAST = 0.25  # share of rows from which a kind is used
_MOST_TOKENS = 48  # of a translation
_NAME = re.compile("\u2581[A-Z][a-z]{4,}")


@dataclass
class Copied:
    """How often each kind was copied.

    Attributes:
        shares: Share of the rows in which each placeholder occurs exactly once, by kind.
        rows: Rows that were translated.
        seconds: Time of all translations.
    """

    shares: dict[Kind, float] = field(default_factory=dict)
    rows: int = 0
    seconds: float = 0.0

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds to use, best first."""
        able = [kind for kind, share in self.shares.items() if share >= _LEAST]
        return tuple(sorted(able, key=lambda kind: -self.shares[kind])[:_MOST_KINDS])

    @property
    def record(self) -> dict[str, Any]:
        """The entry for the manifest."""
        shares = {_shown(kind): round(share, 2) for kind, share in self.shares.items() if share}
        return {"chosen": [_shown(kind) for kind in self.kinds] or ["none"], "shares": shares}

    def line(self) -> str:
        """Return a line for a report."""
        found = [f"{_shown(kind)} ({100 * self.shares[kind]:.0f} %)" for kind in self.kinds]
        took = f"{self.rows} rows in {self.seconds:.1f} s"
        return f"placeholders that it copies: {', then '.join(found) or 'none'}; {took}"


def add_placeholders(new: NewModel, rules: TokenRules) -> dict[str, Any]:
    """If wanted, try all kinds, and write those that the model copies into `languages.json`.

    Returns the entry for the manifest.
    """
    if not new.options.placeholders:
        return {}
    try:
        copied = probe_placeholders(new.weights, new.tokenizer, rules)
    except (ImportError, EngineLibraryError) as error:
        new.report(f"placeholders were not tried: {error}")
        return {}
    replace(rules, placeholders=copied.kinds).write(new.tokenizer)
    new.report(copied.line())
    return {"placeholders": copied.record}


def probe_placeholders(folder: Path, tokenizer_folder: Path, rules: TokenRules) -> Copied:
    """Translate sentences with placeholders of every kind."""
    begin = time.monotonic()
    model = _Model(folder, tokenizer_folder, rules)
    copied = Copied(_try_each(model, KINDS))
    if max(copied.shares.values()) < _GOOD and (names := _copied_names(model)):
        copied.shares |= _try_each(model, [names])
    copied.rows, copied.seconds = model.rows, time.monotonic() - begin
    return copied


def _try_each(model: _Model, kinds: Sequence[Kind]) -> dict[Kind, float]:
    """Return the share of each kind; 0 if the first round copies none."""
    texts = [_text(sentence) for sentence in _SENTENCES]
    first = model.survivors((text, kind) for kind in kinds for text in texts[:_FIRST_ROUND])
    able = [kind for kind in kinds if any(one for tried, one in first if tried == kind)]
    then = model.survivors((text, kind) for kind in able for text in texts[_FIRST_ROUND:])
    shares = {}
    for kind in kinds:
        found = [survived for tried, survived in (*first, *then) if tried == kind]
        shares[kind] = sum(found) / len(found) if found else 0.0
    return shares


def _copied_names(model: _Model) -> tuple[str, ...]:
    """Find the words of the vocabulary that are copied most often, best first."""
    names = [token[1:] for token in model.shared_tokens if _NAME.fullmatch(token)]
    step = max(1, len(names) // _MOST_NAMES_TRIED)
    counts = {(name,): 0 for name in names[::step][:_MOST_NAMES_TRIED]}
    for sentence in _NAME_SENTENCES:
        text = _text(sentence)
        for kind, survived in model.survivors([(text, kind) for kind in counts]):
            counts[kind] += survived
        counts = {kind: count for kind, count in counts.items() if count}
    best = sorted(counts, key=lambda kind: -counts[kind])[:_NAMES]
    return tuple(kind[0] for kind in best)


def _text(sentence: str) -> TermText:
    """Make a text with a term for each `{}` in the sentence."""
    parts = sentence.split("{}")
    terms: list[Term] = []
    text = parts[0]
    for part in parts[1:]:
        terms.append(Term(len(text), len(text) + len(_TERM), _TERM))
        text += _TERM + part
    return TermText(text, tuple(terms))


class _Model:
    """Translates with the converted model, like a client."""

    def __init__(self, folder: Path, tokenizer_folder: Path, rules: TokenRules) -> None:
        self._served = LocalModel(folder, tokenizer_folder, rules)
        sources, targets = (some_languages(rules, side) for side in ("source", "target"))
        self._source = next(iter(sources), None)
        others = [one for one in targets if one is not self._source][:_MOST_TARGETS]
        self._targets: Sequence[Language | None] = others or targets[:1] or [None]
        self.rows = 0

    @property
    def shared_tokens(self) -> list[str]:
        """Tokens that occur both in sources and in translations."""
        target = set(self._served.tokens.target)
        return [token for token in self._served.tokens.source if token in target]

    def survivors(self, marks: Iterable[tuple[TermText, Kind]]) -> list[tuple[Any, bool]]:
        """Translate texts with placeholders into each language; return which were copied.

        They are not if a text has more terms than the kind has names.
        """
        asked = [(text, kind, mark(text, kind), t) for text, kind in marks for t in self._targets]
        sent = [(marked.text, target) for _, _, marked, target in asked if marked is not None]
        texts, targets = [text for text, _ in sent], [target for _, target in sent]
        answers = self._served.translate(texts, self._source, targets, _MOST_TOKENS)
        self.rows += len(sent)
        return [
            (kind, marked is not None and restore(text, marked, next(answers).text) is not None)
            for text, kind, marked, _ in asked
        ]


def _shown(kind: Kind) -> str:
    return kind if isinstance(kind, str) else ", ".join(kind)
