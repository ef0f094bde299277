# SPDX-License-Identifier: Apache-2.0
"""The decode loop of a GPU, on a CPU: made of operations that CTranslate2 has for every device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core import loop_matrix
from core.engine_truth import END, EngineTruth, ragged_rows
from core.loop_helpers import GREEDY, assert_nothing_is_lost, new_loop, run_to_end
from core.test_loop import RULES, both
from core.test_loop_matrix import INT8_DIFFERENCES, KINDS
from ct2_triton import _core
from support.fewer import fewer
from support.tiny import tiny_engine_model
from support.waiting import wait_until


@pytest.fixture(autouse=True)
def on_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CT2_TRITON_LOOP", "device")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return loop_matrix.matrix_models(tiny_engine_model, tmp_path_factory.mktemp("matrix"))


@pytest.fixture
def loop(on_device: None, engine_model: Path) -> Any:
    return new_loop(engine_model)


@pytest.mark.parametrize("kind", KINDS)
def test_float32_answers_are_those_of_the_row_alone(models: dict[str, Path], kind: str) -> None:
    """Rows of all ages and options share the steps, and join at random ones."""
    model = loop_matrix.MatrixModel(kind, models[kind], "float32")

    tally = loop_matrix.run(model, fewer(120), seed=18)

    assert tally.different == []
    assert tally.ties <= 1
    assert tally.score_error < 1e-4


@pytest.mark.gpu
@pytest.mark.skipif(_core.gpu_count() == 0, reason="no GPU here")
@pytest.mark.parametrize("kind", KINDS)
def test_float32_answers_on_a_gpu_are_those_of_the_row_alone(
    models: dict[str, Path], kind: str
) -> None:
    model = loop_matrix.MatrixModel(kind, models[kind], "float32", device="cuda")

    tally = loop_matrix.run(model, 120, seed=18)

    assert tally.different == []
    assert tally.score_error < 1e-3


@pytest.mark.parametrize("kind", ["nllb", "marian", "t5"])
def test_int8_answers_are_mostly_those_of_the_row_alone(models: dict[str, Path], kind: str) -> None:
    model = loop_matrix.MatrixModel(kind, models[kind], "int8")

    tally = loop_matrix.run(model, 100, seed=19)

    assert len(tally.different) <= INT8_DIFFERENCES * tally.rows
    assert tally.score_error < 0.05


@pytest.mark.parametrize("options", RULES, ids=lambda options: str(options)[:60])
def test_rule(loop: Any, truth: EngineTruth, options: dict[str, Any]) -> None:
    sources, prefixes = ragged_rows(truth, 4, seed=5)
    for source, prefix in zip(sources, prefixes, strict=True):
        for forced in (prefix, [END, *prefix, *source[1:3], END]):
            found, expected = both(loop, truth, source, forced, options)
            assert found == expected


def test_a_step_takes_one_token_of_each_row(loop: Any) -> None:
    """So a row joins with its first forced token, and drafts are not tried."""
    options = {**GREEDY, "min_decoding_length": 5, "max_decoding_length": 5}
    names = loop.admit(
        [([5, 6, 7], [10, 11, 12], options), ([8, 9], [], options)], [[], [20, 21, 22]]
    )
    grown = [[name for name, _ in loop.step()[0]] for _ in range(5)]

    assert grown[:3] == [[names[1]]] * 3
    assert sorted(set(grown[3])) == names
    assert loop.running == 0
    counters = loop.counters
    assert (counters["steps"], counters["step_rows"], counters["step_tokens"]) == (5, 10, 10)
    assert counters["draft_tokens"] == 0
    assert counters["encodes"] == 1  # sources of all lengths go together


def test_no_row_skips_a_step(on_device: None) -> None:
    """Its attention forgets a row that does: one that is long, and so heavy, beside a short one."""
    directory = tiny_engine_model("t5")  # which has no positions
    truth = EngineTruth(directory)
    parameters = {"compute_type": "float32", "decoding_length_limit": "4000"}
    loop = _core.DecodeLoop(_core.LoopModel(str(directory), parameters))
    long = {**GREEDY, "min_decoding_length": 1540, "max_decoding_length": 1540}
    short = {**GREEDY, "min_decoding_length": 8, "max_decoding_length": 8}
    rows = [([5, 6, 7, END], [], long), ([8, 9, END], [], short)]
    names = loop.admit(rows[:1])
    answers: dict[int, Any] = {}
    for _ in range(1520):
        answers.update(loop.step()[1])
    names += loop.admit(rows[1:])
    while loop.running:
        answers.update(loop.step()[1])
    for name, row in zip(names, rows, strict=True):
        assert [answers[name]["ids"]] == truth.hypotheses(row[0], row[1], **row[2])


FAILURES = [
    *((f"decoder/{product}", after)
      for product in ("layer_0/self_attention/linear_0", "layer_1/ffn/linear_1", "projection")
      for after in range(5)),
    *(("decoder/layer_1/attention/linear_1", after) for after in (0, 1)),  # of joining rows
]  # fmt: skip


@pytest.mark.parametrize(("product", "after"), FAILURES)
def test_a_failure_of_the_library_leaves_the_rows_as_they_were(
    engine_model: Path, truth: EngineTruth, product: str, after: int
) -> None:
    """A step that fails in some layer, or behind the last, is forgotten and done again."""
    assert_nothing_is_lost(engine_model, truth, product, after)


def test_a_row_that_is_removed_after_a_failure(engine_model: Path, truth: EngineTruth) -> None:
    """The others go on from where they were, though they are arranged anew."""
    product = "decoder/layer_1/ffn/linear_1"
    model = _core.LoopModel(str(engine_model), {"compute_type": "float32"}, damaged=product)
    loop = _core.DecodeLoop(model)
    sources, prefixes = ragged_rows(truth, 3, seed=10)
    options = {**GREEDY, "min_decoding_length": 9}
    names = loop.admit([(s, p, options) for s, p in zip(sources, prefixes, strict=True)])
    for _ in range(3):
        loop.step()
    model.fail_after(0)
    with pytest.raises(_core.Error, match="a product failed"):
        loop.step()
    model.fail_after(-1)
    loop.remove(names[1])
    answers = run_to_end(loop)

    assert sorted(answers) == [names[0], names[2]]
    for i in (0, 2):
        assert [answers[names[i]]["ids"]] == truth.hypotheses(sources[i], prefixes[i], **options)


def test_the_cache_of_a_row_is_what_was_said(engine_model: Path) -> None:
    """Its own tokens and its source's keys and values; what the encoder left is shared."""
    model = _core.LoopModel(str(engine_model), {"compute_type": "float32"})
    loop = _core.DecodeLoop(model)
    row = ([5, 6, 7], [10], {**GREEDY, "max_decoding_length": 50})
    own, source = model.cache_bytes(*row)
    for said, least in ((own, 4 * 2 * 2 * 64 * (50 + 3)), (source, 4 * 64 * 3)):
        assert least <= said <= least * 9 / 8 + 4096
    loop.admit([row] * 3)
    assert loop.cache_bytes == 3 * own + source
    run_to_end(loop)
    assert (loop.cache_bytes, loop.kept_bytes) == (0, 0)


@pytest.mark.parametrize("kind", ["nllb", "marian", "t5", "no-stored-positions", "vocabulary-map"])
def test_the_trial_covers_it(models: dict[str, Path], kind: str) -> None:
    report = _core.LoopModel(str(models[kind]), {"compute_type": "float32"}).trial()

    assert report.tokens == 12
    assert report.largest_error < report.tolerance / 10
    assert report.hypotheses == 0  # it runs no beams


@pytest.mark.parametrize(
    "product",
    ["layer_1/self_attention/linear_0", "layer_0/attention/linear_1", "layer_1/attention/linear_2"],
)
def test_a_wrong_product_does_not_pass(models: dict[str, Path], product: str) -> None:
    model = _core.LoopModel(
        str(models["nllb-ends-by-itself"]), {"compute_type": "float32"},
        damaged=f"decoder/{product}", factor=1.02,
    )  # fmt: skip
    with pytest.raises(_core.Error, match="does not agree with CTranslate2") as caught:
        model.trial()
    assert caught.value.code == "unsupported"


# Options, and whether a call of CTranslate2 runs them.
STEPS_BACK: list[tuple[dict[str, Any], bool]] = [
    ({}, False),
    ({"sampling_topk": 4, "sampling_seed": 1}, False),
    ({"beam_size": 2}, True),
    ({"prefix_bias_beta": 0.5}, True),
    ({"return_alternatives": True, "num_hypotheses": 2}, True),
    ({"sampling_topk": 4, "num_hypotheses": 2}, True),
    ({"return_alignments": True}, True),
    ({"replace_unknowns": True}, True),
]


@pytest.mark.parametrize(("options", "in_call"), STEPS_BACK)
def test_rows_that_it_does_not_run_go_to_calls(
    engine_model: Path, options: dict[str, Any], in_call: bool
) -> None:
    parameters = {"compute_type": "float32", "max_num_hypotheses": 4}
    loops = _core.Translator(str(engine_model), {**parameters, "decoding": "loop"})
    calls = _core.Translator(str(engine_model), {**parameters, "decoding": "calls"})
    assert "by operations of CTranslate2, trial of 12 tokens" in loops.description

    [[row, *_]] = loops.translate([[5, 6, 7]], [[10, 11]], {**GREEDY, **options})

    if in_call:
        assert steps_of(loops) == 0
    else:  # what a loop has done is counted behind the answer
        wait_until(lambda: steps_of(loops) > 0, "a step of a loop")
    if "sampling_topk" not in options:
        [[expected, *_]] = calls.translate([[5, 6, 7]], [[10, 11]], {**GREEDY, **options})
        assert row["ids"] == expected["ids"]


def steps_of(translator: Any) -> int:
    """Of all its loops."""
    return sum(loop["steps"] for loop in translator.loops)


def test_a_seed_needs_a_search_that_it_runs(engine_model: Path) -> None:
    translator = _core.Translator(str(engine_model), {"compute_type": "float32"})
    options = {**GREEDY, "sampling_topk": 4, "num_hypotheses": 2, "sampling_seed": 3}
    with pytest.raises(_core.Error, match="greedy searches of one hypothesis only"):
        translator.translate([[5, 6, 7]], [[10]], options)
    assert translator.translate([[5, 6, 7]], [[10]], GREEDY)
