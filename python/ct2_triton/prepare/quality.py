# SPDX-License-Identifier: Apache-2.0
"""Write `quality.json`: statistics of a model's translations of good text, for the verdicts.

They are computed from the converted model's translations of given sentences:

    words         share of each of the 200 most frequent words among all words of a language
    length        bounds of the logarithm of target length to source length
    least_score   least mean log-probability of a translation's tokens
    copied        bound on the share of copied source words, if it is above 0.7
    uncovered     bound on the longest run of source words that no token is aligned to
    invented      bound on the longest run of words without a source word of their own
    least_number  0 if translations do not write small numbers as words: all numbers count

All except `words` and `least_number` are per pair of languages. Lines are split into sentences as
in the server. A run is divided by the square root of 2 + all words of its text; its bound is for
decode loops and the attention heads of the settings. A bound is the quantile that 1 translation in
1,000 exceeds (of fewer, the most extreme one), moved away from the median by a quarter of their
distance.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any, NamedTuple

from ct2_triton.engine_library import EngineLibraryError
from ct2_triton.errors import SettingError
from ct2_triton.prepare.local_model import LocalModel
from ct2_triton.prepare.progress import with_progress
from ct2_triton.prepared_model import write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType

    from ct2_triton.prepare.local_model import Translated
    from ct2_triton.prepare.new_model import NewModel
    from ct2_triton.prepare.triton_config import Parameter
    from ct2_triton.prepared_model import TokenRules

FILE_NAME = "quality.json"
_OPTION = "--quality-text"
_LEAST_LINES, _MOST_LINES = 100, 2000  # lines of a text
_MOST_CHARS = 500  # of a line: longer ones are not sentences
_MOST_TOKENS = 256  # of a translation
_WORDS, _LEAST = 200, 0.0001  # number of frequent words, and their least share
_FURTHER = 0.25  # of the distance to the median
_ROUNDING = 0.0001  # margin if all translations are alike
_GREATEST_SCORE = -0.001  # largest bound that the backend accepts
_COPIED = 0.7  # the backend's default bound on the share of copied words
_LEAST_GAP = 0.6  # of a bound: one word without a counterpart is no gap, in a text of any length
_OF_GPUS = re.compile("b?float16")
_IN_WORDS = 0.005  # share of translations with numbers in words up to which all numbers count


class QualityText(NamedTuple):
    """A file with one sentence per line, and its source and target languages."""

    path: Path
    source: str | None
    targets: tuple[str | None, ...]

    @classmethod
    def parse(cls, entry: str) -> QualityText:
        """Read `FILE` or `FROM:TO,TO,...=FILE`; the file must exist."""
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
        """Return the first distinct lines, stripped."""
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
    """Statistics of a target language: words, and translations by source language."""

    words: Counter[str] = field(default_factory=Counter)
    pairs: dict[str, list[Translated]] = field(default_factory=lambda: defaultdict(list))

    def statistics(self, core: ModuleType) -> dict[str, Any]:
        total = self.words.total()
        words = {
            word: round(count / total, 5)
            for word, count in self.words.most_common(_WORDS)
            if count > _LEAST * total and not word.isdigit()
        }
        found: dict[str, Any] = {"words": words}
        pairs = {source: _bounds_of(all_, words, core) for source, all_ in self.pairs.items()}
        if pairs:
            found["from"] = pairs
        return found


def _bounds_of(
    all_: Sequence[Translated], words: Mapping[str, float], core: ModuleType
) -> dict[str, Any]:
    """Return the bounds of translations between two languages with these frequent words."""
    if len(all_) < 2:
        return {}
    copied = _bounds([core.quality_copied(one.source, one.text, words) for one in all_])[1]
    found: dict[str, Any] = {
        "length": list(_bounds([core.quality_length(one.source, one.text) for one in all_])),
        "least_score": min(_bounds([one.score for one in all_])[0], _GREATEST_SCORE),
    }
    if copied > _COPIED:
        found["copied"] = copied
    if all(one.gaps for one in all_):
        for name, values in zip(
            ("uncovered", "invented"),
            zip(*(one.gaps or () for one in all_), strict=True),
            strict=True,
        ):
            found[name] = max(_bounds(values)[1], _LEAST_GAP)
    return found


def add_quality(new: NewModel, rules: TokenRules, settings: Sequence[Parameter]) -> dict[str, Any]:
    """Write the file if texts are given. `settings`: of the model's `config.pbtxt`.

    What the manifest says of it is returned: an entry beside the others.
    """
    texts = [QualityText.parse(entry) for entry in new.options.quality_texts]
    if not texts:
        return {}
    settings, replaced = _on_a_cpu(settings)
    try:
        served = LocalModel(new.weights, new.tokenizer, rules, settings)
    except (ImportError, EngineLibraryError) as error:
        raise SettingError(f"{_OPTION} needs the judge of the backend: {error}") from error
    statistics = measure(served, rules, texts, new.report)
    write_json(new.weights / FILE_NAME, statistics)
    new.report(
        f"verdicts: statistics of {', '.join(statistics['languages']) or 'the model'}{replaced}"
    )
    return {"quality": {"texts": [_record(text) for text in texts]}}


def _on_a_cpu(settings: Sequence[Parameter]) -> tuple[list[Parameter], str]:
    """Replace a compute type that only GPUs have, and return words that say so."""
    kept, said = [], ""
    for one in settings:
        value = _OF_GPUS.sub("float32", one.value) if one.name == "compute_type" else one.value
        kept.append(replace(one, value=value))
        if value != one.value:
            said = f", measured in {value}, since no CPU computes in {one.value}"
    return kept, said


def measure(
    model: LocalModel,
    rules: TokenRules,
    texts: Sequence[QualityText],
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Translate the texts, and return the content of `quality.json`."""
    core = model.core
    strict, usual = core.Judge(json.dumps({"version": 1, "least_number": 0})), core.Judge()
    seen: dict[str, _Seen] = defaultdict(_Seen)
    for text in texts:
        source = rules.source_language(text.source)
        code = source.code if source else ""
        lines = [one for line in text.lines() for one in _sentences(core, line, code)]
        for line in lines if source is not None else ():
            seen[code].words.update(core.quality_words(line))
        for target in map(rules.target_language, text.targets):
            name = target.code if target else ""
            into, wanted = seen[name], [target] * len(lines)
            answers = model.translate(lines, source, wanted, _MOST_TOKENS, quality=True)
            step = f"verdicts{', into ' if name else ''}{name}"
            for one in with_progress(answers, len(lines), step, report):
                if one.text:
                    into.words.update(core.quality_words(one.text))
                    into.pairs[code].append(one)
    every = [one for into in seen.values() for all_ in into.pairs.values() for one in all_]
    in_words = sum(
        ["values" in judge.judge(one.source, one.text)["flags"] for judge in (strict, usual)]
        == [True, False]
        for one in every
    )
    statistics: dict[str, Any] = {"version": 1}
    if in_words <= _IN_WORDS * len(every):
        statistics["least_number"] = 0
    statistics["languages"] = {code: one.statistics(core) for code, one in sorted(seen.items())}
    return statistics


def _sentences(core: ModuleType, line: str, language: str) -> list[str]:
    """Split a line into sentences as in the server."""
    text = line.encode()
    return [text[begin:end].decode() for begin, end in core.segment(text, language)]


def _bounds(values: Sequence[float]) -> tuple[float, float]:
    low, *_, high = quantiles(values, n=1000, method="inclusive")
    low, high = (bound + _FURTHER * (bound - median(values)) for bound in (low, high))
    return round(low - _ROUNDING, 4), round(high + _ROUNDING, 4)


def _record(text: QualityText) -> dict[str, Any]:
    digest = hashlib.sha256(text.path.read_bytes()).hexdigest()
    languages = {"source": text.source, "targets": text.targets}
    return {"file": text.path.name, "sha256": digest, **languages}
