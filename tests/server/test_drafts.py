# SPDX-License-Identifier: Apache-2.0
"""Drafts on the wire: the answers are those without, and bad ones are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ct2_triton.serve import TritonServer
from server import configs
from server.conftest import LoadModel
from server.helpers import END, Connection, Ids, Reference, padded, sentences, tensor
from server.test_metrics import settled

pytestmark = pytest.mark.server

MODEL = "nllb"
GREEDY: dict[str, Any] = {"beam_size": 1, "max_decoding_length": 12, "min_decoding_length": 12}
OUTPUTS = ["OUTPUT_IDS", "DRAFT_TOKENS_KEPT"]


def _answer(
    connection: Connection, row: tuple[Ids, Ids], draft: Ids | None, model: str = MODEL
) -> tuple[Ids, int]:
    """The ids of an answer, and how many tokens of the draft were kept."""
    source, prefix = row
    more = None if draft is None else {"DRAFT_IDS": [draft]}
    answer = connection.infer(model, [source], [prefix], outputs=OUTPUTS, more=more, **GREEDY)
    assert answer["DRAFT_TOKENS_KEPT"].dtype == np.int32
    [[kept]] = answer["DRAFT_TOKENS_KEPT"].tolist()
    [ids] = answer["OUTPUT_IDS"].tolist()
    return ids, kept


def test_answers_are_those_without_a_draft(connection: Connection, reference: Reference) -> None:
    for row in sentences(reference, 4):
        truth = reference.translate(*row, **GREEDY)
        free = truth[len(row[1]) :]
        for draft in (None, [], [END], free, [*free, END], free[:4], [7, *free[1:]], free * 50):
            ids, kept = _answer(connection, row, draft)
            assert ids == truth
            assert kept < len(free)
            if draft and draft[:4] == free[:4]:
                assert kept >= 4
            if not draft or draft == [END]:
                assert kept == 0


def test_rows_of_one_request_have_a_draft_each(
    connection: Connection, reference: Reference
) -> None:
    rows = sentences(reference, 3)
    truths = [reference.translate(*row, **GREEDY) for row in rows]
    drafts = [truths[0][1:], [], truths[2][1:5]]
    answer = connection.infer(
        MODEL,
        padded([source for source, _ in rows]),
        [prefix for _, prefix in rows],
        outputs=OUTPUTS,
        more={"DRAFT_IDS": padded(drafts)},
        **GREEDY,
    )
    assert answer["OUTPUT_IDS"].tolist() == truths
    assert [n > 0 for [n] in answer["DRAFT_TOKENS_KEPT"].tolist()] == [True, False, True]


@pytest.mark.parametrize(
    ("draft", "options", "message"),
    [
        ([[5, 99999]], {}, "DRAFT_IDS, row 0: id 99999 at position 1 is not in the target"),
        ([[-1]], {}, "DRAFT_IDS, row 0: id -1 at position 0 is not in the target"),
        ([[5]], {"beam_size": 2}, "DRAFT_IDS, row 0: a draft is for a greedy search"),
        ([[5]], {"beam_size": 2, "num_hypotheses": 2}, "beam_size 2, num_hypotheses 2"),
        ([[5]], {"sampling_topk": 3}, "sampling_topk 3"),
        ([[5]], {"prefix_bias_beta": 0.2}, "prefix_bias_beta above 0"),
        ([[[5]]], {}, "DRAFT_IDS"),
    ],
    ids=str,
)
def test_a_bad_draft_is_refused(
    draft: Any,
    options: dict[str, Any],
    message: str,
    connection: Connection,
    reference: Reference,
) -> None:
    (row, *_) = sentences(reference, 1)
    refusal = connection.refusal(
        MODEL, [row[0]], [row[1]], more={"DRAFT_IDS": draft}, **{**GREEDY, **options}
    )
    assert message in refusal
    truth = reference.translate(*row, **GREEDY)
    assert _answer(connection, row, truth[1:]) == (truth, len(truth) - 2)


def test_a_draft_of_words_is_refused(connection: Connection, reference: Reference) -> None:
    (source, prefix), *_ = sentences(reference, 1)
    words = tensor("DRAFT_IDS", np.array([["word"]], dtype=object))
    inputs = [tensor("INPUT_IDS", [source]), tensor("TARGET_PREFIX", [prefix]), words]
    with pytest.raises(Exception, match="DRAFT_IDS"):
        connection.send(MODEL, inputs, ["OUTPUT_IDS"]).get_result()
    assert _answer(connection, (source, prefix), None)[0] == reference.translate(
        source, prefix, **GREEDY
    )


def test_beams_take_an_empty_draft(connection: Connection, reference: Reference) -> None:
    (source, prefix), *_ = sentences(reference, 1)
    answer = connection.infer(
        MODEL, [source], [prefix], more={"DRAFT_IDS": [[]]}, beam_size=2, max_decoding_length=6
    )
    expected = reference.translate(source, prefix, beam_size=2, max_decoding_length=6)
    assert answer["OUTPUT_IDS"].tolist() == [expected]


def test_calls_keep_nothing_of_a_draft(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    kept = configs.entry("output", "DRAFT_TOKENS_KEPT", "TYPE_INT32", "[1]")
    model = load(configs.full(more=kept, decoding="calls"))
    row, *_ = sentences(reference, 1)
    truth = reference.translate(*row, **GREEDY)
    assert _answer(connection, row, truth[1:], model) == (truth, 0)


def test_the_metrics_count_tokens_of_drafts(
    load: LoadModel, connection: Connection, server: TritonServer, reference: Reference
) -> None:
    kept = configs.entry("output", "DRAFT_TOKENS_KEPT", "TYPE_INT32", "[1]")
    model = load(configs.full(more=kept), "drafted")
    row, *_ = sentences(reference, 1)
    truth = reference.translate(*row, **GREEDY)
    _answer(connection, row, truth[1:6], model)
    found = settled(server, model, 1)
    assert found["ct2_loop_draft_tokens_total"] == 5
    assert found["ct2_loop_draft_tokens_kept_total"] == 5
    assert found["ct2_loop_steps_total"] == len(truth) - 1 - 5
