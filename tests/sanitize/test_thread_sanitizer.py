# SPDX-License-Identifier: Apache-2.0
"""Races between threads: the programs of tests/native."""

from __future__ import annotations

from sanitize.short_form import run


def test_thread_sanitizer_finds_a_planted_race() -> None:
    assert "tsan finds race" in run("tests/sanitize/sanitize.sh", "tsan", "canary")


def test_the_core_and_the_backend_under_load_have_no_race() -> None:
    """But for the emulated GPU, whose fibers ThreadSanitizer cannot follow."""
    output = run("tests/sanitize/sanitize.sh", "tsan", "native", "4")
    assert "rows answered" in output
    assert "every handle freed" in output
    assert "every request answered" in output
