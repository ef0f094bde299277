# SPDX-License-Identifier: Apache-2.0
"""When sentences are due in an open loop, where the sender does not wait for answers."""

from __future__ import annotations

import numpy as np


def poisson(rate_per_s: float, count: int, seed: int) -> list[float]:
    """Draw the times of a Poisson process.

    Args:
        rate_per_s: Mean arrivals a second.
        count: How many.
        seed: Equal seeds give equal times.

    Returns:
        Seconds from the start, ascending.
    """
    gaps = np.random.default_rng(seed).exponential(1.0 / rate_per_s, count)
    return [float(time) for time in np.cumsum(gaps)]


def bursts(size: int, interval_s: float, count: int) -> list[float]:
    """Put arrivals together: so many at once, then a pause.

    Args:
        size: Arrivals of a burst.
        interval_s: Seconds from one burst to the next.
        count: How many arrivals in all.

    Returns:
        Seconds from the start, ascending.
    """
    return [number // size * interval_s for number in range(count)]


def paced(sessions: int, interval_s: float, count: int, seed: int) -> list[float]:
    """Merge the sentences of live captions: each session one in every interval.

    Args:
        sessions: How many speak at a time; each starts at a random moment of the interval.
        interval_s: Seconds from one sentence of a session to its next.
        count: How many arrivals in all.
        seed: Equal seeds give equal times.

    Returns:
        Seconds from the start, ascending.
    """
    phases = np.sort(np.random.default_rng(seed).uniform(0.0, interval_s, sessions))
    return [
        float(phases[number % sessions]) + number // sessions * interval_s
        for number in range(count)
    ]
