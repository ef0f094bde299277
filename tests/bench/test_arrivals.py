# SPDX-License-Identifier: Apache-2.0
"""When sentences of an open loop are due."""

from __future__ import annotations

import statistics
from collections import Counter

import pytest

from ct2_triton.bench import workload


def test_poisson_arrivals_have_the_rate_and_the_scatter_of_a_poisson_process() -> None:
    times = workload.poisson(20.0, 10_000, seed=3)
    gaps = [after - before for before, after in zip([0.0, *times], times, strict=False)]
    assert statistics.mean(gaps) == pytest.approx(1 / 20, rel=0.03)
    # Standard deviation of an exponential distribution is its mean: even spacing would have 0.
    assert statistics.stdev(gaps) == pytest.approx(1 / 20, rel=0.05)
    per_second = Counter(int(time) for time in times)
    counts = [per_second[second] for second in range(int(times[-1]))]
    assert statistics.variance(counts) == pytest.approx(20, rel=0.2)
    assert min(gaps) > 0


def test_equal_seeds_give_equal_arrivals_and_others_do_not() -> None:
    assert workload.poisson(5.0, 50, seed=1) == workload.poisson(5.0, 50, seed=1)
    assert workload.poisson(5.0, 50, seed=1) != workload.poisson(5.0, 50, seed=2)
    assert workload.poisson(5.0, 50, seed=1)[:20] == workload.poisson(5.0, 20, seed=1)


def test_bursts_come_together() -> None:
    assert workload.bursts(3, 2.0, 7) == [0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 4.0]


def test_each_paced_session_speaks_once_in_every_interval() -> None:
    times = workload.paced(4, 2.5, 12, seed=9)
    assert times == sorted(times)
    assert 0.0 <= times[0] < times[3] < 2.5
    for number in range(8):
        assert times[number + 4] - times[number] == pytest.approx(2.5)
