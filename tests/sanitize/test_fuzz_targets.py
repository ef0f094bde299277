# SPDX-License-Identifier: Apache-2.0
"""Hostile inputs: the fuzz targets."""

from __future__ import annotations

import re

from fuzz.made_inputs import make_inputs
from sanitize.short_form import run

MADE_INPUTS = 2000  # for each fuzz target


def test_fuzz_targets() -> None:
    """The corpus of each, and inputs made of it: the same ones each time."""
    output = run("tests/fuzz/fuzz.sh", "--made", str(MADE_INPUTS))
    executed = re.findall(r"number_of_executed_units: (\d+)", output)
    assert len(executed) == 7
    assert min(map(int, executed)) >= MADE_INPUTS


def test_made_inputs_are_the_same_each_time() -> None:
    corpus = [b"", b"a", b"some longer input", bytes(range(256))]
    made = make_inputs(corpus, 300, seed=1)
    assert made == make_inputs(corpus, 300, seed=1)
    assert made != make_inputs(corpus, 300, seed=2)
    assert len(set(made)) > 200
