# SPDX-License-Identifier: Apache-2.0
"""Is it a tie where two beam searches differ? Shown by the logits of CTranslate2 alone.

Both answers must come out of the definition of a beam search (`search_truth`), with candidates
exchanged that CTranslate2's logits of forced answers hardly tell apart.
"""

from __future__ import annotations

from itertools import islice

from core.matrix_model import TIE, Case, MatrixModel, Row
from core.search_truth import Found, SearchTruth

MOST_SEARCHES = 200

Answer = tuple[list[Row], list[float]]
"""Hypotheses and their scores."""


def tie_between(model: MatrixModel, case: Case, truth: Answer, answer: Answer) -> float | None:
    """Looks for candidates that are nearly equal and explain that two answers differ.

    Args:
        model: A model that computes in float32.
        case: A row of a beam search without a bias.
        truth: What CTranslate2 answers to it.
        answer: Another answer.

    Returns:
        How far apart these candidates are, relative to their scores. None: there are none.
    """
    if len(truth[0]) != len(answer[0]):
        return None
    if not case.options.get("return_alternatives"):
        return _tie(SearchTruth(model, case), truth, answer, any_base=False)
    gaps = []
    for ids, score, other_ids, other_score in zip(*truth, *answer, strict=True):
        if ids != other_ids:
            rest = _rest_of_alternative(model, case, ids)
            gaps.append(_tie(rest, ([ids], [score]), ([other_ids], [other_score]), any_base=True))
    return None if None in gaps else max((gap for gap in gaps if gap is not None), default=0.0)


def _rest_of_alternative(model: MatrixModel, case: Case, ids: Row) -> SearchTruth:
    """The search behind an alternative's first token: its lengths begin there."""
    start = case.prefix[: model.least_prefix]
    forced = len(case.prefix) - model.least_prefix
    prefix = [*start, *ids[: forced + 1]]
    return SearchTruth(
        model, Case(case.source, prefix, {**case.options, "num_hypotheses": 1}), counted=0
    )


def _tie(search: SearchTruth, truth: Answer, answer: Answer, *, any_base: bool) -> float | None:
    """Looks for both answers among the searches that are possible.

    Args:
        search: The definition.
        truth: An answer.
        answer: Another one.
        any_base: Whether the search knows scores only up to a summand, that of what is forced.

    Returns:
        See `tie_between`.
    """
    found: dict[int, tuple[Found, float]] = {}
    for each in islice(search.searches(), MOST_SEARCHES):
        hypotheses = [search.ids(hypothesis) for hypothesis in each.hypotheses]
        for which, (ids, scores) in enumerate((truth, answer)):
            if hypotheses != ids or which in found:
                continue
            bases = [a - b.score for a, b in zip(scores, each.hypotheses, strict=True)]
            found[which] = each, max(bases, key=abs)
        if len(found) == 2:
            break
    if len(found) < 2:
        return None
    (first, first_base), (second, second_base) = found[0], found[1]
    off = [first_base - second_base] if any_base else [first_base, second_base]
    size = max(1.0, *(abs(score) for score in (*truth[1], *answer[1])))
    return max(first.gap, second.gap) if max(map(abs, off)) < TIE * size else None
