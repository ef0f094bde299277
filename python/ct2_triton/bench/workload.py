# SPDX-License-Identifier: Apache-2.0
"""The workload: sentences of text, or rows of random IDs with the lengths of sentences.

Also the arrival times of an open loop, where the sender does not wait for answers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.setup import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ct2_triton.bench.setup import Setup
    from ct2_triton.client.tokenization import Tokenizer
    from ct2_triton.prepared_model import Language, TokenRules

SENTENCES = Path(__file__).with_name("sentences.txt")
"""Distinct sentences of the demo model's domains that are not in its training data."""

# Lengths of sentences, in tokens.
_MEDIAN_TOKENS, _SIGMA, _SHORTEST, _LONGEST = 18, 0.5, 3, 80


@dataclass(frozen=True)
class Sentence:
    """One sentence of a workload.

    Attributes:
        rows: A row for each target language or model.
        words: Number of words of its text; 0 for random IDs.
    """

    rows: tuple[Row, ...]
    words: int = 0


@dataclass(frozen=True)
class Workload:
    """Distinct sentences.

    Attributes:
        name: Their origin.
        targets: The target languages, in the order of each sentence's rows.
        sentences: The sentences, in the order in which they are sent.
    """

    name: str
    targets: tuple[str, ...]
    sentences: tuple[Sentence, ...]

    def describe(self) -> dict[str, str]:
        """Return a description for the report."""
        lengths = [len(sentence.rows[0].input_ids) for sentence in self.sentences]
        return {
            "sentences": f"{len(self.sentences)} of {self.name}, no two equal",
            "source tokens a sentence": f"median {np.median(lengths):g}, {min(lengths)} to "
            f"{max(lengths)}, language and end tokens included",
            "languages": ", ".join(self.targets) or "none",
        }


def text_workload(
    lines: Iterable[str], name: str, setup: Setup, tokenizer: Tokenizer, source: str | None,
    targets: Sequence[str],
) -> Workload:  # fmt: skip
    """Make a workload of lines, which are tokenized here, at no contender's cost.

    Blank and repeated lines are skipped. Rows are distributed over the models of the setup.
    """
    spoken = tokenizer.source(source)
    wanted = tokenizer.targets(targets or None)
    found: dict[tuple[int, ...], Sentence] = {}
    for line in lines:
        encoded = tokenizer.encode(line)
        if not encoded.is_empty and encoded.ids not in found:
            rows = _rows(setup, tokenizer.rules, encoded.ids, spoken, wanted)
            found[encoded.ids] = Sentence(rows, len(line.split()))
    if not found:
        raise BenchError(f"there is no sentence in {name}")
    return Workload(name, _codes(wanted), tuple(found.values()))


def random_workload(
    count: int, seed: int, setup: Setup, tokenizer: Tokenizer, source: str | None,
    targets: Sequence[str],
) -> Workload:  # fmt: skip
    """Make a workload of random IDs that the tokenizer uses in text, of log-normal length."""
    spoken = tokenizer.source(source)
    wanted = tokenizer.targets(targets or None)
    sentences = tuple(
        Sentence(_rows(setup, tokenizer.rules, ids, spoken, wanted))
        for ids in _random_pieces(count, seed, tokenizer.rules)
    )
    return Workload(f"random ids, seed {seed}", _codes(wanted), sentences)


def text_ids(rules: TokenRules) -> list[int]:
    """Return the IDs that can occur in a text."""
    special = {*rules.special_ids, *rules.end_ids, *rules.duplicate_ids, rules.unk_id, rules.pad_id}
    known = min(rules.tokenizer_size, rules.vocabulary_size)
    return [i for i in range(known) if i not in special]


def _random_pieces(count: int, seed: int, rules: TokenRules) -> Iterator[tuple[int, ...]]:
    rng = np.random.default_rng(seed)
    choosable = np.array(text_ids(rules))
    seen: set[tuple[int, ...]] = set()
    while len(seen) < count:
        length = round(rng.lognormal(math.log(_MEDIAN_TOKENS), _SIGMA))
        drawn = rng.choice(choosable, min(_LONGEST, max(_SHORTEST, length)))
        ids = tuple(int(i) for i in drawn)
        if ids not in seen:
            seen.add(ids)
            yield ids


def _rows(
    setup: Setup,
    rules: TokenRules,
    ids: Sequence[int],
    source: Language | None,
    targets: Sequence[Language | None],
) -> tuple[Row, ...]:
    """Make one row for each language, or for each model if there are more models."""
    width = max(len(targets), len(setup.models))
    return tuple(
        Row(
            tuple(rules.input_ids(ids, source, targets[i % len(targets)])),
            tuple(rules.target_prefix(targets[i % len(targets)])),
            setup.models[i % len(setup.models)],
        )
        for i in range(width)
    )


def _codes(languages: Sequence[Language | None]) -> tuple[str, ...]:
    return tuple(language.code for language in languages if language is not None)


def poisson(rate_per_s: float, count: int, seed: int) -> list[float]:
    """Draw arrival times of a Poisson process, in seconds from the start."""
    gaps = np.random.default_rng(seed).exponential(1.0 / rate_per_s, count)
    return [float(time) for time in np.cumsum(gaps)]


def bursts(size: int, interval_s: float, count: int) -> list[float]:
    """Return arrival times of bursts: `size` at once, every `interval_s` seconds."""
    return [number // size * interval_s for number in range(count)]


def paced(sessions: int, interval_s: float, count: int, seed: int) -> list[float]:
    """Return arrival times of sessions that each send one sentence per interval.

    Each session starts at a random time in the interval.
    """
    phases = np.sort(np.random.default_rng(seed).uniform(0.0, interval_s, sessions))
    return [
        float(phases[number % sessions]) + number // sessions * interval_s
        for number in range(count)
    ]
