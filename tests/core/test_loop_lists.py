# SPDX-License-Identifier: Apache-2.0
"""Rows of several vocabulary lists, and of none, in one loop: each has CTranslate2's answer.

The rows are those of loop_matrix.py: all options of the loop, beams, drafts, rows that join late.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from core.loop_matrix import Case, MatrixModel, compare, decode, draft_for
from core.vocabulary_lists import listed_model
from ct2_triton import _core

LISTS = {
    1101: list(range(20, 600, 3)),
    1102: list(range(21, 900, 2)),
    1103: [*range(20, 60), *range(1000, 1100)],
}
INT8_DIFFERENCES = 0.03


class OfLanguage(MatrixModel):
    """The truth about rows of one language: the model with its list alone."""

    language: int

    def draw(self, rng: random.Random) -> Case:
        """Makes a row whose prefix begins with the language."""
        case = super().draw(rng)
        return Case(case.source, [self.language, *case.prefix], case.options)


class Lists:
    """A model of three lists, and the truth about each language and about one without a list."""

    def __init__(self, plain: Path, folder: Path, compute_type: str) -> None:
        """Loads them."""
        files = listed_model(plain, folder, LISTS)
        settings = {"compute_type": compute_type, "use_vmap": True}
        self.loop_model = _core.LoopModel(str(files.directory), settings)
        self.truths = [MatrixModel("no list", plain, compute_type, beams=0.3)]
        for language, directory in files.mapped.items():
            truth = OfLanguage(f"list of {language}", directory, compute_type, beams=0.3)
            truth.language = language
            self.truths.append(truth)
        for truth in self.truths:
            truth.loop_model = self.loop_model

    def draw(self, count: int, rng: random.Random) -> list[tuple[MatrixModel, Case]]:
        """Rows of all languages in turn."""
        return [(truth, truth.draw(rng)) for _ in range(count) for truth in self.truths]

    def answers(
        self, cases: list[tuple[MatrixModel, Case]], rng: random.Random, drafts: Any = None
    ) -> list[dict[str, Any]]:
        """What one loop answers, to rows that join at random steps."""
        return decode(self.truths[0], [case for _, case in cases], rng, drafts)


@pytest.fixture(scope="module", params=["float32", "int8"])
def lists(
    request: pytest.FixtureRequest, engine_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Lists:
    return Lists(engine_model, tmp_path_factory.mktemp("lists"), request.param)


def test_rows_of_all_lists_share_the_steps_of_a_loop(lists: Lists) -> None:
    rng = random.Random(16)
    cases = lists.draw(100, rng)
    answers = lists.answers(cases, rng)
    for truth in lists.truths:
        own = [i for i, (of, _) in enumerate(cases) if of is truth]
        tally = compare(truth, [cases[i][1] for i in own], [answers[i] for i in own])
        if truth.compute_type == "float32":
            assert tally.different == []
            assert tally.ties <= 1
            assert tally.score_error < 1e-4
        assert len(tally.different) <= INT8_DIFFERENCES * tally.rows


def test_drafts_change_no_answer(lists: Lists) -> None:
    rng = random.Random(17)
    cases = lists.draw(60, rng)
    plain = lists.answers(cases, rng)
    drafts = [
        draft_for(answer["ids"][len(case.prefix) :], truth, rng) if case.is_greedy else []
        for (truth, case), answer in zip(cases, plain, strict=True)
    ]
    drafted = lists.answers(cases, rng, drafts)
    assert [row["ids"] for row in drafted] == [row["ids"] for row in plain]
    assert [row["grown"] for row in drafted] == [row["grown"] for row in plain]
    assert sum(row["draft_tokens_kept"] for row in drafted) > 100


def test_lists_beyond_the_bound_are_packed_when_rows_need_them(
    engine_model: Path, tmp_path: Path
) -> None:
    """There is room for one of the three at a time; answers and scores stay the same."""
    files = listed_model(engine_model, tmp_path, LISTS)

    def model(**options: Any) -> Any:
        settings = {"compute_type": "float32", "use_vmap": True}
        return _core.LoopModel(str(files.directory), settings, **options)

    none, every = model(list_bytes=0), model()
    rng = random.Random(18)
    truth = MatrixModel("lists", engine_model, "float32", beams=0.3)
    cases = [
        Case(case.source, [language, *case.prefix], case.options)
        for language in [*LISTS, *LISTS]
        for case in [truth.draw(rng)]
    ]

    def answers(loop_model: Any) -> list[Any]:
        truth.loop_model = loop_model
        return decode(truth, cases, random.Random(19))

    none.trial()
    before = none.packed_bytes
    assert before < every.packed_bytes
    assert answers(none) == answers(every)
    assert before < none.packed_bytes < every.packed_bytes
