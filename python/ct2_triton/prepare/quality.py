# SPDX-License-Identifier: Apache-2.0
"""Writes `quality.json`: what a model's translations of good text are like, for the verdicts.

All of it is statistics of translations that the converted model makes of given sentences:

    words         share of the 200 most frequent words of a language among all of its words
    length        bounds of the logarithm of target length to source length
    least_score   least mean log-probability of a translation's tokens
    least_number  0 where translations do not write small numbers as words: all of them count

A bound is the quantile beyond which one translation in 1,000 lies, and further from the median by
a quarter of their distance.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any, NamedTuple

from ct2_triton.engine_library import load_core
from ct2_triton.errors import SettingError
from ct2_triton.prepare.text_translator import TextTranslator
from ct2_triton.prepared_model import write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ct2_triton.prepare.options import PrepareOptions
    from ct2_triton.prepared_model import Language, TokenRules

FILE_NAME = "quality.json"
_OPTION = "--quality-text"
_LEAST_LINES, _MOST_LINES = 100, 2000  # of a text
_MOST_CHARS = 500  # of a line: longer ones are no sentences
_MOST_TOKENS = 256  # of a translation
_WORDS, _LEAST = 200, 0.0001  # most frequent ones, and their least share
_FURTHER = 0.25  # of the distance to the median
_ROUNDING = 0.0001  # where all translations are alike
_GREATEST_SCORE = -0.001  # that the backend takes as a bound
_IN_WORDS = 0.005  # share of translations with numbers in words, up to which every number counts


class QualityText(NamedTuple):
    """Sentences, one a line, and the languages that they are translated from and into."""

    path: Path
    source: str | None
    targets: tuple[str | None, ...]

    @classmethod
    def parse(cls, entry: str) -> QualityText:
        """Read `FILE`, or `FROM:TO,TO,...=FILE`; the file must be there."""
        pair, equals, file = entry.rpartition("=")
        source, colon, targets = pair.partition(":")
        if equals and not (source and colon and all(targets.split(","))):
            raise SettingError(f"{_OPTION} {entry} is neither FILE nor FROM:TO,TO,...=FILE")
        try:
            Path(file).open("rb").close()
        except OSError as error:
            raise SettingError(f"{_OPTION}: cannot read {file}: {error.strerror}") from error
        return cls(Path(file), source or None, tuple(targets.split(",")) if equals else (None,))

    def lines(self) -> list[str]:
        """Read the first different lines, without white space around them."""
        try:
            text = self.path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingError(f"{_OPTION}: cannot read {self.path}: {error}") from error
        stripped = map(str.strip, text.splitlines())
        lines = list(dict.fromkeys(line for line in stripped if 0 < len(line) <= _MOST_CHARS))
        if len(lines) < _LEAST_LINES:
            raise SettingError(
                f"{_OPTION}: {self.path} has {len(lines)} different lines of text; give "
                f"{_LEAST_LINES} or more"
            )
        return lines[:_MOST_LINES]


@dataclass
class _Seen:
    """What was seen of translations into a language, and of text in it."""

    words: Counter[str] = field(default_factory=Counter)
    lengths: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    def statistics(self) -> dict[str, Any]:
        total = self.words.total()
        words = {
            word: round(count / total, 5)
            for word, count in self.words.most_common(_WORDS)
            if count > _LEAST * total and not word.isdigit()
        }
        found: dict[str, Any] = {"words": words}
        if len(self.lengths) > 1:
            found["length"] = list(_bounds(self.lengths))
            found["least_score"] = min(_bounds(self.scores)[0], _GREATEST_SCORE)
        return found


def add_quality(
    model: Path,
    tokenizer_folder: Path,
    rules: TokenRules,
    options: PrepareOptions,
    report: Callable[[str], None],
) -> dict[str, Any]:
    """Write the file where texts are given.

    What the manifest says of it is returned: an entry beside the others.
    """
    texts = [QualityText.parse(entry) for entry in options.quality_texts]
    if not texts:
        return {}
    statistics = measure(TextTranslator(model, tokenizer_folder, rules), rules, texts)
    write_json(model / FILE_NAME, statistics)
    report(f"verdicts: statistics of {', '.join(statistics['languages']) or 'the model'}")
    return {"quality": {"texts": [_record(text) for text in texts]}}


def measure(
    model: TextTranslator, rules: TokenRules, texts: Sequence[QualityText]
) -> dict[str, Any]:
    """Translate the texts, and give what `quality.json` holds."""
    try:
        core = load_core()
    except ImportError as error:
        raise SettingError(f"{_OPTION} needs the judge of the backend: {error}") from error
    strict, usual = core.Judge(json.dumps({"version": 1, "least_number": 0})), core.Judge()
    seen: dict[str, _Seen] = defaultdict(_Seen)
    in_words = total = 0
    for text in texts:
        source = rules.source_language(text.source)
        lines = text.lines()
        if source is not None:
            for line in lines:
                seen[source.code].words.update(core.quality_words(line))
        for target in map(rules.target_language, text.targets):
            code = target.code if target else ""
            for line, translation, score in _translated(model, lines, source, target):
                seen[code].words.update(core.quality_words(translation))
                seen[code].lengths.append(core.quality_length(line, translation))
                seen[code].scores.append(score)
                raised = (
                    "values" in one.judge(line, translation)["flags"] for one in (strict, usual)
                )
                in_words += [*raised] == [True, False]
                total += 1
    statistics: dict[str, Any] = {"version": 1}
    if in_words <= _IN_WORDS * total:
        statistics["least_number"] = 0
    statistics["languages"] = {code: one.statistics() for code, one in sorted(seen.items())}
    return statistics


def _translated(
    model: TextTranslator, lines: Sequence[str], source: Language | None, target: Language | None
) -> Iterator[tuple[str, str, float]]:
    """Yield each line with its translation and score, where there is one."""
    answers = model.translate(lines, source, [target] * len(lines), _MOST_TOKENS)
    for line, answer in zip(lines, answers, strict=True):
        if answer.text:
            yield line, answer.text, answer.score


def _bounds(values: Sequence[float]) -> tuple[float, float]:
    low, *_, high = quantiles(values, n=1000, method="inclusive")
    low, high = (bound + _FURTHER * (bound - median(values)) for bound in (low, high))
    return round(low - _ROUNDING, 4), round(high + _ROUNDING, 4)


def _record(text: QualityText) -> dict[str, Any]:
    digest = hashlib.sha256(text.path.read_bytes()).hexdigest()
    languages = {"source": text.source, "targets": text.targets}
    return {"file": text.path.name, "sha256": digest, **languages}
