# SPDX-License-Identifier: Apache-2.0
"""ct2-bench text, on the demo model behind a real server."""

from __future__ import annotations

import pytest

from ct2_triton.cli import bench


@pytest.mark.server
def test_both_ways_are_measured_and_give_the_same_answers(
    capfd: pytest.CaptureFixture[str],
) -> None:
    arguments = ["text", "--clients", "2", "--to", "de,fr", "--rounds", "2", "--seconds", "0.1"]
    assert bench(arguments) == 0
    shown = capfd.readouterr().out
    rows = [line.split() for line in shown.splitlines() if "clients x" in line]
    assert [row[:5] for row in rows] == [
        ["2", "clients", "x", str(targets), "languages"] for targets in (1, 2)
    ]
    for row in rows:
        ids, text, ratio, low, _, high, differing = row[5:]
        assert min(float(ids), float(text)) > 0
        assert float(low) <= float(high)
        assert float(ratio) > 0
        assert int(differing) <= 10 * int(row[3])  # of 100: int8 may round otherwise in a batch
