# SPDX-License-Identifier: Apache-2.0
"""Drafts in the decode loop: the answer is the one without, in fewer steps.

All kinds of decoders and options: tests/core/test_loop_matrix.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import END, EngineTruth, Row, ragged_rows
from core.loop_helpers import GREEDY, run_to_end
from ct2_triton import _core

FEWEST = {**GREEDY, "min_decoding_length": 16}
ROW = ([300, *range(50, 70), END], [], {**FEWEST, "no_repeat_ngram_size": 1})
"""A row in whose answer no token comes twice."""


def _decode(loop: Any, row: Any, draft: Row) -> tuple[Any, dict[str, int]]:
    """The row's answer, and what it added to the counters."""
    before = loop.counters
    [name] = loop.admit([row], [draft])
    answer = run_to_end(loop)[name]
    return answer, {key: count - before[key] for key, count in loop.counters.items()}


def test_a_right_draft_takes_a_step_for_17_tokens(loop: Any, truth: EngineTruth) -> None:
    """Of a draft 16 tokens are tried at a step, and one more follows them."""
    for source, prefix in zip(*ragged_rows(truth, 6, seed=52), strict=True):
        row = (source, prefix, FEWEST)
        plain, without = _decode(loop, row, [])
        assert [plain["ids"]] == truth.hypotheses(source, prefix, **FEWEST)
        answer, counts = _decode(loop, row, [*plain["ids"][len(prefix) :], END])
        assert answer["ids"] == plain["ids"]
        assert counts["steps"] == -(-without["steps"] // 17)
        assert counts["steps"] == without["steps"] - counts["draft_tokens_kept"]
        assert answer["draft_tokens_kept"] == counts["draft_tokens_kept"]
        assert counts["draft_tokens"] == counts["draft_tokens_kept"]


def test_a_step_tries_64_tokens_of_all_drafts(loop: Any) -> None:
    """A limit of memory and of other rows' time, which changes no answer."""
    before = loop.counters["draft_tokens"]
    plain, _ = _decode(loop, ROW, [])
    names = loop.admit([ROW] * 6, [plain["ids"]] * 6)
    loop.step()
    assert loop.counters["draft_tokens"] - before == 64
    answers = run_to_end(loop)
    assert [answers[name]["ids"] for name in names] == [plain["ids"]] * 6


def test_a_wrong_draft_takes_the_steps_of_none(loop: Any) -> None:
    plain, without = _decode(loop, ROW, [])
    wrong = [token for token in range(900, 1000) if token not in plain["ids"]]
    answer, counts = _decode(loop, ROW, wrong)
    assert answer == plain
    assert counts["steps"] == without["steps"]
    assert counts["draft_tokens"] == 16  # once: nothing of the rest is met again


def test_the_rest_of_a_draft_is_tried_where_the_answer_rejoins_it(loop: Any) -> None:
    """A token changed, lost or added costs the steps up to two equal tokens, and no more."""
    plain, _ = _decode(loop, ROW, [])
    ids = plain["ids"]
    for draft in ([*ids[:8], 3, *ids[9:]], [*ids[:8], *ids[9:]], [*ids[:8], 3, *ids[8:]]):
        answer, counts = _decode(loop, ROW, draft)
        assert answer["ids"] == ids
        assert counts["steps"] <= 4


def test_a_draft_beyond_the_limit_is_cut(loop: Any) -> None:
    row = (ROW[0], [], {**ROW[2], "min_decoding_length": 1, "max_decoding_length": 6})
    plain, _ = _decode(loop, row, [])
    longer, _ = _decode(loop, ROW, [])
    answer, counts = _decode(loop, row, longer["ids"] * 100)
    assert answer["ids"] == plain["ids"]
    assert answer["finish_reason"] == "length"
    assert counts["steps"] == 1


def test_a_bad_draft_is_refused_with_its_place(loop: Any) -> None:
    for rows, draft, message in (
        ([ROW], [5, 9999999], r"DRAFT_IDS, row 0: id 9999999 at position 1 is not in the target"),
        ([ROW], [-1], r"DRAFT_IDS, row 0: id -1 at position 0"),
        (
            [(*ROW[:2], {**ROW[2], "beam_size": 2})],
            [5],
            r"DRAFT_IDS, row 0: a draft is for a greedy search .*beam_size 2, num_hypotheses 1",
        ),
    ):
        with pytest.raises(_core.Error, match=message):
            loop.admit(rows, [draft])
    assert _decode(loop, ROW, [5])[0]["ids"] == _decode(loop, ROW, [])[0]["ids"]


def test_beams_with_an_empty_draft_run(loop: Any) -> None:
    row = (*ROW[:2], {**ROW[2], "beam_size": 2})
    assert _decode(loop, row, [])[0]["draft_tokens_kept"] == 0


@pytest.mark.parametrize("after", range(8))
def test_a_failing_step_leaves_a_draft_as_it_was(engine_model: Path, after: int) -> None:
    model = _core.LoopModel(
        str(engine_model), {"compute_type": "float32"}, damaged="decoder/projection"
    )
    loop = _core.DecodeLoop(model)
    plain, _ = _decode(loop, ROW, [])
    ids = plain["ids"]
    [name] = loop.admit([ROW], [[*ids[:4], 3, *ids[5:9], 3, *ids[10:]]])
    model.fail_after(after)
    answers: dict[int, Any] = {}
    while loop.running:
        try:
            answers.update(loop.step()[1])
        except _core.Error:
            model.fail_after(-1)
    assert answers[name]["ids"] == ids
    assert answers[name]["draft_tokens_kept"] > 0


@pytest.mark.parametrize("decoding", ["loop", "calls"])
def test_through_the_queue(engine_model: Path, decoding: str) -> None:
    """Calls of CTranslate2 have no use for a draft: none of it is kept."""
    translator = _core.Translator(
        str(engine_model), {"compute_type": "float32", "decoding": decoding}
    )
    source, _, options = ROW
    [[plain]] = translator.translate([source], parameters=options)
    ids = plain["ids"]
    drafts = [ids, [], [3, *ids[1:]]]
    answers = translator.translate([source] * 3, parameters=options, drafts=drafts)
    assert [answer[0]["ids"] for answer in answers] == [ids] * 3
    assert [answer[0]["grown"] for answer in answers] == [ids] * 3
    kept = [answer[0]["draft_tokens_kept"] for answer in answers]
    assert kept[1] == plain["draft_tokens_kept"] == 0
    assert (kept[0] > 0, kept[2] > 0) == ((decoding == "loop"),) * 2
    assert len(translator.translate([source], parameters=options)) == 1
