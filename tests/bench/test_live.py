# SPDX-License-Identifier: Apache-2.0
"""ct2-bench live, on the demo model behind a real server, with people who speak very quickly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ct2_triton.cli import bench

pytestmark = pytest.mark.server


def test_modes_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["live", "--speakers", "2", "--seconds", "2.2", "--to", "de,fr", "--newest"]
    arguments += ["--words-per-second", "20", "--min-interval-ms", "20", "--output", str(tmp_path)]
    policies = ["final", "append", "retranslate"]
    for name in policies:
        arguments += ["--policy", name]
    assert bench(arguments) == 0
    output = capsys.readouterr().out
    figures = {
        line[: line.index("  ", 2)].strip(): [float(x) for x in line.split()[-3:]]
        for line in output.splitlines()
        if line.startswith(("  NE", "  LAAL", "  finals", "  superseded", "  calls"))
    }
    # How many guesses there are hangs on the machine.
    assert figures["NE"][0] == figures["superseded %"][0] == 0
    assert figures["calls/word"][0] <= min(figures["calls/word"])
    assert min(figures["finals equal %"]) >= 50  # int8 may round otherwise in another batch

    records = [json.loads(line) for line in (tmp_path / "updates.jsonl").read_text().splitlines()]
    assert {record["policy"] for record in records} == set(policies)
    finals = [(r["segment"], r["target"]) for r in records if r["final"] and r["policy"] == "final"]
    assert len(finals) == len(set(finals)) > 0
    shown: dict[tuple[str, str], str] = {}
    for record in records:
        if record["policy"] == "append":
            key = record["segment"], record["target"]
            assert record["shown"].startswith(shown.get(key, ""))
            shown[key] = record["shown"]
    for name in policies:
        log = (tmp_path / f"instances-{name}.log").read_text().splitlines()
        assert len(log) == len(finals)
        for entry in map(json.loads, log):
            length = entry["prediction_length"]
            assert len(entry["delays"]) == len(entry["elapsed"]) == length
            assert len(entry["prediction"].split()) == length
            assert max(entry["delays"]) <= entry["source_length"]


def test_recorded_updates_and_bad_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "updates.jsonl"
    file.write_text('{"segment": 1, "text": "Fog."}\n')
    assert bench(["live", "--updates", str(file)]) == 1
    assert "each update needs a time" in capsys.readouterr().err
    assert bench(["live", "--policy", "fast"]) == 1
    assert "no policy 'fast'; there are final, steady" in capsys.readouterr().err
    file.write_text(
        '{"segment": 1, "text": "Next week in Stockholm: fog.", "final": true, "time": 0}\n'
    )
    assert bench(["live", "--updates", str(file), "--policy", "final", "--to", "de"]) == 0
    assert "1 speakers x 1 languages" in capsys.readouterr().out
