# SPDX-License-Identifier: Apache-2.0
"""benchmarks/measure_served_drafts.py, on the demo model behind a real server."""

from __future__ import annotations

import itertools

import pytest

from ct2_triton.cli import main
from measure_served_drafts import growing_text


def test_each_update_keeps_70_percent_and_grows_by_a_token() -> None:
    ids = range(100, 900)
    updates = growing_text(ids, seed=3, tokens=20, updates=5)
    assert updates == growing_text(ids, seed=3, tokens=20, updates=5)
    assert list(map(len, updates)) == [20, 21, 22, 23, 24]
    for before, after in itertools.pairwise(updates):
        kept = int(0.7 * len(before))
        assert after[:kept] == before[:kept]
        assert after[kept:] != before[kept:]


@pytest.mark.server
def test_drafts_take_fewer_steps(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--rounds", "1", "--texts", "4", "--updates", "4", "--clients", "2"]
    assert main("measure_served_drafts", "measure_served_drafts", arguments) == 0
    output = capsys.readouterr().out
    assert "16 updates of growing texts" in output
    [line] = [line for line in output.splitlines() if "with drafts" in line]
    [_, steps, *_] = [float(word) for word in line.split() if word[0].isdigit()]
    assert 0 < steps < 1
