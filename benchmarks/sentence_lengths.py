# SPDX-License-Identifier: Apache-2.0
"""Lengths of sentences, as simulations and measurements draw them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

_MEDIAN_TOKENS, _SIGMA, _SHORTEST, _LONGEST = 18, 0.5, 3, 80


def draw_length(rng: random.Random) -> int:
    """Draw a length: log-normal, median 18, clipped to 3..80.

    Args:
        rng: Source of randomness; one number is drawn.

    Returns:
        Tokens, including the end token.
    """
    drawn = round(rng.lognormvariate(math.log(_MEDIAN_TOKENS), _SIGMA))
    return min(_LONGEST, max(_SHORTEST, drawn))
