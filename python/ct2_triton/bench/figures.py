# SPDX-License-Identifier: Apache-2.0
"""Compute rates, percentiles, ratios and spread from samples."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ct2_triton.bench.record import Round, Sample, ScenarioRecord

_MIB = 2**20


@dataclass(frozen=True)
class Spread:
    """One figure over the rounds of a run."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the median, minimum and maximum of at least one value."""
        return cls(statistics.median(values), min(values), max(values))


def percentile(values: Iterable[float], share: float) -> float:
    """Return the smallest value that at least a share of values do not exceed (nearest rank)."""
    return float(np.percentile(list(values), 100 * share, method="inverted_cdf"))


def latencies_s(samples: Iterable[Sample]) -> list[float]:
    """Return the latency of each row that was timed individually, in seconds."""
    return [sample.done_s - sample.due_s for sample in samples if sample.done_s is not None]


def last_of_sentence_s(samples: Iterable[Sample]) -> list[float]:
    """Give, for each sentence, the seconds until its last language was there."""
    due: dict[int, float] = {}
    done: defaultdict[int, float] = defaultdict(float)
    for sample in samples:
        if sample.done_s is not None:
            due[sample.sentence] = sample.due_s
            done[sample.sentence] = max(done[sample.sentence], sample.done_s)
    return [done[sentence] - due[sentence] for sentence in due]


def figures(round_: Round) -> dict[str, float]:
    """Compute the figures of one round; benchmarks/README.md says what each means."""
    samples = round_.samples
    source_tokens = sum(sample.source_tokens for sample in samples)
    generated_tokens = sum(sample.generated_tokens for sample in samples)
    values = {
        "sentences/s": len({sample.sentence for sample in samples}) / round_.wall_s,
        "source tokens/s": source_tokens / round_.wall_s,
        "generated tokens/s": generated_tokens / round_.wall_s,
        "words/s": round_.words / round_.wall_s,
        "CPU s/1000 source tokens": 1000 * round_.cpu_s / source_tokens,
        "client CPU s/1000 source tokens": 1000 * round_.client_cpu_s / source_tokens,
        "other CPU": round_.other_cpu_s / round_.wall_s,
        "RSS MiB": round_.rss_bytes / _MIB,
        "PSS MiB": round_.pss_bytes / _MIB,
    }
    return values | _latencies(samples) | _server_figures(round_)


def over_rounds(rounds: Sequence[Round]) -> dict[str, Spread]:
    """Return each figure's median, minimum and maximum over rounds of one contender."""
    each = [figures(round_) for round_ in rounds]
    return {name: Spread.of([values[name] for values in each]) for name in each[0]}


def ratios(scenario: ScenarioRecord, contender: str, baseline: str, figure: str) -> Spread | None:
    """Divide a figure by the baseline's, round by round; None if either is missing."""
    upper = [figures(round_).get(figure) for round_ in scenario.of(contender)]
    lower = [figures(round_).get(figure) for round_ in scenario.of(baseline)]
    pairs = [(a, b) for a, b in zip(upper, lower, strict=False) if a is not None and b]
    return Spread.of([a / b for a, b in pairs]) if pairs else None


def _latencies(samples: Sequence[Sample]) -> dict[str, float]:
    """Return latencies in milliseconds; empty if rows were not timed individually."""
    values: dict[str, float] = {}
    if rows := latencies_s(samples):
        values |= {f"p{p} ms": 1000 * percentile(rows, p / 100) for p in (50, 95, 99)}
    if rows and any(sample.row for sample in samples):
        last = last_of_sentence_s(samples)
        values |= {f"last p{p} ms": 1000 * percentile(last, p / 100) for p in (50, 95, 99)}
    return values


def _server_figures(round_: Round) -> dict[str, float]:
    counts = round_.counts
    if counts is None or not counts.batches or not counts.requests:
        return {}
    values = {
        "mean batch": counts.rows / counts.batches,
        "queue ms": counts.queue_ns / counts.requests / 1e6,
        "compute ms": counts.compute_ns / counts.requests / 1e6,
    }
    if counts.first_tokens:
        values["first token ms"] = 1000 * counts.first_token_s / counts.first_tokens
    if counts.gaps:
        values["longest gap ms"] = 1000 * counts.gap_s / counts.gaps
    return values
