# SPDX-License-Identifier: Apache-2.0
"""What an answer that leans towards a draft has to be: the definition, on CTranslate2's logits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from core.matrix_model import TIE, Case, MatrixModel, Row
from core.search_truth import SearchTruth

if TYPE_CHECKING:
    import numpy as np

FORBIDDEN = -1e30
"""Below it is what CTranslate2's rules give a token that must not be chosen."""


class BiasTruth(SearchTruth):
    """A model's answers to one row with a draft."""

    def __init__(self, model: MatrixModel, case: Case, draft: Row, bias: float) -> None:
        """Takes a row whose options have no bias."""
        super().__init__(model, case)
        self.draft, self.bias = draft, bias

    def next(self, free: Row) -> np.ndarray:
        """Biased log-probabilities of what follows some tokens."""
        values = super().next(free)
        place = len(free)
        if place >= len(self.draft) or free != self.draft[:place]:
            return values
        token = self.draft[place]
        if values[token] < FORBIDDEN:
            return values
        favored = math.log(math.exp(values[token]) * (1 - self.bias) + self.bias)
        values = values + math.log(1 - self.bias)
        values[token] = favored
        return values

    def greedy_mistake(self, free: Row, score: float | None) -> str:
        """What is wrong with an answer of a greedy search; empty: nothing."""
        total = 0.0
        for place, token in enumerate(free):
            values = self.next(free[:place])
            self._note_twin(int(values.argmax()))
            if self.has_twin:
                return ""
            if values[token] < values.max() - TIE * max(1.0, abs(values.max())):
                return f"place {place}: {token}, not {values.argmax()}"
            total += float(values[token])
            if self.is_last(free[: place + 1]) != (place + 1 == len(free)):
                return f"it ends behind {len(free)} tokens, not {place + 1}"
        if score is not None and abs(score - self.score(total, free)) > 1e-4 * max(1, abs(score)):
            return f"score {score}, not {self.score(total, free)}"
        return ""
