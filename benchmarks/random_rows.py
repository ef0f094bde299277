# SPDX-License-Identifier: Apache-2.0
"""Rows of random ids, of the lengths of sentences, as simulations and measurements draw them."""

from __future__ import annotations

import math
import random

END = 2
_MEDIAN_TOKENS, _SIGMA, _SHORTEST, _LONGEST = 18, 0.5, 3, 80
Rows = list[list[int]]


def draw_length(rng: random.Random) -> int:
    """Draw a length: log-normal, median 18, clipped to 3..80.

    Args:
        rng: Source of randomness; one number is drawn.

    Returns:
        Tokens, including the end token.
    """
    drawn = round(rng.lognormvariate(math.log(_MEDIAN_TOKENS), _SIGMA))
    return min(_LONGEST, max(_SHORTEST, drawn))


def random_row(rng: random.Random, first: int, last: int, length: int | None = None) -> list[int]:
    """Random ids of this range and the end token; a length is drawn where none is given."""
    length = length or draw_length(rng)
    return [rng.randint(first, last) for _ in range(length - 1)] + [END]


def same_rows(count: int) -> Rows:
    """The same rows in every call, no two of them equal, of the first thousand ids."""
    rng = random.Random(0)
    lengths = [draw_length(rng) for _ in range(count)]
    return [random_row(rng, 4, 1000, length) for length in lengths]
