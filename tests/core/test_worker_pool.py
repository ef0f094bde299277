# SPDX-License-Identifier: Apache-2.0
"""How rows meet: calls across requests, equal rows, shared weights and workers."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from core.engine_truth import END, EngineTruth, ragged_rows
from ct2_triton import _core
from support.commands import run

ONE_WORKER = {"inter_threads": "1", "compute_type": "float32", "decoding": "calls"}


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def test_rows_of_one_request_share_calls(engine_model: Path, truth: EngineTruth) -> None:
    translator = _core.Translator(str(engine_model), {**ONE_WORKER, "max_batch_rows": "16"})
    sources, prefixes = ragged_rows(truth, 64)
    translator.translate(sources, prefixes, {"beam_size": 1})
    assert sum(translator.calls) == 64
    assert max(translator.calls) == 16


def test_the_token_budget_bounds_a_call(engine_model: Path) -> None:
    translator = _core.Translator(str(engine_model), {**ONE_WORKER, "max_batch_tokens": "100"})
    rows = [[10] * 19 + [11 + i, END] for i in range(20)]  # 21 tokens each
    translator.translate(rows, None, {"beam_size": 1, "max_decoding_length": 3})
    assert max(translator.calls) == 4


def _mean_call(translator: Any, rows: list[list[int]], **options: Any) -> float:
    before = len(translator.calls)
    translator.translate(rows, [row[:1] for row in rows], {"beam_size": 4, **options})
    calls = translator.calls[before:]
    return sum(calls) / len(calls)


def test_beam_rows_of_different_limits_meet_while_few_reach_them(
    engine_model: Path, truth: EngineTruth
) -> None:
    translator = _core.Translator(str(engine_model), {**ONE_WORKER, "max_batch_rows": "16"})
    rows = [row for row in ragged_rows(truth, 900, seed=3)[0] if len(row) > 6]
    roomy = {"max_decoding_length_multiple": 4.0}
    assert _mean_call(translator, rows[:64], **roomy) > 12
    # Where every row reaches its limit, running beyond it would be work for nothing.
    tight = {"max_decoding_length_multiple": 0.5}
    _mean_call(translator, rows[64:128], **tight)
    assert _mean_call(translator, rows[128:192], **tight) < 8
    # And back again: rows that end by themselves are counted too.
    _mean_call(translator, rows[192:500], **roomy)
    assert _mean_call(translator, rows[500:564], **roomy) > 12


def test_beam_rows_of_one_limit_meet_though_all_reach_it(
    engine_model: Path, truth: EngineTruth
) -> None:
    """None of them runs beyond its limit for another."""
    translator = _core.Translator(str(engine_model), {**ONE_WORKER, "max_batch_rows": "16"})
    rows = [row for row in ragged_rows(truth, 300, seed=3)[0] if len(row) > 6]
    _mean_call(translator, rows[:128], max_decoding_length_multiple=0.5)
    alike = [[*row[:6], END] for row in rows[128:144]]
    assert _mean_call(translator, alike, max_decoding_length_multiple=0.5) == 16


def test_equal_rows_run_once(engine_model: Path, truth: EngineTruth) -> None:
    """A single call of a batch of one row: all the others only wait for it."""
    translator = _core.Translator(str(engine_model), {**ONE_WORKER, "max_batch_rows": "1"})
    source = [truth.languages[0], 20, 21, 22, END]
    prefix = [truth.languages[1]]
    answers = translator.translate([source] * 30, [prefix] * 30, {"beam_size": 4})
    assert all(answer == answers[0] for answer in answers)
    assert sum(translator.calls) == 30
    assert len(translator.calls) == 1


def test_equal_rows_with_other_options_do_not_meet(engine_model: Path) -> None:
    translator = _core.Translator(str(engine_model), ONE_WORKER)
    rows = [[20, 21, 22, END]]
    short = translator.translate(rows, None, {"max_decoding_length": 2})
    long = translator.translate(rows, None, {"max_decoding_length": 3})
    assert len(short[0][0]["ids"]) == 2
    assert len(long[0][0]["ids"]) == 3


def test_more_rows_than_may_queue(engine_model: Path, truth: EngineTruth) -> None:
    """A full queue makes the sender wait; nothing is lost and nothing locks up."""
    translator = _core.Translator(str(engine_model), {"max_queued_rows": "4"})
    sources, prefixes = ragged_rows(truth, 40)
    options = {"beam_size": 1, "max_decoding_length": 10}
    expected = [
        truth.hypotheses(s, p, **options)[0] for s, p in zip(sources, prefixes, strict=True)
    ]
    answers: dict[int, Any] = {}

    def send(index: int) -> None:
        [[hypothesis]] = translator.translate([sources[index]], [prefixes[index]], options)
        answers[index] = hypothesis["ids"]

    threads = [threading.Thread(target=send, args=(index,)) for index in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answers[index] for index in range(40)] == expected


@pytest.mark.plain_process
def test_models_of_the_same_files_share_weights() -> None:
    """20 more translators on one directory cost next to nothing beside one copy of the weights."""
    from support.tiny import tiny_engine_model
    from tiny_models import TinyOptions

    directory = tiny_engine_model("nllb", TinyOptions(vocab_size=100_000, d_model=64))
    size = (directory / "model.bin").stat().st_size
    first = _core.Translator(str(directory), ONE_WORKER)
    before = _resident_bytes()
    others = [
        _core.Translator(str(directory), {**ONE_WORKER, "max_batch_rows": str(60 + i)})
        for i in range(20)
    ]
    grown = _resident_bytes() - before
    assert size > 20e6
    assert grown < 5 * size
    assert len({t.description for t in [first, *others]}) == 21


def test_changed_files_are_another_model(tmp_path: Path, engine_model: Path) -> None:
    from support.tiny import tiny_engine_model
    from tiny_models import TinyOptions

    directory = tmp_path / "model"
    shutil.copytree(engine_model, directory)
    rows = [[20, 21, 22, 23, END]]
    old = _core.Translator(str(directory), ONE_WORKER)
    before = old.translate(rows)
    shutil.rmtree(directory)
    shutil.copytree(tiny_engine_model("nllb", TinyOptions(seed=7)), directory)
    new = _core.Translator(str(directory), ONE_WORKER)
    assert old.translate(rows) == before
    assert new.translate(rows) != before


def test_files_overwritten_in_place_are_another_model(tmp_path: Path) -> None:
    """Same inode, same size, and the time of change set back, as some copy programs do."""
    from support.tiny import tiny_engine_model
    from tiny_models import TinyOptions

    directory = tmp_path / "model"
    shutil.copytree(tiny_engine_model("nllb", TinyOptions(seed=6)), directory)
    rows = [[20, 21, 22, 23, END]]
    old = _core.Translator(str(directory), ONE_WORKER)
    before = old.translate(rows)
    weights = directory / "model.bin"
    status = weights.stat()
    other = (tiny_engine_model("nllb", TinyOptions(seed=7)) / "model.bin").read_bytes()
    assert len(other) == status.st_size
    with weights.open("r+b") as file:
        file.write(other)
    os.utime(weights, ns=(status.st_atime_ns, status.st_mtime_ns))
    new = _core.Translator(str(directory), ONE_WORKER)
    assert new.translate(rows) != before


def test_a_load_does_not_wait_for_that_of_other_files(tmp_path: Path, engine_model: Path) -> None:
    """One load reads from a pipe that nobody fills; meanwhile another model translates."""
    slow = tmp_path / "slow"
    shutil.copytree(engine_model, slow)
    config = slow / "config.json"
    config.rename(tmp_path / "config.json")
    os.mkfifo(config)
    refusals: list[str] = []
    other: list[Any] = []
    row = [[300, 50, 60, END]]

    def load() -> None:
        try:
            _core.Translator(str(slow), ONE_WORKER)
        except _core.Error as error:
            refusals.append(str(error))

    first = threading.Thread(target=load)
    first.start()
    pipe = config.open("wb", buffering=0)  # opens once the load reads: it is under way
    try:
        second = threading.Thread(
            target=lambda: other.append(
                _core.Translator(str(engine_model), ONE_WORKER).translate(row)
            )
        )
        second.start()
        second.join(timeout=600)  # for ever, if it waited for the first
        assert first.is_alive()
        assert len(other) == 1
    finally:
        shutil.copy(tmp_path / "config.json", slow / "copy.json")
        (slow / "copy.json").rename(config)  # a file, which the library can read again
        pipe.write(config.read_bytes())
        pipe.close()
        first.join()
        second.join()
    assert "changed while they were loaded" in refusals[0]  # the pipe has become a file
    assert _core.Translator(str(slow), ONE_WORKER).translate(row) == other[0]


# In a process of its own: a translator of another test may live on, where the test failed.
_COUNT_THREADS = """
import gc, sys, time
from pathlib import Path
from ct2_triton import _core

def threads():
    return len(list(Path("/proc/self/task").iterdir()))

counts = [threads()]
translators = [
    _core.Translator(sys.argv[1], {"inter_threads": inter, "intra_threads": "1"})
    for inter in ("1", "2", "3")
]
for translator in translators:
    translator.translate([[50, 60 + i, 2] for i in range(12)])  # OpenMP starts none of its own
counts.append(threads())
del translators, translator
gc.collect()
for _ in range(6000):  # the system takes a thread that has ended out of its list a little later
    if threads() == counts[0]:
        break
    time.sleep(0.01)
counts.append(threads())
print(*counts)
"""


@pytest.mark.plain_process
def test_threads_are_as_many_as_cores_for_all_models(engine_model: Path) -> None:
    """They come with the first model and end with the last, whatever each asks for."""
    printed = run(sys.executable, "-c", _COUNT_THREADS, engine_model).stdout
    before, at_work, after = map(int, printed.split())
    assert at_work == before + _core.usable_cores()
    assert after == before


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"compute_type": "int9"}, "compute_type"),
        ({"beam_size": "8", "max_beam_size": "4"}, "max_beam_size"),
        ({"end_token": "[123456]"}, "end_token"),
    ],
)
def test_options_that_cannot_be_served_fail_the_load(
    engine_model: Path, parameters: dict[str, str], text: str
) -> None:
    with pytest.raises(_core.Error, match=text):
        _core.Translator(str(engine_model), parameters)
