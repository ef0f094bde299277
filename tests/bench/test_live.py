# SPDX-License-Identifier: Apache-2.0
"""benchmarks/measure_live.py on a real server with the demo model, and very quick speakers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from ct2_triton.bench.report import rich_table
from ct2_triton.cli import main
from ct2_triton.live import Caption, SegmentUpdate
from live_figures import Line, differing_table
from live_replay import Seen
from support.recognizers import live_packages

pytestmark = pytest.mark.server


def measure(arguments: list[str]) -> int:
    return main("measure_live", "measure_live", arguments)


def test_a_server_that_is_not_there_is_said_soon(capsys: pytest.CaptureFixture[str]) -> None:
    assert measure(["--url", "localhost:1", "--name", "nllb"]) == 1
    assert (
        "measure_live: not ready within 5 s: no connection to localhost:1"
        in capsys.readouterr().err
    )


def test_modes_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--speakers", "2", "--seconds", "2.2", "--to", "de,fr", "--newest"]
    arguments += ["--words-per-second", "20", "--min-interval-ms", "20", "--output", str(tmp_path)]
    policies = ["final", "append", "retranslate"]
    for name in policies:
        arguments += ["--policy", name]
    assert measure(arguments) == 0
    output, said = capsys.readouterr()
    for number, name in enumerate(policies, 1):
        assert f"measure_live: {name}: the event is replayed, in real time ({number}/3)\n" in said
    figures = {
        line[: line.index("  ", 2)].strip(): [float(x) for x in line.split()[-3:]]
        for line in output.splitlines()
        if line.startswith(("  NE", "  LAAL", "  AL", "  finals", "  superseded", "  calls"))
    }
    # How many interims there are hangs on the machine.
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
        log = (tmp_path / "simuleval" / name / "instances.log").read_text().splitlines()
        assert len(log) == len(finals)
        for entry in map(json.loads, log):
            length = entry["prediction_length"]
            assert len(entry["delays"]) == len(entry["elapsed"]) == length
            assert len(entry["prediction"].split()) == length
            assert max(entry["delays"]) <= entry["source_length"]
    for number, name in enumerate(policies):
        scores = simuleval(tmp_path / "simuleval" / name)
        assert scores["AL"] == pytest.approx(figures["AL settled"][number], abs=0.006)
        assert scores["LAAL"] == pytest.approx(figures["LAAL settled"][number], abs=0.006)


def simuleval(folder: Path) -> dict[str, float]:
    """What SimulEval computes from a folder that the command wrote."""
    command = [sys.executable, "-m", "simuleval.cli", "--score-only", "--output", str(folder)]
    command += ["--quality-metrics", "BLEU", "--latency-metrics", "AL", "LAAL"]
    done = subprocess.run(
        command, env=live_packages(), capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    names, values = done.stdout.splitlines()[-2:]
    return dict(zip(names.split(), map(float, values.split()[1:]), strict=True))


def test_finals_that_are_not_the_offline_translation_are_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def line(segment: str, transcript: str | None, reference: str) -> Line:
        caption = Caption(segment, "de", "", "", True, 1, transcript=transcript)
        return Line(segment, "de", [Seen(caption, 1.0)], [SegmentUpdate(segment, "x")], reference)

    equal, other = line("1", "Es regnet.", "Es regnet."), line("2", "Es regnet so.", "Es schneit.")
    assert differing_table({"final": [equal]}) == []
    [table] = differing_table({"final": [equal, other], "steady": [line("3", None, "[/b]")]})
    assert table.title.endswith(": 2")
    assert table.rows == [
        ["final", "2", "de", "regnet so.", "schneit."],
        ["steady", "3", "de", "(none)", "[/b]"],
    ]
    Console().print(rich_table(table))
    assert "[/b]" in capsys.readouterr().out


def test_recorded_updates_and_bad_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "updates.jsonl"
    file.write_text('{"segment": 1, "text": "Fog."}\n')
    assert measure(["--updates", str(file)]) == 1
    assert "each update needs a time" in capsys.readouterr().err
    file.write_text('\n{"segment": 1}\n')
    assert measure(["--updates", str(file)]) == 1
    assert f"{file}, line 2: the update has no 'text'" in capsys.readouterr().err
    assert measure(["--speakers", "1", "--seconds", "1e-9"]) == 1
    assert "nobody speaks within 1e-09 s" in capsys.readouterr().err
    assert measure(["--error-rate", "nan"]) == 1
    assert "--error-rate is nan; it must be from 0 to 1" in capsys.readouterr().err
    assert measure(["--policy", "fast"]) == 1
    assert "no policy 'fast'; there are final, steady" in capsys.readouterr().err
    file.write_text(
        '{"segment": 1, "text": "Next week in Stockholm: fog.", "final": true, "time": 0}\n'
    )
    assert measure(["--updates", str(file), "--policy", "final", "--to", "de"]) == 0
    assert "1 speakers x 1 languages" in capsys.readouterr().out
