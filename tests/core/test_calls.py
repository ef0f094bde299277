# SPDX-License-Identifier: Apache-2.0
"""CTranslate2's own model for calls: loaded when a row needs it, gone after the last call."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import ctranslate2
import pytest

from core.loop_matrix import Row
from ct2_triton import _core
from ct2_triton.prepare.shipped import FOLDER
from model_bin import Variable, read_model_bin, write_model_bin
from support.tiny import tiny_engine_model
from support.waiting import wait_until
from tiny_families import TinyOptions

DEMO = FOLDER / "model"
INT8 = {"compute_type": "int8"}
GREEDY = {"beam_size": 1, "max_decoding_length": 24}
# A search that decode loops lack.
PENALIZED = {"beam_size": 3, "coverage_penalty": 0.2, "max_decoding_length": 24}


def answers(translator: Any, sources: list[Row], options: dict[str, Any]) -> list[Row]:
    """Each row alone: at int8, the rows of a call change how CTranslate2 rounds."""
    rows = [translator.translate([source], [source[:1]], options)[0] for source in sources]
    return [row[0]["ids"] for row in rows]


@pytest.fixture(scope="module")
def sources() -> list[Row]:
    rng = random.Random(17)
    return [[rng.randint(10, 300) for _ in range(rng.randint(1, 20))] for _ in range(12)]


@pytest.fixture(scope="module")
def expected(sources: list[Row]) -> list[Row]:
    """What CTranslate2 itself finds for each row alone."""
    truth = ctranslate2.Translator(str(DEMO), compute_type="int8", intra_threads=1)
    tokens = json.loads((DEMO / "shared_vocabulary.json").read_text(encoding="utf-8"))
    rows = [[tokens[i] for i in source] for source in sources]
    found = [truth.translate_batch([row], [row[:1]], **PENALIZED)[0] for row in rows]
    return [[tokens.index(token) for token in row.hypotheses[0]] for row in found]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Files of its own: no model of another test shares their weights."""
    return Path(shutil.copytree(DEMO, tmp_path / "demo"))


def test_the_first_call_loads_ctranslate2s_model(
    directory: Path, sources: list[Row], expected: list[Row]
) -> None:
    translator = _core.Translator(str(directory), INT8)
    greedy = answers(translator, sources, GREEDY)
    assert (translator.call_loads, translator.call_bytes) == (0, 0)
    before = translator.weight_bytes
    assert answers(translator, sources, PENALIZED) == expected
    assert translator.call_loads == 1
    assert translator.call_bytes > 0
    assert translator.weight_bytes == before + translator.call_bytes
    assert answers(translator, sources, GREEDY) == greedy


def test_the_model_leaves_after_the_last_call_and_comes_again(
    directory: Path, sources: list[Row], expected: list[Row]
) -> None:
    translator = _core.Translator(str(directory), {**INT8, "calls_idle_s": "0"})
    before = translator.weight_bytes
    assert answers(translator, sources[:1], PENALIZED) == expected[:1]
    wait_until(lambda: translator.call_bytes == 0)
    assert translator.weight_bytes == before
    assert translator.call_loads == 1
    assert answers(translator, sources[:1], PENALIZED) == expected[:1]
    assert translator.call_loads == 2


def test_the_idle_time_counts_from_the_last_call(
    directory: Path, sources: list[Row], expected: list[Row]
) -> None:
    """A model that is called as soon as it has come waits for no other call."""
    other = shutil.copytree(DEMO, directory.parent / "other")
    stays = _core.Translator(str(other), {**INT8, "calls_idle_s": "600"})
    leaves = _core.Translator(str(directory), {**INT8, "calls_idle_s": "0"})
    for translator in (stays, leaves):
        assert answers(translator, sources[:1], PENALIZED) == expected[:1]
    wait_until(lambda: 0 in (stays.call_bytes, leaves.call_bytes))
    assert (stays.call_bytes > 0, leaves.call_bytes) == (True, 0)


def test_rows_that_meet_while_the_model_comes_and_goes(
    directory: Path, sources: list[Row], expected: list[Row]
) -> None:
    translator = _core.Translator(
        str(directory), {**INT8, "calls_idle_s": "0", "max_batch_rows": "1"}
    )
    greedy = answers(translator, sources, GREEDY)
    start = threading.Barrier(4)
    found: dict[int, list[Row]] = {}

    def run(thread: int) -> None:
        start.wait()
        found[thread] = answers(translator, sources, GREEDY if thread % 2 else PENALIZED)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(4)] == [expected, greedy, expected, greedy]


def test_rows_that_wait_while_the_model_leaves_have_it_come_back(
    directory: Path, sources: list[Row], expected: list[Row]
) -> None:
    """With no idle time it may leave between two calls, though other rows wait."""
    options = {**INT8, "calls_idle_s": "0", "inter_threads": "1", "max_batch_rows": "1"}
    translator = _core.Translator(str(directory), options)
    assert answers(translator, sources[:1], PENALIZED) == expected[:1]
    found: list[list[Row]] = []

    def send() -> None:
        while translator.call_loads < 3:
            found.append(answers(translator, sources[:2], PENALIZED))

    senders = [threading.Thread(target=send, daemon=True) for _ in range(3)]
    for sender in senders:
        sender.start()
    wait_until(lambda: not any(sender.is_alive() for sender in senders), "answers", 100)
    assert found
    assert all(answer == expected[:2] for answer in found)


def test_models_on_the_same_files_share_the_model_of_calls(
    directory: Path, sources: list[Row], expected: list[Row]
) -> None:
    first = _core.Translator(str(directory), INT8)
    second = _core.Translator(str(directory), {**INT8, "inter_threads": "1"})
    assert answers(first, sources[:1], PENALIZED) == expected[:1]
    assert answers(second, sources[:1], PENALIZED) == expected[:1]
    assert (first.call_loads, second.call_loads) == (1, 1)


def test_a_model_that_decodes_in_calls_keeps_it(
    directory: Path, sources: list[Row], expected: list[Row]
) -> None:
    calls = _core.Translator(str(directory), {**INT8, "decoding": "calls", "calls_idle_s": "0"})
    beside = _core.Translator(str(directory), INT8)  # packs weights of its own
    greedy = answers(beside, sources, GREEDY)
    for _ in range(2):
        assert answers(calls, sources, PENALIZED) == expected
    assert answers(beside, sources, PENALIZED) == expected
    assert answers(beside, sources, GREEDY) == greedy
    assert calls.call_loads == 0


@pytest.mark.parametrize("change", ["replaced", "removed"])
def test_files_that_changed_since_the_load_fail_rows_that_need_calls(
    directory: Path, change: str, sources: list[Row]
) -> None:
    """And no others: another model's answers would be nonsense."""
    translator = _core.Translator(str(directory), INT8)
    greedy = answers(translator, sources, GREEDY)
    if change == "replaced":
        shutil.copy(directory / "model.bin", directory / "copy.bin")
        (directory / "copy.bin").replace(directory / "model.bin")
    else:
        (directory / "model.bin").unlink()
    reason = (
        "changed while they were loaded, or after that"
        if change == "replaced"
        else "model.bin is missing"
    )
    with pytest.raises(_core.Error, match=reason):
        answers(translator, sources[:1], PENALIZED)
    assert answers(translator, sources, GREEDY) == greedy


def test_calls_may_be_refused(directory: Path, sources: list[Row], expected: list[Row]) -> None:
    refusing = _core.Translator(str(directory), {**INT8, "calls": "refuse"})
    greedy = answers(refusing, sources, GREEDY)
    with pytest.raises(
        _core.Error, match=r"coverage_penalty is not 0.*calls.*\"refuse\""
    ) as caught:
        refusing.translate([sources[0]], [sources[0][:1]], PENALIZED)
    assert caught.value.code == "invalid_argument"
    assert answers(refusing, sources, GREEDY) == greedy
    allowing = _core.Translator(str(directory), INT8)  # shares the weights
    assert answers(allowing, sources, PENALIZED) == expected


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"decoding": "calls"}, 'decoding is "calls"'),
        (PENALIZED, "coverage_penalty is not 0"),
    ],
)
def test_a_model_that_needs_refused_calls_fails_its_load(
    directory: Path, parameters: dict[str, Any], reason: str
) -> None:
    given = {name: str(value) for name, value in parameters.items()}
    with pytest.raises(_core.Error, match=reason):
        _core.Translator(str(directory), {**INT8, "calls": "refuse", **given})


# Prints how far the memory of this process was above what it is now, in bytes.
PEAK_OF_A_LOAD = """
import re, sys
from pathlib import Path
from ct2_triton import _core

def status(field):
    text = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(rf"^{field}:\\s*([0-9]+) kB$", text, re.MULTILINE)[1]) * 1024

model = _core.Translator(sys.argv[1], {"compute_type": "int8"})
assert (model.call_bytes, model.call_loads) == (0, 0)
print(status("VmHWM") - status("VmRSS"))
"""


def test_a_model_that_loads_never_has_all_weights_twice() -> None:
    """CTranslate2's model of the trial has left before the loop's weights come."""
    directory = tiny_engine_model("nllb", TinyOptions(d_model=512, layers=2), "int8")
    variables = read_model_bin(directory / "model.bin").variables
    weights = sum(math.prod(v.dimensions) for n, v in variables.items() if n.endswith("weight"))
    command = [sys.executable, "-c", PEAK_OF_A_LOAD, str(directory)]
    # AddressSanitizer's stacks for threads that pack are no weights.
    options = f"{os.environ.get('ASAN_OPTIONS', '')}:detect_stack_use_after_return=0"
    # While CTranslate2 packs weights for MKL, it has them twice itself.
    environment = {**os.environ, "ASAN_OPTIONS": options, "CT2_PACKED_GEMM": "0"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert weights > 8 * 2**20
    # Half of it are keys and values, for 12 rows of 32 tokens, with which steps are measured.
    assert int(done.stdout) < 0.75 * weights


def test_a_trial_that_fails_leaves_the_model_to_calls(tmp_path: Path, sources: list[Row]) -> None:
    """No number at a position that the trial's longest source has, and shorter ones have not."""
    directory = Path(shutil.copytree(tiny_engine_model("nllb"), tmp_path / "nllb"))
    content = read_model_bin(directory / "model.bin")
    name = "encoder/position_encodings/encodings"
    positions = content.variables[content.aliases.pop(name, name)]
    values = bytearray(positions.content)
    struct.pack_into("<f", values, 6 * positions.dimensions[1] * 4, math.nan)
    content.variables[name] = Variable(positions.dimensions, positions.kind, bytes(values))
    write_model_bin(content, directory / "model.bin")
    short = [source[:2] for source in sources[:4]]

    translator = _core.Translator(str(directory), INT8)

    assert ", calls, " in translator.description
    whole = _core.Translator(str(tiny_engine_model("nllb")), {**INT8, "decoding": "calls"})
    assert answers(translator, short, GREEDY) == answers(whole, short, GREEDY)
