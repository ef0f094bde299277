# SPDX-License-Identifier: Apache-2.0
"""What an answer that leans towards a draft has to be: the definition, on CTranslate2's logits.

Each next token's logits come from CTranslate2 with all tokens before it forced, so that its own
rules (penalties, n-grams, suppression, lengths) have acted on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.loop_matrix import TIE, Case, MatrixModel, Row

FORBIDDEN = -1e30
"""Below it is what CTranslate2's rules give a token that must not be chosen."""
PUSHED_BACK = -1e10


@dataclass(frozen=True)
class Hypothesis:
    """A sequence behind the forced tokens, end token kept, and its score."""

    free: Row
    score: float


class BiasTruth:
    """A model's answers to one row with a draft."""

    def __init__(self, model: MatrixModel, case: Case, draft: Row, bias: float) -> None:
        """Takes a row whose options have no bias."""
        self.model, self.case, self.draft, self.bias = model, case, draft, bias
        self.forced = len(case.prefix) - model.least_prefix
        self.limit = case.options["max_decoding_length"]
        self.ends = case.options.get("end_token") or [model.end]
        self.has_twin = False
        """A token that stands twice was met: forced, it is the first, and the rest is unknown."""

    def is_last(self, free: Row) -> bool:
        """Whether a sequence ends with its last token."""
        return free[-1] in self.ends or self.forced + len(free) >= self.limit

    def score(self, total: float, free: Row) -> float:
        """The score of a sequence that has ended."""
        return total / (self.forced + len(free)) ** self.case.options.get("length_penalty", 1.0)

    def next(self, free: Row) -> np.ndarray:
        """Biased log-probabilities of what follows some tokens."""
        logits = self._logits(free)
        top = logits.max()
        values = logits - (top + math.log(np.exp(logits - top).sum()))
        place = len(free)
        if place >= len(self.draft) or free != self.draft[:place]:
            return values
        token = self.draft[place]
        if values[token] < FORBIDDEN:
            return values
        leaning = math.log(math.exp(values[token]) * (1 - self.bias) + self.bias)
        values = values + math.log(1 - self.bias)
        values[token] = leaning
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

    def beams(self) -> list[Hypothesis]:
        """The hypotheses of a beam search, best first."""
        options = self.case.options
        size, wanted = options["beam_size"], options["num_hypotheses"]
        most = int(size * options["patience"] + 0.5)
        beams, finished, top_ended = [Hypothesis([], 0.0)], [], False
        while True:
            candidates = self._candidates(beams, 2 * size)
            reserve, following = size, []
            at_limit = self.is_last_place(beams)
            for rank in range(size):
                goes_on = rank
                if at_limit or candidates[rank].free[-1] in self.ends:
                    top_ended |= rank == 0
                    finished.append(candidates[rank])
                    while reserve < len(candidates) and candidates[reserve].free[-1] in self.ends:
                        reserve += 1
                    if reserve < len(candidates):
                        goes_on, reserve = reserve, reserve + 1
                following.append(candidates[goes_on])
                self._note_twin(candidates[rank].free[-1])
                self._note_twin(following[-1].free[-1])
            enough = (
                top_ended and len(finished) >= wanted
                if options.get("length_penalty") == 0
                else len(finished) >= most
            )
            if at_limit or enough:
                break
            beams = following
        results = [replace(h, score=self.score(h.score, h.free)) for h in finished]
        return sorted(results, key=lambda h: -h.score)[:wanted]

    def is_last_place(self, beams: list[Hypothesis]) -> bool:
        """Whether the next token of these beams reaches the limit."""
        return self.forced + len(beams[0].free) + 1 >= self.limit

    def _candidates(self, beams: list[Hypothesis], count: int) -> list[Hypothesis]:
        totals = np.stack([beam.score + self.next(beam.free) for beam in beams])
        best = np.argsort(-totals.reshape(-1), kind="stable")[:count]
        candidates = []
        for rank, place in enumerate(best.tolist()):
            beam, token = divmod(place, totals.shape[1])
            found = Hypothesis([*beams[beam].free, token], float(totals[beam, token]))
            if not beams[0].free and self.forced > 0 and rank > 0 and token in self.ends:
                found = Hypothesis([0], PUSHED_BACK)
            candidates.append(found)
        return candidates

    def _note_twin(self, token: int) -> None:
        self.has_twin |= self.model.target_ids[self.model.target_tokens[token]] != token

    def _logits(self, free: Row) -> np.ndarray:
        length = self.forced + len(free) + 1
        options: dict[str, Any] = {
            name: value
            for name, value in self.case.options.items()
            if name not in ("beam_size", "patience", "num_hypotheses", "return_scores")
        }
        least = options.get("min_decoding_length", 1)
        options |= {
            "beam_size": 1, "max_decoding_length": length, "return_logits_vocab": True,
            "min_decoding_length": min(least, length), "return_end_token": True,
        }  # fmt: skip
        case = Case(self.case.source, [*self.case.prefix, *free], options)
        logits = np.asarray(self.model.truth(case)["logits"][-1], np.float64).reshape(-1)
        if not self.model.map_options:
            return logits
        values = np.full(len(self.model.target_tokens), -np.inf)
        values[self.model.candidates] = logits
        return values
