# SPDX-License-Identifier: Apache-2.0
"""Which differences of beam searches count as ties: those that CTranslate2's logits show."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from core.beam_ties import tie_between
from core.loop_matrix import Case, MatrixModel
from core.matrix_model import TIE
from core.test_packed_beams import doubled

BEAMS: dict[str, Any] = {"beam_size": 4, "num_hypotheses": 4, "return_scores": True}

ONE_CHOICE: list[dict[str, Any]] = [
    {"max_decoding_length": 2},
    {"max_decoding_length": 3, "return_alternatives": True, "beam_size": 2},
]


@pytest.fixture(scope="module")
def twins(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> MatrixModel:
    """A model that cannot tell a token from the one before it."""
    return MatrixModel(
        "twins", doubled(models["nllb"], tmp_path_factory.mktemp("t") / "2"), "float32"
    )


def answer(model: MatrixModel, case: Case) -> tuple[list[list[int]], list[float]]:
    truth = model.truth(case)
    return truth["hypotheses"], truth["scores"]


@pytest.mark.parametrize("kind", ["marian", "mbart25", "nllb-ends-by-itself", "vocabulary-map"])
def test_the_definition_gives_ctranslate2s_answers(models: dict[str, Path], kind: str) -> None:
    model = MatrixModel(kind, models[kind], "float32", beams=1)
    rng = random.Random(41)
    cases = [case for case in (model.draw(rng) for _ in range(30)) if defined(model, case)]
    assert len(cases) > 10
    for case in cases:
        truth = answer(model, case)
        assert tie_between(model, case, truth, truth) is not None, case


def defined(model: MatrixModel, case: Case) -> bool:
    """Not with a bias; of alternatives, the rules of the rest do not see what is forced."""
    if len(case.prefix) - model.least_prefix >= case.options["max_decoding_length"]:
        return False  # nothing is searched
    rules = {"repetition_penalty", "no_repeat_ngram_size", "suppress_sequences"}
    alternatives = case.options.get("return_alternatives") and rules & {*case.options}
    return not (case.options.get("prefix_bias_beta") or alternatives)


@pytest.mark.parametrize("options", ONE_CHOICE, ids=str)
def test_equal_candidates_are_a_tie(twins: MatrixModel, options: dict[str, Any]) -> None:
    """CTranslate2 takes one of two equal tokens; who takes the other is as right."""
    case = Case([5, 6, 7, 2], [300], {**BEAMS, **options})
    ids, scores = answer(twins, case)
    other = [[*row[:-1], row[-1] ^ 1] for row in ids]
    gap = tie_between(twins, case, (ids, scores), (other, scores))
    assert gap is not None
    assert gap < TIE


@pytest.mark.parametrize("options", ONE_CHOICE, ids=str)
def test_what_is_no_tie(twins: MatrixModel, options: dict[str, Any]) -> None:
    case = Case([5, 6, 7, 2], [300], {**BEAMS, **options})
    ids, scores = answer(twins, case)
    twin = [*ids[0][:-1], ids[0][-1] ^ 1]
    for wrong in (
        ([[*ids[0][:-1], 77], *ids[1:]], scores),  # another token
        ([twin, *ids[1:]], [scores[0] - 1e-3, *scores[1:]]),  # another score
        (ids[:-1], scores[:-1]),  # too few
    ):
        assert tie_between(twins, case, (ids, scores), wrong) is None
