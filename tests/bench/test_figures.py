# SPDX-License-Identifier: Apache-2.0
"""From samples to figures, on samples whose figures can be worked out by hand."""

from __future__ import annotations

import pytest

from bench.samples import round_of, run_of, sample
from ct2_triton.bench.contenders import ServerCounts
from ct2_triton.bench.record import (
    Spread,
    figures,
    last_of_sentence_s,
    over_rounds,
    percentile,
    ratios,
)


@pytest.mark.parametrize(
    ("share", "expected"), [(0.01, 1), (0.5, 10), (0.95, 19), (0.951, 20), (0.99, 20), (1.0, 20)]
)
def test_a_percentile_is_the_nearest_rank(share: float, expected: int) -> None:
    assert percentile(range(20, 0, -1), share) == expected


def test_the_percentile_of_one_value_is_that_value() -> None:
    assert percentile([3.5], 0.01) == percentile([3.5], 0.99) == 3.5


def test_the_last_language_counts_for_a_sentence() -> None:
    samples = [
        sample(0, 0, due_s=1.0, done_s=1.5),
        sample(0, 1, due_s=1.0, done_s=3.0),
        sample(1, 1, due_s=2.0, done_s=2.25),
        sample(1, 0, due_s=2.0, done_s=2.125),
    ]
    assert last_of_sentence_s(samples) == [2.0, 0.25]


def test_figures_of_a_round() -> None:
    samples = [
        sample(number, row, due_s=number, done_s=number + 0.1 * (row + 1), source=10, generated=5)
        for number in range(4)
        for row in range(2)
    ]
    counts = ServerCounts(
        rows=8, batches=2, requests=8, queue_ns=16_000_000, compute_ns=80_000_000,
        first_tokens=8, first_token_s=0.4, gaps=5, gap_s=0.1,
    )  # fmt: skip
    round_ = round_of("a", samples, wall_s=4.0, cpu_s=0.4, counts=counts)
    values = figures(round_)
    expected = {
        "sentences/s": 1.0,
        "source tokens/s": 20.0,
        "generated tokens/s": 10.0,
        "CPU s/1000 source tokens": 5.0,
        "p50 ms": 100.0,
        "p99 ms": 200.0,
        "last p50 ms": 200.0,
        "mean batch": 4.0,
        "queue ms": 2.0,
        "compute ms": 10.0,
        "first token ms": 50.0,
        "longest gap ms": 20.0,
    }
    assert {name: values[name] for name in expected} == pytest.approx(expected)


def test_rows_without_a_time_of_their_own_have_no_latency() -> None:
    samples = [sample(number, 0, due_s=0.0, done_s=None) for number in range(3)]
    values = figures(round_of("a", samples, wall_s=2.0))
    assert values["sentences/s"] == 1.5
    assert not any(name.endswith(("p50 ms", "p95 ms", "p99 ms")) for name in values)
    assert "mean batch" not in values


def test_ratios_are_taken_within_each_round_and_not_between_medians() -> None:
    """A machine that slows down in one round slows both contenders: the ratio stays."""
    walls = {"fast": [1.0, 10.0, 2.0], "slow": [2.0, 20.0, 8.0]}
    rounds = [
        round_of(name, [sample(0, 0)], number=number, wall_s=wall_s)
        for name, each in walls.items()
        for number, wall_s in enumerate(each)
    ]
    (scenario,) = run_of(rounds, baseline="slow").scenarios
    assert ratios(scenario, "fast", "slow", "sentences/s") == Spread(2.0, 2.0, 4.0)
    assert ratios(scenario, "slow", "slow", "sentences/s") == Spread(1.0, 1.0, 1.0)
    assert ratios(scenario, "fast", "absent", "sentences/s") is None
    assert over_rounds(scenario.of("fast"))["sentences/s"] == Spread(0.5, 0.1, 1.0)
