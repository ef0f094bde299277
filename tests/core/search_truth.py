# SPDX-License-Identifier: Apache-2.0
"""What a beam search has to find: the definition, on CTranslate2's logits of forced tokens.

Each next token's logits come from CTranslate2 with all tokens before it forced, so that its own
rules (penalties, n-grams, suppression, lengths) have acted on them. Candidates that these logits
hardly tell apart may come in either order, so a row may have several searches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from core.matrix_model import TIE, Case, MatrixModel, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

PUSHED_BACK = -1e10
"""CTranslate2's score of a beam that must not be chosen. Its rules give tokens less."""


@dataclass(frozen=True)
class Hypothesis:
    """A sequence behind the forced tokens, end token kept, and its score."""

    free: Row
    score: float


@dataclass(frozen=True)
class Found:
    """The hypotheses of a search, best first.

    Attributes:
        hypotheses: As many as are wanted.
        gap: How far apart candidates are that changed places, relative to their scores.
    """

    hypotheses: list[Hypothesis]
    gap: float


@dataclass(frozen=True)
class _Step:
    """How far a search has come."""

    beams: list[Hypothesis]
    finished: list[Hypothesis]
    top_ended: bool = False
    gap: float = 0.0

    @property
    def outcome(self) -> tuple[Any, ...]:
        """What the rest of the search depends on."""
        beams = frozenset(tuple(beam.free) for beam in self.beams)
        return beams, [hypothesis.free for hypothesis in self.finished], self.top_ended


class SearchTruth:
    """A model's answers to one row."""

    def __init__(self, model: MatrixModel, case: Case, counted: int | None = None) -> None:
        """Takes a row without a bias.

        Args:
            model: Whose logits count.
            case: The row; `return_alternatives` is not looked at.
            counted: Forced tokens that the length of an answer counts (default: all).
        """
        self.model, self.case = model, case
        self.forced = len(case.prefix) - model.least_prefix
        self.counted = self.forced if counted is None else counted
        self.limit = case.options["max_decoding_length"]
        self.ends = case.options.get("end_token") or [model.end]
        self.has_twin = False
        """A token that stands twice was met: forced, it is the first, and the rest is unknown."""
        self._known: dict[tuple[int, ...], np.ndarray] = {}

    def is_last(self, free: Row) -> bool:
        """Whether a sequence ends with its last token."""
        return free[-1] in self.ends or self.forced + len(free) >= self.limit

    def score(self, total: float, free: Row) -> float:
        """The score of a sequence that has ended."""
        return total / (self.counted + len(free)) ** self.case.options.get("length_penalty", 1.0)

    def ids(self, hypothesis: Hypothesis) -> Row:
        """The hypothesis as an answer has it."""
        free = hypothesis.free
        if free[-1] in self.ends and not self.case.options.get("return_end_token"):
            free = free[:-1]
        return [*self.case.prefix[self.model.least_prefix :], *free]

    def next(self, free: Row) -> np.ndarray:
        """Log-probabilities of what follows some tokens."""
        key = tuple(free)
        if key not in self._known:
            logits = self._logits(free)
            top = logits.max()
            self._known[key] = logits - (top + math.log(np.exp(logits - top).sum()))
        return self._known[key]

    def beams(self) -> list[Hypothesis]:
        """The hypotheses of a beam search, best first; equals as they come."""
        return next(self.searches()).hypotheses

    def searches(self) -> Iterator[Found]:
        """Gives each search that nearly equal candidates allow; the first takes the best."""
        yield from self._searches(_Step([Hypothesis([], 0.0)], []))

    def _searches(self, step: _Step) -> Iterator[Found]:
        outcomes = []
        wanted = self.case.options.get("num_hypotheses", 1)
        for candidates, gap in _orders(self._ranked(step.beams)):
            following = self._follow(replace(step, gap=max(step.gap, gap)), candidates)
            if following.outcome in outcomes:
                continue
            outcomes.append(following.outcome)
            if following.beams:
                yield from self._searches(following)
                continue
            ended = [replace(h, score=self.score(h.score, h.free)) for h in following.finished]
            for best, gap in _orders(sorted(ended, key=lambda h: -h.score)):
                yield Found(best[:wanted], max(following.gap, gap))

    def _follow(self, step: _Step, ranked: list[Hypothesis]) -> _Step:
        """Takes the best candidates; no beams are left where the search ends."""
        options = self.case.options
        size, wanted = options["beam_size"], options.get("num_hypotheses", 1)
        candidates = self._pushed_back(ranked[: 2 * size])
        finished, top_ended = list(step.finished), step.top_ended
        reserve, beams = size, []
        at_limit = self.forced + len(candidates[0].free) >= self.limit
        for rank in range(size):
            goes_on = rank
            if at_limit or candidates[rank].free[-1] in self.ends:
                top_ended |= rank == 0
                finished.append(candidates[rank])
                while reserve < len(candidates) and candidates[reserve].free[-1] in self.ends:
                    reserve += 1
                if reserve < len(candidates):
                    goes_on, reserve = reserve, reserve + 1
            beams.append(candidates[goes_on])
            self._note_twin(candidates[rank].free[-1])
            self._note_twin(beams[-1].free[-1])
        enough = (
            top_ended and len(finished) >= wanted
            if options.get("length_penalty") == 0
            else len(finished) >= int(size * options.get("patience", 1) + 0.5)
        )
        return _Step([] if at_limit or enough else beams, finished, top_ended, step.gap)

    def _ranked(self, beams: list[Hypothesis]) -> list[Hypothesis]:
        """As many candidates as a step looks at, and one more, which may change places."""
        count = 2 * self.case.options["beam_size"] + 1
        totals = np.stack([beam.score + self.next(beam.free) for beam in beams])
        best = np.argsort(-totals.reshape(-1), kind="stable")[:count]
        places = [divmod(place, totals.shape[1]) for place in best.tolist()]
        return [
            Hypothesis([*beams[beam].free, token], float(totals[beam, token]))
            for beam, token in places
        ]

    def _pushed_back(self, candidates: list[Hypothesis]) -> list[Hypothesis]:
        """At the first choice behind forced tokens, only the best one may end."""
        if self.counted == 0 or len(candidates[0].free) > 1:
            return candidates
        return [
            Hypothesis([0], PUSHED_BACK)
            if rank > 0 and candidate.free[0] in self.ends
            else candidate
            for rank, candidate in enumerate(candidates)
        ]

    def _note_twin(self, token: int) -> None:
        self.has_twin |= self.model.target_ids[self.model.target_tokens[token]] != token

    def _logits(self, free: Row) -> np.ndarray:
        length = self.forced + len(free) + 1
        searched = ("beam_size", "patience", "num_hypotheses", "return_scores")
        options: dict[str, Any] = {
            name: value
            for name, value in self.case.options.items()
            if name not in (*searched, "return_alternatives")
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


def _orders(ranked: list[Hypothesis]) -> Iterator[tuple[list[Hypothesis], float]]:
    """Gives these as they are, and with neighbours exchanged that are nearly equal."""
    yield ranked, 0.0
    near = [
        (place, gap)
        for place, (better, worse) in enumerate(pairwise(ranked))
        if worse.score > PUSHED_BACK / 10
        and (gap := (better.score - worse.score) / max(1.0, abs(better.score))) <= TIE
    ]
    orders = [(ranked, 0.0)]
    for place, gap in near:
        exchanged = []
        for order, largest in orders:
            other = [*order[:place], order[place + 1], order[place], *order[place + 2 :]]
            exchanged.append((other, max(largest, gap)))
        yield from exchanged
        orders += exchanged
