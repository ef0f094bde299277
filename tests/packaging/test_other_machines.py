# SPDX-License-Identifier: Apache-2.0
"""Runs of the tests on machines that this one is not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from support.commands import run

ROOT = Path(__file__).resolve().parents[2]


def pytest(*arguments: str, code: int, **variables: str) -> Any:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return run(*command, code=code, folder=ROOT, **variables)


def test_without_the_compiled_core_the_tests_of_the_toolkit_run() -> None:
    """As on arm64; what imports the core is skipped, and the run is green."""
    done = pytest(
        *("tests/docs/test_parameters_doc.py", "tests/docs/test_demo.py"),
        "tests/python/test_arguments.py",
        code=0,
        CT2_TRITON_CORE="/nonexistent",
    )
    reason = "CT2_TRITON_CORE names /nonexistent, which is not there"
    assert f"SKIPPED [1] tests/docs/test_parameters_doc.py:0: {reason}" in done.stdout
    assert f"needs the backend: {reason}" in done.stdout
    assert " passed" in done.stdout
    assert "kernels of this processor: none" in done.stdout


def test_a_processor_without_the_kernels_that_a_run_requires_is_refused() -> None:
    done = pytest("tests/python/test_arguments.py", "--require-kernels=avx2048,plain", code=4)
    assert "--require-kernels: this processor does not run avx2048; it runs " in done.stderr
