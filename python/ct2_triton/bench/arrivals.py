# SPDX-License-Identifier: Apache-2.0
"""When sentences are due in an open loop, where the sender does not wait for answers."""

from __future__ import annotations

import numpy as np


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
