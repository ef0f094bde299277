# SPDX-License-Identifier: Apache-2.0
"""Where tokens come from, in loops and calls; and what unknown tokens are replaced by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core import loop_alignments
from core.engine_truth import END, EngineTruth, Row, ragged_rows
from core.loop_helpers import GREEDY, decode_alone, new_loop, run_to_end
from core.loop_matrix import MatrixModel
from core.senders import Sender, worker_held
from ct2_triton import _core
from support.waiting import wait_until
from tiny_models import FAMILIES

ALIGNED: dict[str, Any] = {**GREEDY, "return_alignments": True}
SEARCHES = [
    {"beam_size": 1},
    {"beam_size": 4, "num_hypotheses": 4, "patience": 1.5},
    {"beam_size": 3, "prefix_bias_beta": 0.3},
    {"beam_size": 2, "return_end_token": True},
    {"beam_size": 1, "return_alternatives": True, "num_hypotheses": 3},
]


def best(truth: EngineTruth, source: Row, prefix: Row, forced: int, **options: Any) -> list[Row]:
    """CTranslate2's positions of each hypothesis of a row that is alone in its call."""
    result = truth.result(source, prefix, return_attention=True, **options)
    return [
        [-1] * forced + [int(np.argmax(weights)) for weights in hypothesis[forced:]]
        for hypothesis in result.attention
    ]


@pytest.mark.parametrize("kind", [*sorted(FAMILIES), "vocabulary-map", "nllb-ends-by-itself"])
def test_positions_are_those_of_the_most_attention(models: dict[str, Path], kind: str) -> None:
    """More rows: tests/core/loop_alignments.py."""
    found = loop_alignments.run(MatrixModel(kind, models[kind], "float32", beams=0.4), 50, seed=3)

    assert found.different == []
    assert found.tokens > 100
    assert found.ties <= found.tokens / 100
    assert found.replaced > 0


@pytest.mark.parametrize("decoding", ["loop", "calls"])
@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_rows_of_a_request(
    engine_model: Path, truth: EngineTruth, search: dict[str, Any], decoding: str
) -> None:
    """Forced tokens have -1, and rows that do not ask have nothing."""
    parameters = {"compute_type": "float32", "decoding": decoding}
    translator = _core.Translator(str(engine_model), parameters)
    sources, prefixes = ragged_rows(truth, 8, seed=31)
    options = {"max_decoding_length": 12, **search}
    asks = {**options, "return_alignments": True}

    answers = translator.translate(sources, prefixes, [asks] * 7 + [options])

    for source, prefix, hypotheses in zip(sources[:7], prefixes, answers, strict=False):
        forced = 0 if "prefix_bias_beta" in search else len(prefix)
        expected = best(truth, source, prefix, forced, **options)
        assert [hypothesis["alignments"] for hypothesis in hypotheses] == expected
    assert [hypothesis["alignments"] for hypothesis in answers[7]] == [[]] * len(answers[7])


def test_a_draft_changes_no_position(engine_model: Path, truth: EngineTruth) -> None:
    loop = new_loop(engine_model)
    for source, prefix in zip(*ragged_rows(truth, 4, seed=32), strict=True):
        row = (source, prefix, {**ALIGNED, "min_decoding_length": 16})
        plain = decode_alone(loop, *row)
        free = plain["ids"][len(prefix) :]
        for draft in (free, [*free[:4], 3, *free[5:]], free[:6]):
            [name] = loop.admit([row], [draft])
            answer = run_to_end(loop)[name]
            assert answer["alignments"] == plain["alignments"]
            assert answer["draft_tokens_kept"] > 0


@pytest.mark.parametrize(
    "options",
    [
        {"sampling_topk": 0, "num_hypotheses": 4, "sampling_seed": 3},
        {"return_alternatives": True, "num_hypotheses": 4, "beam_size": 2},
    ],
    ids=str,
)
def test_hypotheses_look_where_they_look_when_forced(
    engine_model: Path, options: dict[str, Any]
) -> None:
    """Where CTranslate2 cannot be asked: of a draw, and of alternatives with beams.

    To the latter it gives one token the attention of another alternative.
    """
    loop = new_loop(engine_model)
    source = [300, *range(50, 60), END]
    answer = decode_alone(loop, source, [], {**options, "return_alignments": True})
    assert len({tuple(one["ids"]) for one in answer["hypotheses"]}) == 4
    translator = EngineTruth(engine_model)
    for one in answer["hypotheses"]:
        # It may not end where the hypothesis went on.
        wanted = {**GREEDY, "min_decoding_length": len(one["ids"])}
        result = translator.result(source, one["ids"][:-1], return_attention=True, **wanted)
        known = [int(np.argmax(weights)) for weights in result.attention[0]][: len(one["ids"])]
        assert one["alignments"] == known


def test_heads_of_the_operators_choice(engine_model: Path) -> None:
    source, prefix = [300, *range(50, 60), END], [301]
    row = ([source], [prefix], ALIGNED)
    parameters: dict[str, Any] = {"compute_type": "float32"}

    def positions(**chosen: Any) -> Row:
        return _core.Translator(str(engine_model), parameters | chosen).translate(*row)[0][0][
            "alignments"
        ]

    own = positions()
    assert positions(alignment_heads="[0]") == own  # CTranslate2's default
    last = positions(alignment_layer=1, alignment_heads="[0]")
    assert last == own
    others = {
        tuple(positions(alignment_layer=layer, **({"alignment_heads": heads} if heads else {})))
        for layer in (0, 1)
        for heads in ("", "[1]")
    }
    assert len(others) > 1
    for chosen, message in (
        ({"alignment_layer": 2}, "alignment_layer: the decoder has no layer 2; allowed are 0 to 1"),
        ({"alignment_heads": "[0, 99]"}, "alignment_heads: the decoder has no head 99"),
    ):
        for decoding in ("loop", "calls"):
            with pytest.raises(_core.Error, match=message) as caught:
                positions(**chosen, decoding=decoding)
            assert caught.value.code == "invalid_argument"
    assert positions() == own
    assert set(positions(alignment_layer=1, decoding="calls")) == {-1}  # calls cannot choose


def test_a_forced_unknown_token_is_replaced(engine_model: Path, truth: EngineTruth) -> None:
    """As CTranslate2 does; where the prefix reaches the limit, too, which a call then runs."""
    translator = _core.Translator(str(engine_model), {"compute_type": "float32"})
    unknown = truth.ids["<unk>"]
    source, prefix = [300, *range(50, 60), END], [301, unknown, 60, unknown]
    for limit in (12, 4, 3):
        options = {"beam_size": 1, "replace_unknowns": True, "max_decoding_length": limit}
        [[answer]] = translator.translate([source], [prefix], options)
        assert [answer["ids"]] == truth.hypotheses(source, prefix, **options)
        assert answer["grown"] == (answer["ids"] if limit == 12 else [])
        assert unknown not in answer["ids"]
    assert sum(translator.calls) >= 2


def test_models_that_chose_other_heads_share_no_run(engine_model: Path) -> None:
    """They share files, weights and threads; an equal row of each waits, and each runs."""
    settings = {"compute_type": "float32", "inter_threads": "1", "intra_threads": "1"}
    chosen = [{}, {"alignment_layer": 0, "alignment_heads": "[1]"}]
    models = [_core.Translator(str(engine_model), {**settings, **heads}) for heads in chosen]
    row = [[300, *range(50, 60), END]]
    alone = [model.translate(row, parameters=ALIGNED) for model in models]
    assert alone[0] != alone[1]
    with worker_held(models[0]):
        senders = [Sender(model, row, ALIGNED) for model in models]
        wait_until(lambda: all(model.waiting >= 1 for model in models))
    assert [sender.ended().answers for sender in senders] == alone


@pytest.mark.parametrize("forced", [[END, 60], [60, END, END, 61], [60, END]], ids=str)
def test_a_call_keeps_forced_end_tokens(engine_model: Path, forced: Row) -> None:
    """As a loop does, though the call takes end tokens off before it replaces unknown ones."""
    row = ([[300, *range(50, 60), END]], [[301, *forced]])
    options = {**ALIGNED, "replace_unknowns": True, "max_decoding_length": 12}
    found = [
        _core.Translator(
            str(engine_model), {"compute_type": "float32", "decoding": decoding}
        ).translate(*row, options)[0][0]
        for decoding in ("calls", "loop")
    ]
    for name in ("ids", "alignments", "finish_reason"):
        assert found[0][name] == found[1][name]


def test_where_nothing_is_to_be_translated(engine_model: Path) -> None:
    translator = _core.Translator(str(engine_model), {"compute_type": "float32"})
    [[answer]] = translator.translate([[END]], [[301, 60]], ALIGNED)
    assert answer["ids"] == [301, 60]
    assert answer["alignments"] == [-1, -1]
    [[answer]] = translator.translate([[300, 60, END]], [[301]], ALIGNED)
    assert answer["alignments"][0] == -1
    assert min(answer["alignments"][1:]) >= 0


@pytest.mark.parametrize("after", range(4))
def test_a_step_that_fails_changes_no_position(engine_model: Path, after: int) -> None:
    model = _core.LoopModel(
        str(engine_model), {"compute_type": "float32"}, damaged="decoder/projection"
    )
    rows = [([300, *range(50, 62), END], [], {**ALIGNED, "beam_size": beams}) for beams in (1, 4)]
    plain = [decode_alone(_core.DecodeLoop(model), *row) for row in rows]
    loop = _core.DecodeLoop(model)
    names = loop.admit(rows)
    model.fail_after(after)
    answers: dict[int, Any] = {}
    while loop.running:
        try:
            answers.update(loop.step()[1])
        except _core.Error:
            model.fail_after(-1)
    assert [answers[name]["alignments"] for name in names] == [one["alignments"] for one in plain]
