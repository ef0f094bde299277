# SPDX-License-Identifier: Apache-2.0
"""Memory errors and undefined behaviour: the programs of tests/native and tests of the core."""

from __future__ import annotations

from sanitize.short_form import run

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


def test_address_sanitizer_finds_planted_mistakes() -> None:
    """A sanitizer that is silent about these would be silent about everything below."""
    assert "asan finds use-after-free" in run("tests/sanitize/sanitize.sh", "asan", "canary")


def test_the_core_and_the_backend_under_load() -> None:
    output = run("tests/sanitize/sanitize.sh", "asan", "native", "4")
    assert "rows answered" in output
    assert "every handle freed" in output
    assert "every row answered" in output
    assert "every one given back" in output
    assert "every request answered" in output
    assert "not ready once its device was lost" in output


def test_the_tests_of_the_core() -> None:
    ignored = [f"--ignore=tests/core/{name}" for name in SLOW]
    options = ["--share", str(SHARE), "tests/core", *ignored]
    assert " passed" in run("tests/sanitize/sanitize.sh", "asan", "core", *options)
