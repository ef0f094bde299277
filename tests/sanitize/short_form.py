# SPDX-License-Identifier: Apache-2.0
"""Runs a script of the sanitizers or the fuzzers; benchmarks/reliability.md has the long runs."""

from __future__ import annotations

import os
import subprocess

import pytest

from support.checkout import ROOT

# Always the same seed: it judges a change. And a quarter of the random rows, which are all tested
# without a sanitizer.
ENVIRONMENT = {"SEED": "2026", "CT2_TRITON_FEWER_ROWS": "4"}


def run(*command: str) -> str:
    """Return what the command prints; it has to succeed."""
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
