# SPDX-License-Identifier: Apache-2.0
"""Rows of random ids, which the measurements send."""

from __future__ import annotations

import random

from sentence_lengths import draw_length

END = 2
Rows = list[list[int]]


def random_row(rng: random.Random, first: int, last: int, length: int | None = None) -> list[int]:
    """Random ids of this range and the end token; a length is drawn where none is given."""
    length = length or draw_length(rng)
    return [rng.randint(first, last) for _ in range(length - 1)] + [END]


def same_rows(count: int) -> Rows:
    """The same rows in every call, no two of them equal, of the first thousand ids."""
    rng = random.Random(0)
    lengths = [draw_length(rng) for _ in range(count)]
    return [random_row(rng, 4, 1000, length) for length in lengths]
