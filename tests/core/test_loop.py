# SPDX-License-Identifier: Apache-2.0
"""The decode loop: its search rules one by one, rows that leave, failures, memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import END, EngineTruth, Row, ragged_rows
from core.loop_helpers import (
    GREEDY,
    assert_nothing_is_lost,
    decode_alone,
    new_loop,
    run_to_end,
)
from ct2_triton import _core
from support.tiny import tiny_engine_model

ROWS = 30
KEPT_LOGITS = 4 * 2**18


def both(
    loop: Any, truth: EngineTruth, source: Row, prefix: Row, options: dict[str, Any]
) -> tuple[Any, Any]:
    """The loop's answer and CTranslate2's, with ids and score."""
    parameters = {k: json.dumps(v) if isinstance(v, list) else v for k, v in options.items()}
    if "suppress_sequences" in options:
        sequences = [truth.tokens(ids) for ids in options["suppress_sequences"]]
        options = {**options, "suppress_sequences": sequences}
    result = truth.result(source, prefix, **{**GREEDY, **options})
    expected = ([truth.ids[token] for token in result.hypotheses[0]], (result.scores or [0])[0])
    answer = decode_alone(loop, source, prefix, parameters)
    return (answer["ids"], pytest.approx(answer["score"], abs=1e-4)), expected


# One rule each; see GreedySearch.
RULES: list[dict[str, Any]] = [
    {"return_scores": True, "length_penalty": 1},
    {"return_scores": True, "length_penalty": 0},
    {"return_scores": True, "length_penalty": 2.5},
    {"min_decoding_length": 0},
    {"min_decoding_length": 12},
    {"repetition_penalty": 1.5},
    {"repetition_penalty": 0.7},
    {"repetition_penalty": 3, "return_scores": True},
    {"no_repeat_ngram_size": 1},
    {"no_repeat_ngram_size": 2, "return_scores": True},
    {"no_repeat_ngram_size": 100},
    {"disable_unk": True},
    {"suppress_sequences": [[END]]},
    {"suppress_sequences": [[5], [6], [7, 8]]},
    {"end_token": list(range(4, 300))},
    {"end_token": list(range(4, 300)), "min_decoding_length": 9, "return_scores": True},
    {"end_token": list(range(4, 300)), "return_end_token": True},
    {"return_end_token": True, "return_scores": True},
    {"max_decoding_length": 1, "return_scores": True},
    {"max_decoding_length": 2},
]


@pytest.mark.parametrize("options", RULES, ids=lambda options: str(options)[:60])
def test_rule(loop: Any, truth: EngineTruth, options: dict[str, Any]) -> None:
    sources, prefixes = ragged_rows(truth, ROWS, seed=5)
    for source, prefix in zip(sources, prefixes, strict=True):
        # Repeats and an end token among the forced tokens: penalty and n-grams see them.
        for forced in (prefix, [*prefix, *source[1:4], *source[1:3]], [END, *prefix, END]):
            found, expected = both(loop, truth, source, forced, options)
            assert found == expected


def test_suppressed_sequences_see_forced_tokens(loop: Any, truth: EngineTruth) -> None:
    sources, prefixes = ragged_rows(truth, ROWS, seed=6)
    met = 0
    for source, prefix in zip(sources, prefixes, strict=True):
        if not prefix:
            continue
        free = truth.hypotheses(source, prefix, **GREEDY)[0]
        if len(free) <= len(prefix):
            continue
        banned = {"suppress_sequences": [[prefix[-1], free[len(prefix)]]]}
        found, expected = both(loop, truth, source, prefix, banned)
        assert found == expected
        assert found[0] != free
        met += 1
    assert met > ROWS / 3


@pytest.mark.parametrize("beyond", [-1, 0, 1, 7])
@pytest.mark.parametrize("ends", [False, True])
def test_a_prefix_at_the_limit_is_cut_there(
    loop: Any, truth: EngineTruth, beyond: int, ends: bool
) -> None:
    limit = 6
    prefix = list(range(10, 10 + limit + beyond))
    if ends:
        prefix[-1] = END
    options = {"max_decoding_length": limit, "return_scores": True}
    found, expected = both(loop, truth, [20, 21, 22, END], prefix, options)
    assert found == expected


@pytest.mark.parametrize("length", [100, 127])
def test_a_long_prefix_is_fed_in_several_steps(
    engine_model: Path, truth: EngineTruth, length: int
) -> None:
    """Up to the last position of the model, beside a short row that goes on meanwhile."""
    positions = 128
    loop = new_loop(engine_model)
    options = {**GREEDY, "max_decoding_length": positions}
    sources, _ = ragged_rows(truth, 2, seed=8)
    prefix = [10 + i % 90 for i in range(length)]
    long, short = loop.admit([(sources[0], prefix, options), (sources[1], [], options)])
    answers = run_to_end(loop)
    for name, source, forced in ((long, sources[0], prefix), (short, sources[1], [])):
        assert [answers[name]["ids"]] == truth.hypotheses(source, forced, **options)


def test_forced_tokens_of_all_rows_share_a_step() -> None:
    """Long prefixes that come together do not hold up who waits for its next token."""
    directory = tiny_engine_model("t5")  # which has no positions
    truth = EngineTruth(directory)
    loop = new_loop(directory)
    prefixes = [[10 + (i * 7 + row) % 900 for i in range(250)] for row in range(12)]
    limit = {**GREEDY, "min_decoding_length": 40, "max_decoding_length": 40}
    longer = {**limit, "min_decoding_length": 260, "max_decoding_length": 260}
    rows = [([30, 31], [], limit), *(([20 + i, 21], p, longer) for i, p in enumerate(prefixes))]
    names = loop.admit(rows)
    answers: dict[int, Any] = {}
    most = 0  # tokens of a step beside one of each row
    while loop.running:
        without = loop.counters["step_tokens"] + loop.running
        answers.update(loop.step()[1])
        most = max(most, loop.counters["step_tokens"] - without)

    assert most == 127
    for name, (source, prefix, options) in zip(names, rows, strict=True):
        assert [answers[name]["ids"]] == truth.hypotheses(source, prefix, **options)


def test_more_forced_tokens_than_a_step_takes() -> None:
    """T5 has no positions that end. Its tiny model answers as alone, and the others step on."""
    directory = tiny_engine_model("t5")
    truth = EngineTruth(directory)
    loop = new_loop(directory)
    options = {**GREEDY, "max_decoding_length": 420}
    prefix = [10 + i * 7 % 900 for i in range(400)]
    long, short = loop.admit([([20, 21, 22], prefix, options), ([30, 31], [], GREEDY)])
    grew = [loop.step()[0] for _ in range(4)]

    assert [[name for name, _ in step if name == short] for step in grew] == [[short]] * 4
    # 401 tokens, 128 a step: the first token is chosen in the fourth, and all are reported then.
    assert [sum(name == long for name, _ in step) for step in grew] == [0, 0, 0, 401]
    assert [run_to_end(loop)[long]["ids"]] == truth.hypotheses([20, 21, 22], prefix, **options)


def test_room_for_logits_shrinks(engine_model: Path) -> None:
    """Only rows that change logits need any; a step may have many of them, and the next none."""
    model = _core.LoopModel(str(engine_model), {"compute_type": "int8"})
    loop = _core.DecodeLoop(model)
    outputs = len(json.loads((engine_model / "shared_vocabulary.json").read_text()))
    least = 300 * outputs * 4
    lasting = {**GREEDY, "min_decoding_length": 120, "max_decoding_length": 120}
    penalized = {**GREEDY, "repetition_penalty": 1.2, "max_decoding_length": 4}
    assert loop.logits_bytes == 0
    loop.admit([([5, 6, END], [], lasting), *[([7, 8, END], [], penalized)] * 300])
    loop.step()
    assert loop.logits_bytes >= least > KEPT_LOGITS
    while loop.running > 1:
        loop.step()
    for _ in range(100):
        loop.step()
    assert loop.running == 1
    assert loop.logits_bytes <= KEPT_LOGITS  # though the loop runs on
    loop.admit([([7, 8, END], [], penalized)] * 300)
    loop.step()
    assert loop.logits_bytes >= least
    run_to_end(loop)
    assert loop.logits_bytes == 0


def test_rows_leave_when_they_are_removed(loop: Any, truth: EngineTruth) -> None:
    sources, prefixes = ragged_rows(truth, 6)
    names = loop.admit([(s, p, GREEDY) for s, p in zip(sources, prefixes, strict=True)])
    in_use = loop.cache_bytes
    loop.step()
    loop.remove(names[1])
    loop.remove(names[4])
    loop.remove(names[4])
    loop.remove(10**9)
    assert loop.running == 4
    assert loop.cache_bytes < in_use

    answers = run_to_end(loop)

    assert sorted(answers) == [names[i] for i in (0, 2, 3, 5)]
    for i in (0, 2, 3, 5):
        assert [answers[names[i]]["ids"]] == truth.hypotheses(sources[i], prefixes[i], **GREEDY)
    assert loop.cache_bytes == 0


def test_the_cache_of_a_row_is_what_was_said(engine_model: Path) -> None:
    model = _core.LoopModel(str(engine_model), {"compute_type": "float32"})
    loop = _core.DecodeLoop(model, keep_bytes=100_000)
    row = ([5, 6, 7], [10], {**GREEDY, "max_decoding_length": 50})
    own, source = model.cache_bytes(*row)
    # 2 layers, keys and values of 64 numbers, for 50 tokens and a source of 3; an eighth more.
    for said, tokens in ((own, 50), (source, 3)):
        least = 4 * 2 * 2 * 64 * tokens
        assert least <= said <= least * 9 / 8 + 4096
    assert loop.cache_bytes == 0
    loop.admit([row])
    assert loop.cache_bytes == own + source
    loop.admit([row] * 3)
    assert loop.cache_bytes == 4 * own + source
    run_to_end(loop)
    assert loop.cache_bytes == 0
    assert 0 < loop.kept_bytes <= 100_000


def test_the_caches_of_all_rows_are_kept_for_the_next(engine_model: Path) -> None:
    loop = new_loop(engine_model)
    rows = [([5, 6, 7 + i], [], GREEDY) for i in range(8)]
    loop.admit(rows[:4])
    in_use = loop.cache_bytes
    run_to_end(loop)
    assert (loop.cache_bytes, loop.kept_bytes) == (0, in_use)
    loop.admit(rows[:1])
    assert (loop.cache_bytes, loop.kept_bytes) == (in_use / 4, in_use * 3 / 4)
    loop.admit([*rows[1:], ([5, 6], [], GREEDY)])
    assert (loop.cache_bytes, loop.kept_bytes) == (in_use * 9 / 4, 0)


def test_as_much_memory_is_kept_as_running_rows_have(engine_model: Path) -> None:
    """So rows that come and go take none from the system; what the last ones had goes."""
    model = _core.LoopModel(str(engine_model), {"compute_type": "float32"})
    loop = _core.DecodeLoop(model, keep_bytes=0)

    def admit(tokens: int) -> None:
        length = {"min_decoding_length": tokens, "max_decoding_length": tokens}
        loop.admit([([5, 6, 7], [], {**GREEDY, **length})])

    for tokens in (6, 6, 12, 12):
        admit(tokens)
    while loop.running > 2:
        loop.step()
    kept = loop.kept_bytes
    assert 0 < kept <= loop.cache_bytes
    for _ in range(2):
        admit(6)
    assert loop.kept_bytes < kept
    run_to_end(loop)
    assert (loop.cache_bytes, loop.kept_bytes) == (0, 0)


def test_counters(engine_model: Path) -> None:
    model = _core.LoopModel(str(engine_model), {"compute_type": "float32"})
    loop = _core.DecodeLoop(model)
    options = {**GREEDY, "min_decoding_length": 5, "max_decoding_length": 5}
    loop.admit([([5, 6, 7], [10, 11], options), ([8, 9, 10], [], options), ([5], [], options)])
    run_to_end(loop)
    counters = loop.counters
    assert counters["encodes"] == 1
    assert (counters["encoded_rows"], counters["encoded_tokens"]) == (3, 7)
    assert (counters["steps"], counters["step_rows"]) == (5, 3 + 5 + 5)
    assert counters["step_tokens"] == 5 + 5 + 5
    assert counters["encode_ns"] > 0
    assert counters["step_ns"] > 0


FAILURES = [
    *((f"decoder/{product}", after)
      for product in ("layer_0/self_attention/linear_0", "layer_1/ffn/linear_1", "projection")
      for after in range(5)),
    ("decoder/layer_1/attention/linear_1", 0),  # keys and values of a source
]  # fmt: skip


@pytest.mark.parametrize(("product", "after"), FAILURES)
def test_a_failure_of_the_library_leaves_the_rows_as_they_were(
    engine_model: Path, truth: EngineTruth, product: str, after: int
) -> None:
    """Whatever fails in the middle of an encode or of a step is done again, and nothing is lost."""
    assert_nothing_is_lost(engine_model, truth, product, after)


def test_loops_of_one_model_run_in_threads(engine_model: Path, truth: EngineTruth) -> None:
    from concurrent.futures import ThreadPoolExecutor

    model = _core.LoopModel(str(engine_model), {"compute_type": "float32"})
    sources, prefixes = ragged_rows(truth, 40)
    rows = [(s, p, GREEDY) for s, p in zip(sources, prefixes, strict=True)]

    def decode(_: int) -> list[Row]:
        loop = _core.DecodeLoop(model)
        names = loop.admit(rows)
        answers = run_to_end(loop)
        return [answers[name]["ids"] for name in names]

    expected = [truth.hypotheses(s, p, **GREEDY)[0] for s, p, _ in rows]
    with ThreadPoolExecutor(3) as pool:
        for answers in pool.map(decode, range(6)):
            assert answers == expected


def test_a_token_that_stands_twice_is_answered_by_its_first_id(
    engine_model: Path, tmp_path: Path
) -> None:
    """Calls look ids up by name, on the way in and out: the loop does the same."""
    import shutil

    model = tmp_path / "model"
    shutil.copytree(engine_model, model)
    path = model / "shared_vocabulary.json"
    tokens = json.loads(path.read_text())
    tokens[60] = tokens[50]
    path.write_text(json.dumps(tokens, ensure_ascii=False))
    loop, calls = new_loop(model), _core.Translator(str(model), {"compute_type": "float32"})
    for source, prefix in (([50, 51, END], [50]), ([60, 51, END], [60]), ([60, 60, 52, END], [])):
        answer = decode_alone(loop, source, prefix, {})
        [[expected]] = calls.translate([source], [prefix], GREEDY)
        assert answer["ids"] == expected["ids"]
        assert 60 not in answer["ids"]
