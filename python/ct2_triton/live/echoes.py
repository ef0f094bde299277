# SPDX-License-Identifier: Apache-2.0
"""Sentences that a recognizer repeats: in silence, some write "Thank you for watching" for ever."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ct2_triton.live.updates import SegmentUpdate

_MOST_TIMES = 2  # in a row that a sentence is shown
_LEAST_WIDTH = 8  # of its letters and digits, wide ones counted twice: who speaks may repeat a word


class Echoes:
    """Tells the finals that repeat those before them once too often."""

    def __init__(self) -> None:
        """Know no sentence yet."""
        self._last = ""
        self._times = 0

    def has(self, update: SegmentUpdate) -> bool:
        """Tell whether an update repeats the last finals, or begins to.

        Args:
            update: A final, which is counted, or an earlier update of a segment.
        """
        letters = "".join(filter(str.isalnum, update.text.casefold()))
        if not update.final:
            return self._times >= _MOST_TIMES and self._last.startswith(letters)
        if letters != self._last or _width(letters) < _LEAST_WIDTH:
            self._last, self._times = letters, 0
        self._times += 1
        return self._times > _MOST_TIMES


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)
