# SPDX-License-Identifier: Apache-2.0
"""What is translated: sentences of text, or rows of random ids with the lengths of sentences.

Also when they are due in an open loop, where the sender does not wait for answers.
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
"""Sentences of the demo model's domains that it was not trained on, no two equal."""

# Lengths of sentences, in tokens.
_MEDIAN_TOKENS, _SIGMA, _SHORTEST, _LONGEST = 18, 0.5, 3, 80


@dataclass(frozen=True)
class Sentence:
    """One sentence of a workload.

    Attributes:
        rows: A row for each language or model it is wanted in.
        words: Of its text; 0 where there is none.
    """

    rows: tuple[Row, ...]
    words: int = 0


@dataclass(frozen=True)
class Workload:
    """Sentences, no two equal.

    Attributes:
        name: Where they come from.
        targets: The languages, in the order of each sentence's rows.
        sentences: In the order they are sent.
    """

    name: str
    targets: tuple[str, ...]
    sentences: tuple[Sentence, ...]

    def describe(self) -> dict[str, str]:
        """Say for the report what it is."""
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
    """Make a workload of lines: tokenized here, once, so that it is no contender's cost.

    Blank and repeated lines are left out. The setup tells the models that rows are spread over.
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
    """Make a workload of random ids that are text by the tokenizer, of log-normal length."""
    spoken = tokenizer.source(source)
    wanted = tokenizer.targets(targets or None)
    sentences = tuple(
        Sentence(_rows(setup, tokenizer.rules, ids, spoken, wanted))
        for ids in _random_pieces(count, seed, tokenizer.rules)
    )
    return Workload(f"random ids, seed {seed}", _codes(wanted), sentences)


def text_ids(rules: TokenRules) -> list[int]:
    """Give the ids that a text can be made of."""
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
    """Make one row for each language, or for each model where there are more of those."""
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
    """Put arrivals together: `size` at once, then a pause of `interval_s`."""
    return [number // size * interval_s for number in range(count)]


def paced(sessions: int, interval_s: float, count: int, seed: int) -> list[float]:
    """Merge the sentences of live captions: each session one in every interval.

    Each starts at a random moment of the interval.
    """
    phases = np.sort(np.random.default_rng(seed).uniform(0.0, interval_s, sessions))
    return [
        float(phases[number % sessions]) + number // sessions * interval_s
        for number in range(count)
    ]
