# SPDX-License-Identifier: Apache-2.0
"""Short runs of the sanitizers and the fuzzers; benchmarks/reliability.md has the long ones."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from fuzz.made_inputs import make_inputs

ROOT = Path(__file__).resolve().parents[2]
# Always the same seed: it judges a change. And a quarter of the random rows, which are all tested
# without a sanitizer.
ENVIRONMENT = {"SEED": "2026", "CT2_TRITON_FEWER_ROWS": "4"}
MADE_INPUTS = 2000  # for each fuzz target
# Their time goes into CTranslate2, PyTorch and Python, which no sanitizer of ours sees.
SLOW = (
    "test_added_tokens.py",
    "test_beam_ties.py",
    "test_combinations.py",
    # The emulated GPU's threads are fibers, whose stacks AddressSanitizer warns about.
    "test_gpu_decoder.py",
    "test_gpu_faults.py",
    "test_gpu_lists.py",
    "test_gpu_loop.py",
    "test_library.py",
    "test_tokenizer_proof.py",
    "test_translator_parity.py",
)
SHARE = 6  # of the cases of each test of the core; sanitize.sh by itself runs all of them


def _run(*command: str) -> str:
    result = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if "fuzzing needs Clang" in result.stdout:  # only where this user may not install it
        pytest.skip(result.stdout.strip())
    assert result.returncode == 0, result.stdout[-8000:]
    return result.stdout


def test_address_sanitizer_finds_planted_mistakes() -> None:
    """A sanitizer that is silent about these would be silent about everything below."""
    assert "asan finds use-after-free" in _run("tests/sanitize/sanitize.sh", "asan", "canary")


def test_the_core_and_the_backend_under_load() -> None:
    output = _run("tests/sanitize/sanitize.sh", "asan", "native", "4")
    assert "rows answered" in output
    assert "every handle freed" in output
    assert "every row answered" in output
    assert "every one given back" in output
    assert "every request answered" in output
    assert "not ready once its device was lost" in output


def test_the_tests_of_the_core() -> None:
    ignored = [f"--ignore=tests/core/{name}" for name in SLOW]
    options = ["--share", str(SHARE), "tests/core", *ignored]
    assert " passed" in _run("tests/sanitize/sanitize.sh", "asan", "core", *options)


def test_fuzz_targets() -> None:
    """The corpus of each, and inputs made of it: the same ones each time."""
    output = _run("tests/fuzz/fuzz.sh", "--made", str(MADE_INPUTS))
    executed = re.findall(r"number_of_executed_units: (\d+)", output)
    assert len(executed) == 7
    assert min(map(int, executed)) >= MADE_INPUTS


def test_made_inputs_are_the_same_each_time() -> None:
    corpus = [b"", b"a", b"some longer input", bytes(range(256))]
    made = make_inputs(corpus, 300, seed=1)
    assert made == make_inputs(corpus, 300, seed=1)
    assert made != make_inputs(corpus, 300, seed=2)
    assert len(set(made)) > 200


def test_thread_sanitizer_finds_a_planted_race() -> None:
    assert "tsan finds race" in _run("tests/sanitize/sanitize.sh", "tsan", "canary")


def test_the_core_and_the_backend_under_load_have_no_race() -> None:
    """But for the emulated GPU, whose fibers ThreadSanitizer cannot follow."""
    output = _run("tests/sanitize/sanitize.sh", "tsan", "native", "4")
    assert "rows answered" in output
    assert "every handle freed" in output
    assert "every request answered" in output
