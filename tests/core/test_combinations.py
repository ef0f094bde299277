# SPDX-License-Identifier: Apache-2.0
"""Options that may not be combined: refused with a sentence, in a request and at load."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ct2_triton import _core
from support.model_config import config_json

REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"num_hypotheses": 3},
        "num_hypotheses 3 is more than beam_size x patience gives (2 x 1 = 2); raise beam_size, "
        "or sample: beam_size 1 and a sampling_topk other than 1",
    ),
    (
        {"beam_size": 2, "patience": 0.2},
        "num_hypotheses 1 is more than beam_size x patience gives (2 x 0.2 = 0); raise beam_size, "
        "or sample: beam_size 1 and a sampling_topk other than 1",
    ),
    (
        {"min_decoding_length": 6, "max_decoding_length": 5},
        "min_decoding_length 6 is above max_decoding_length 5",
    ),
    (
        {"beam_size": 1, "coverage_penalty": 0.2},
        "coverage_penalty 0.2 needs beam search; set beam_size above 1 or coverage_penalty to 0",
    ),
    (
        {"beam_size": 1, "coverage_penalty": -1, "sampling_topk": 5, "num_hypotheses": 3},
        "coverage_penalty -1 needs beam search; set beam_size above 1 or coverage_penalty to 0",
    ),
    (
        {"beam_size": 4, "sampling_topk": 7},
        "sampling_topk 7 is less than twice beam_size 4; raise it to 8, or set beam_size to 1",
    ),
    (
        {
            "beam_size": 1,
            "prefix_bias_beta": 0.5,
            "coverage_penalty": 0,
            "return_alternatives": True,
        },
        "return_alternatives cannot be combined with prefix_bias_beta 0.5; set one of them to its "
        "default",
    ),
    (
        {"return_alternatives": True, "min_alternative_expansion_prob": 0.001},
        "min_alternative_expansion_prob 0.001 cannot be used with return_alternatives, because "
        "CTranslate2 ends the process when no alternative reaches it; set it to 0",
    ),
    (
        {"beam_size": 1, "sampling_topk": 0, "sampling_temperature": 0.001},
        "sampling_temperature 0.001 is too small; give 0 (no sampling) or at least 0.01",
    ),
    (
        {"return_alternatives": True, "num_hypotheses": 2, "beam_size": 2, "patience": 0.2},
        "num_hypotheses 2 is more than beam_size x patience gives (2 x 0.2 = 0); raise "
        "beam_size, or sample: beam_size 1 and a sampling_topk other than 1",
    ),
    (
        {"beam_size": 1, "prefix_bias_beta": 0.5, "sampling_topk": 5, "patience": 0.3},
        "num_hypotheses 1 is more than beam_size x patience gives (1 x 0.3 = 0); raise "
        "beam_size, or sample: beam_size 1 and a sampling_topk other than 1",
    ),
]

# What only the model's own limits forbid; requests are told the bounds.
ABOVE_LIMITS: list[tuple[dict[str, Any], str]] = [
    (
        {"beam_size": 33},
        "beam_size 33 is above the model's max_beam_size 32; ask for less, or let the operator "
        "raise max_beam_size",
    ),
    (
        {"beam_size": 1, "sampling_topk": 0, "num_hypotheses": 33},
        "num_hypotheses 33 is above the model's max_num_hypotheses 32; ask for less, or let the "
        "operator raise max_num_hypotheses",
    ),
    (
        {"max_decoding_length": 4097},
        "max_decoding_length 4097 is above the model's decoding_length_limit 4096; ask for less, "
        "or let the operator raise decoding_length_limit",
    ),
]

# What a config cannot set.
REFUSED_OF_REQUESTS: list[tuple[dict[str, Any], str]] = [
    (
        {"draft_bias": 0.25, **options},
        f"draft_bias 0.25 cannot be combined with {other}; it is for greedy and beam searches "
        "without sampling",
    )
    for options, other in (
        ({"prefix_bias_beta": 0.5}, "prefix_bias_beta 0.5"),
        ({"return_alternatives": True}, "return_alternatives"),
        ({"beam_size": 1, "sampling_topk": 5}, "sampling_topk 5"),
        ({"beam_size": 2, "sampling_topk": 0}, "sampling_topk 0"),
        ({"beam_size": 1, "patience": 2, "num_hypotheses": 2}, "num_hypotheses 2 at beam_size 1"),
    )
]

ALLOWED: list[dict[str, Any]] = [
    {"beam_size": 2, "num_hypotheses": 2},
    {"beam_size": 2, "patience": 2, "num_hypotheses": 4},
    {"beam_size": 1, "sampling_topk": 2, "num_hypotheses": 32},
    {"beam_size": 1, "num_hypotheses": 8, "return_alternatives": True},
    {"min_decoding_length": 300, "max_decoding_length_multiple": 2},
    {"beam_size": 1, "prefix_bias_beta": 0.5, "coverage_penalty": 0.2},
    {"beam_size": 4, "num_hypotheses": 4, "draft_bias": 0.5},
    {"beam_size": 1, "sampling_topk": 4, "sampling_temperature": 0, "draft_bias": 0.5},
    {"beam_size": 4, "sampling_topk": 8},
    {"beam_size": 4, "sampling_topk": 0},
    {"beam_size": 4, "sampling_topk": 2, "sampling_temperature": 0},
    {"min_alternative_expansion_prob": 0.5},
    {"beam_size": 32, "num_hypotheses": 32, "max_decoding_length": 4096},
    {"sampling_temperature": 0.01},
]


@pytest.mark.parametrize(("options", "text"), [*REFUSED, *REFUSED_OF_REQUESTS])
def test_refused_in_a_request(options: dict[str, Any], text: str) -> None:
    with pytest.raises(_core.Error) as caught:
        _core.check_decoding_options(options)
    assert (str(caught.value), caught.value.code) == (text, "invalid_argument")


@pytest.mark.parametrize(("options", "text"), [*REFUSED, *ABOVE_LIMITS])
def test_refused_at_load(options: dict[str, Any], text: str) -> None:
    parameters = {name: str(value) for name, value in options.items()}
    with pytest.raises(_core.Error) as caught:
        _core.parse_model_config(config_json(parameters=parameters))
    assert (str(caught.value), caught.value.code) == (f'model "m": {text}', "invalid_argument")


@pytest.mark.parametrize("options", ALLOWED)
def test_the_neighbours_are_allowed(options: dict[str, Any]) -> None:
    kept = _core.check_decoding_options(options)
    assert {name: kept[name] for name in options} == pytest.approx(options)


def test_a_request_is_checked_together_with_the_models_defaults() -> None:
    model = {"coverage_penalty": "0.2"}
    assert _core.check_decoding_options({}, model)["coverage_penalty"] == pytest.approx(0.2)
    with pytest.raises(_core.Error, match="needs beam search"):
        _core.check_decoding_options({"beam_size": 1}, model)


def test_the_operators_limits_hold() -> None:
    with pytest.raises(_core.Error, match="an integer from 1 to 3, the model's max_beam_size"):
        _core.check_decoding_options({"beam_size": 4}, {"max_beam_size": 3})
    assert _core.check_decoding_options({"beam_size": 64}, {"max_beam_size": 64})["beam_size"] == 64


# What the server test does for the refused combinations, this does for the allowed ones: none may
# end the process. Each of these values was allowed alone; the sets are drawn from a seed.
CHOICES: dict[str, list[Any]] = {
    "beam_size": [1, 1, 2, 3, 8, 32],
    "patience": [0.1, 0.5, 1.0, 10.0, 100.0],
    "length_penalty": [-5.0, 0.0, 0.6, 5.0],
    "coverage_penalty": [-100.0, 0.2, 100.0],
    "repetition_penalty": [0.01, 1.2, 100.0],
    "no_repeat_ngram_size": [1, 2, 100, 65536],
    "prefix_bias_beta": [1e-6, 0.3, 0.999999],
    "num_hypotheses": [1, 2, 5, 32],
    "return_alternatives": [True, False, False],
    "return_scores": [True, False],
    "sampling_topk": [0, 1, 2, 5, 50, 64, 600],
    "sampling_topp": [1e-30, 0.1, 0.9],
    "sampling_temperature": [0.0, 0.01, 0.7, 100.0],
    "max_decoding_length": [1, 2, 3, 8],
    "min_decoding_length": [0, 2, 8],
    "return_end_token": [True, False],
    "replace_unknowns": [True, False],
    "disable_unk": [True, False],
    "use_vmap": [True, False],
}


def draw(rng: random.Random) -> dict[str, Any]:
    """A random set of options that the core allows."""
    while True:
        options = {
            name: rng.choice(values) for name, values in CHOICES.items() if rng.random() < 0.4
        }
        options.setdefault("max_decoding_length", 8)
        try:
            _core.check_decoding_options(options)
        except _core.Error:
            continue
        return options


_RUN = """
import json, random, sys
import ctranslate2
translator = ctranslate2.Translator(sys.argv[1], intra_threads=1)
words = json.load(open(sys.argv[1] + "/shared_vocabulary.json"))
rng = random.Random(0)
for line in sys.stdin:
    print(line, end="", flush=True)
    rows = rng.choice([1, 2, 4])
    sources = [rng.choices(words, k=rng.choice([1, 4, 12])) for _ in range(rows)]
    prefixes = [rng.choices(words, k=rng.choice([0, 1, 1, 12])) for _ in range(rows)]
    for prefix in (None, prefixes):
        translator.translate_batch(sources, prefix, **json.loads(line))
"""


def test_no_allowed_combination_ends_the_process(nllb_engine_model: Path) -> None:
    rng = random.Random(2)
    drawn = [draw(rng) for _ in range(500)]
    lines = "".join(json.dumps(options) + "\n" for options in drawn)
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(nllb_engine_model)],
        input=lines,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    last = done.stdout.splitlines()[-1] if done.stdout else "nothing"
    assert done.returncode == 0, f"ended with {done.returncode} at {last}: {done.stderr[-500:]}"
    assert done.stdout == lines
