# SPDX-License-Identifier: Apache-2.0
"""Plain weights that packed loops do not read: given back to the system."""

from __future__ import annotations

import json
import math
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
from tiny_families import FAMILIES, TinyOptions

DEMO = FOLDER / "model"
INT8 = {"compute_type": "int8"}
MEBIBYTE = 2**20
GREEDY = {"beam_size": 1, "max_decoding_length": 24}
# A search that decode loops lack.
PENALIZED = {"beam_size": 3, "coverage_penalty": 0.2, "max_decoding_length": 24}


def int8_bytes(directory: Path) -> dict[str, int]:
    """Of each variable that compute_type int8 holds in bytes."""
    variables = read_model_bin(directory / "model.bin").variables
    weights = {name: v for name, v in variables.items() if name.endswith("weight")}
    return {name: math.prod(v.dimensions) for name, v in weights.items()}


def random_sources(count: int, seed: int) -> list[Row]:
    rng = random.Random(seed)
    return [[rng.randint(10, 300) for _ in range(rng.randint(1, 20))] for _ in range(count)]


def answers(translator: Any, sources: list[Row], options: dict[str, Any]) -> list[Row]:
    """Each row alone: CTranslate2's own layers round by who else is there."""
    rows = [translator.translate([source], [source[:1]], options)[0] for source in sources]
    return [row[0]["ids"] for row in rows]


@pytest.fixture(scope="module")
def sources() -> list[Row]:
    return random_sources(12, 17)


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


@pytest.fixture
def translator(directory: Path) -> Any:
    """A model that decodes in loops, and alone has these weights."""
    return _core.Translator(str(directory), INT8)


def test_nearly_all_plain_weights_are_given_back(translator: Any) -> None:
    """The table of tokens, too; but no parts of pages, which other memory shares."""
    assert translator.weight_bytes_given_back > 0.9 * sum(int8_bytes(DEMO).values())
    mebibytes = translator.weight_bytes_given_back >> 20
    assert f" in place of {mebibytes} MiB, " in translator.description


@pytest.mark.parametrize("compute_type", ["float32", "int8"])
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_loops_do_not_read_what_is_given_back(
    family: str, compute_type: str, tmp_path: Path
) -> None:
    """A model of calls fills them again; the answers stay the same."""
    directory = Path(shutil.copytree(tiny_engine_model(family), tmp_path / family))
    parameters = {"compute_type": compute_type}
    translator = _core.Translator(str(directory), parameters)
    assert translator.weight_bytes_given_back > 0
    sources = random_sources(30, 31)
    first = answers(translator, sources, GREEDY)
    holder = _core.Translator(str(directory), {**parameters, "decoding": "calls"})
    assert translator.weight_bytes_given_back == 0
    assert answers(translator, sources, GREEDY) == first
    assert holder.weight_bytes_given_back == 0
    assert any(len(set(row)) > 3 for row in first)


def test_a_model_beside_that_computes_with_them(
    directory: Path,
    translator: Any,
    sources: list[Row],
    expected: list[Row],
) -> None:
    """It shares the weights of the first one, comes later and ends earlier."""
    greedy = answers(translator, sources, GREEDY)
    beside = _core.Translator(str(directory), {**INT8, "decoding": "calls"})
    assert answers(beside, sources, PENALIZED) == expected
    assert len(answers(beside, sources, GREEDY)) == len(sources)
    del beside  # which ends it
    assert answers(translator, sources, GREEDY) == greedy
    assert answers(translator, sources, PENALIZED) == expected


def test_nothing_is_given_back_while_another_model_uses_it(
    directory: Path, sources: list[Row], expected: list[Row]
) -> None:
    calls = _core.Translator(str(directory), {**INT8, "decoding": "calls"})
    greedy = answers(calls, sources, GREEDY)
    packed = _core.Translator(str(directory), INT8)
    assert packed.weight_bytes_given_back == 0
    assert answers(calls, sources, GREEDY) == greedy
    assert answers(packed, sources, PENALIZED) == expected


def test_a_second_model_on_the_same_files_shares_the_copies(
    directory: Path, translator: Any, sources: list[Row]
) -> None:
    given_back = translator.weight_bytes_given_back
    greedy = answers(translator, sources, GREEDY)
    second = _core.Translator(str(directory), {**INT8, "inter_threads": "1"})
    assert second.weight_bytes_given_back == given_back > 0
    assert answers(second, sources, GREEDY) == greedy


# Prints how far the memory of this process was above what it is now, in bytes.
PEAK_OF_A_LOAD = """
import re, sys
from pathlib import Path
from ct2_triton import _core

def status(field):
    text = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(rf"^{field}:\\s*([0-9]+) kB$", text, re.MULTILINE)[1]) * 1024

model = _core.Translator(sys.argv[1], {"compute_type": "int8"})
assert model.weight_bytes_given_back > 0
print(status("VmHWM") - status("VmRSS"))
"""


def test_a_model_that_loads_never_has_all_weights_twice() -> None:
    options = TinyOptions(d_model=512, layers=2)
    directory = tiny_engine_model("nllb", options, "int8")
    weights = sum(int8_bytes(directory).values())
    command = [sys.executable, "-c", PEAK_OF_A_LOAD, str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert weights > 8 * MEBIBYTE
    assert int(done.stdout) < 0.5 * weights


def test_calls_find_their_weights_while_another_model_packs_them(
    directory: Path, sources: list[Row], expected: list[Row]
) -> None:
    """And what one load has given back, the next one finds."""
    calls = _core.Translator(str(directory), {**INT8, "decoding": "calls"})
    found: list[list[Row]] = []
    loaded = threading.Event()

    def call() -> None:
        while not loaded.is_set() or not found:
            found.append(answers(calls, sources, PENALIZED))

    thread = threading.Thread(target=call)
    thread.start()
    greedy = []
    for _ in range(5):
        packed = _core.Translator(str(directory), INT8)
        greedy.append(answers(packed, sources, GREEDY))
        del packed
    loaded.set()
    thread.join()
    assert all(call == expected for call in found)
    assert all(each == greedy[0] for each in greedy)


def test_a_trial_that_fails_leaves_the_weights_to_calls(tmp_path: Path) -> None:
    """No number at a position that the trial's longest source has, and shorter ones have not."""
    directory = Path(shutil.copytree(tiny_engine_model("nllb"), tmp_path / "nllb"))
    content = read_model_bin(directory / "model.bin")
    name = "encoder/position_encodings/encodings"
    positions = content.variables[content.aliases.pop(name, name)]
    values = bytearray(positions.content)
    struct.pack_into("<f", values, 6 * positions.dimensions[1] * 4, math.nan)
    content.variables[name] = Variable(positions.dimensions, positions.kind, bytes(values))
    write_model_bin(content, directory / "model.bin")
    sources = random_sources(4, 5)
    short = [source[:2] for source in sources]

    translator = _core.Translator(str(directory), INT8)

    assert ", calls, " in translator.description
    assert translator.weight_bytes_given_back == 0
    whole = _core.Translator(str(tiny_engine_model("nllb")), {**INT8, "decoding": "calls"})
    assert answers(translator, short, GREEDY) == answers(whole, short, GREEDY)
