# SPDX-License-Identifier: Apache-2.0
"""Answers that lean towards their drafts, on the wire.

What they have to be: tests/core/test_loop_draft_bias.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from server import configs
from server.conftest import LoadModel
from server.helpers import Connection, Ids, Reference, padded, sentences

pytestmark = pytest.mark.server

MODEL = "nllb"
LIMIT: dict[str, Any] = {"max_decoding_length": 12, "min_decoding_length": 12}
GREEDY: dict[str, Any] = {**LIMIT, "beam_size": 1}
DRAFT: Ids = [901, 902, 903, 904]
OUTPUTS = ["OUTPUT_IDS", "DRAFT_TOKENS_KEPT"]


def _answer(
    connection: Connection, row: tuple[Ids, Ids], draft: Ids, **options: Any
) -> tuple[Ids, int]:
    answer = connection.infer(
        MODEL, [row[0]], [row[1]], outputs=OUTPUTS, more={"DRAFT_IDS": [draft]}, **options
    )
    [ids], [[kept]] = answer["OUTPUT_IDS"].tolist(), answer["DRAFT_TOKENS_KEPT"].tolist()
    return ids, kept


@pytest.mark.parametrize("options", [GREEDY, {**LIMIT, "beam_size": 3}], ids=repr)
def test_the_bias_decides_how_much_of_a_draft_stays(
    connection: Connection, reference: Reference, options: dict[str, Any]
) -> None:
    """The language stays in front of it whatever the bias."""
    for row in sentences(reference, 3):
        assert row[1]
        truth = reference.translate(*row, **options)
        much, kept = _answer(connection, row, DRAFT, draft_bias=0.99, **options)
        assert much[: len(row[1]) + 4] == [*row[1], *DRAFT]
        assert kept == (4 if options["beam_size"] == 1 else 0)
        assert _answer(connection, row, DRAFT, draft_bias="0.000001", **options)[0] == truth
        if options["beam_size"] == 1:
            assert _answer(connection, row, DRAFT, draft_bias=0, **options) == (truth, 0)


def test_rows_of_one_request_lean_each_towards_its_own(
    connection: Connection, reference: Reference
) -> None:
    rows = sentences(reference, 3)
    answer = connection.infer(
        MODEL,
        padded([source for source, _ in rows]),
        [prefix for _, prefix in rows],
        more={"DRAFT_IDS": padded([DRAFT, [], DRAFT[::-1]])},
        draft_bias=0.99,
        **GREEDY,
    )
    first, second, third = answer["OUTPUT_IDS"].tolist()
    assert (first[1:5], third[1:5]) == (DRAFT, DRAFT[::-1])
    assert second == reference.translate(*rows[1], **GREEDY)


@pytest.mark.parametrize(
    ("draft", "options", "message"),
    [
        ([DRAFT], {"draft_bias": 1}, "the value 1 is not allowed; give a number from 0 to below 1"),
        ([DRAFT], {"draft_bias": -0.5}, "the value -0.5 is not allowed"),
        ([DRAFT], {"draft_bias": "much"}, 'the value "much" is not allowed'),
        ([[]], {"draft_bias": 0.4}, "draft_bias 0.4 needs a draft: DRAFT_IDS is"),
        (None, {"draft_bias": 0.4}, "draft_bias 0.4 needs a draft"),
        ([DRAFT], {"draft_bias": 0.4, "sampling_topk": 5}, "combined with sampling_topk 5"),
        ([DRAFT], {"draft_bias": 0.4, "prefix_bias_beta": 0.2}, "with prefix_bias_beta 0.2"),
        ([DRAFT], {"draft_bias": 0.4, "return_alternatives": True}, "with return_alternatives"),
        (
            [DRAFT],
            {"draft_bias": 0.4, "beam_size": 2, "coverage_penalty": 0.5},
            "because coverage_penalty is not 0",
        ),
        ([[5, 99999]], {"draft_bias": 0.4}, "DRAFT_IDS, row 0: id 99999 at position 1"),
    ],
    ids=str,
)
def test_a_bias_that_cannot_be_is_refused(
    draft: Any,
    options: dict[str, Any],
    message: str,
    connection: Connection,
    reference: Reference,
) -> None:
    row, *_ = sentences(reference, 1)
    more = None if draft is None else {"DRAFT_IDS": draft}
    refusal = connection.refusal(MODEL, [row[0]], [row[1]], more=more, **{**GREEDY, **options})
    assert message in refusal
    ids, _ = _answer(connection, row, DRAFT, draft_bias=0.99, **GREEDY)
    assert ids[1:5] == DRAFT


def test_a_model_of_calls_refuses_a_bias(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    model = load(configs.full(decoding="calls"))
    row, *_ = sentences(reference, 1)
    refusal = connection.refusal(
        model, [row[0]], [row[1]], more={"DRAFT_IDS": [DRAFT]}, draft_bias=0.4, **GREEDY
    )
    assert "draft_bias 0.4 needs a decode loop, and calls of CTranslate2 run this search" in refusal
    assert connection.translate(model, *row, **GREEDY) == reference.translate(*row, **GREEDY)
