# SPDX-License-Identifier: Apache-2.0
"""benchmarks/measure_text.py, on the demo model behind a real server."""

from __future__ import annotations

import pytest

from ct2_triton.cli import main


@pytest.mark.server
def test_all_ways_are_measured_and_give_the_same_answers(
    capfd: pytest.CaptureFixture[str],
) -> None:
    arguments = ["--rounds", "2", "--to", "de,fr", "--clients", "2", "--seconds", "0.1"]
    ways = ["ids", "ensemble", "gateway"]
    arguments += [word for way in ways for word in ("--way", way)]
    assert main("measure_text", "measure_text", arguments) == 0
    shown = capfd.readouterr().out
    assert "medians of 2 rounds" in shown
    rows = [line.split() for line in shown.splitlines() if "clients x" in line]
    loads = [["2", "clients", "x", str(targets), "languages"] for targets in (1, 2)]
    assert [row[:5] for row in rows] == loads * 2
    for *_, ids, ensemble, gateway, text, differing in rows[:2]:
        assert all(float(rate) > 0 for rate in (ids, ensemble, gateway, text))
        assert int(differing) <= 20  # of 100 or 200: int8 may round otherwise in a batch
    for row in rows[2:]:
        assert len(row) == 5 + 3 * 4
        for ratio, low, high in zip(row[5::4], row[6::4], row[8::4], strict=True):
            assert 0 < float(low.strip("(")) <= float(ratio) <= float(high.strip(")"))
