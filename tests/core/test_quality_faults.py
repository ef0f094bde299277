# SPDX-License-Identifier: Apache-2.0
"""The measurement of the verdicts, with few faults of a seed of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks" / "quality"
MODEL = Path(__file__).resolve().parents[2] / "python" / "ct2_triton" / "demo_model" / "model"
# Far below what the page on verdicts says, since there are few rows.
FLOORS = {"repeats": 0.9, "values": 0.9, "copied": 0.7, "language": 0.8, "length": 0.9}


def test_faults_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {name: tmp_path / name for name in ("sentences", "pairs", "inputs", "faults")}
    drawn = ["--sentences", files["sentences"], "--pairs", files["pairs"]]
    made = [*drawn, "--inputs", files["inputs"], "--faults", files["faults"]]
    for script, options in (("grammar_pairs", drawn), ("held_out", [*made, "--each", "8"])):
        command = [sys.executable, SCRIPTS / f"{script}.py", *options, "--seed", "7"]
        subprocess.run(command, check=True, cwd=SCRIPTS.parents[1])
    monkeypatch.syspath_prepend(SCRIPTS)
    import measure

    rows = measure.lines(files["faults"])
    found = measure.measure_faults(measure.Judge(MODEL), None, rows)
    assert len(rows) > 250
    for flag, floor in FLOORS.items():
        assert found[flag] >= floor, flag
    assert found["clean"] <= 0.1
