# SPDX-License-Identifier: Apache-2.0
"""How much captions flicker, and how far they lag behind the speaker.

Sources: normalized erasure: Arivazhagan et al., "Re-translation versus Streaming for Simultaneous
Translation" (arXiv 2004.03643). Average lagging (AL): Ma et al., "STACL" (arXiv 1810.08398).
Length-adaptive average lagging (LAAL): Papi et al., "Over-Generation Cannot Be Rewarded"
(arXiv 2206.05807). AL and LAAL end at the first word that is settled when all of the source is
known, as SimulEval's `latency_scorer` has it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from ct2_triton.words import common_words

if TYPE_CHECKING:
    from collections.abc import Sequence

Words = list[str]


def erased_words(shown: Sequence[Words]) -> int:
    """Count the words that were taken back.

    Args:
        shown: What was shown, one after the other, as words.

    Returns:
        The sum, over all changes, of the old text's words after the start that both texts have in
        common.
    """
    pairs = pairwise(shown)
    return sum(len(before) - common_words(before, after) for before, after in pairs)


def settled_delays(shown: Sequence[Words], delays: Sequence[float]) -> list[float]:
    """Return for each word of the last text the delay of the first text from which it is unchanged.

    Args:
        shown: What was shown, one after the other, as words.
        delays: When each text was shown, in any unit.
    """
    if not shown:
        return []
    found = [delays[-1]] * len(shown[-1])
    stands = len(shown[-1])
    for words, delay in zip(reversed(shown), reversed(delays), strict=True):
        stands = min(stands, common_words(words, shown[-1]))
        found[:stands] = [delay] * stands
    return found


def first_delays(shown: Sequence[Words], delays: Sequence[float]) -> list[float]:
    """Return for each position of the last text the delay of the first text that reached it.

    Args:
        shown: What was shown, one after the other, as words.
        delays: When each text was shown, in any unit.
    """
    found: list[float] = []
    for words, delay in zip(shown, delays, strict=True):
        found += [delay] * (len(words) - len(found))
    return found[: len(shown[-1])] if shown else []


def average_lagging(delays: Sequence[float], source: float, reference_words: int) -> float:
    """Compute AL: how far an ideal interpreter, who speaks evenly, is ahead on average.

    Args:
        delays: Delay of each word of the translation, in the unit of `source`.
        source: Length of the source, in words or seconds.
        reference_words: Length of the reference translation, in words.

    Returns:
        The lag in the unit of `source`; 0 for an empty translation.
    """
    if not delays or source <= 0:
        return 0.0
    pace, total = max(1, reference_words) / source, 0.0
    for position, delay in enumerate(delays):
        total += delay - position / pace
        if delay >= source:
            break
    return total / (position + 1)


def length_adaptive_lagging(delays: Sequence[float], source: float, reference_words: int) -> float:
    """Compute LAAL: AL that does not reward a translation longer than the reference.

    Args:
        delays: As for `average_lagging`.
        source: As for `average_lagging`.
        reference_words: As for `average_lagging`.
    """
    return average_lagging(delays, source, max(len(delays), reference_words))
