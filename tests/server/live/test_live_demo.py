# SPDX-License-Identifier: Apache-2.0
"""tools/live_demo.py: what `make live-demo` shows, for some seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.server

ROOT = Path(__file__).resolve().parents[3]


def test_the_demo_speaks_and_leaves_subtitles() -> None:
    folder = ROOT / "build" / "live-demo" / "subtitles"
    for file in folder.glob("*"):
        file.unlink()
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "live_demo.py", "--seconds", "2", "--port", "0"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "demo: http://127.0.0.1:" in done.stdout
    assert "S16_LE | python examples/hear.py --event http://127.0.0.1:" in done.stdout
    german = (folder / "deu_Latn.vtt").read_text(encoding="utf-8")
    assert " ".join(german.split()).endswith("Ist der Westwind ein Problem für Nowak, Paul?")
    assert len(list(folder.glob("[!.]*"))) == 2 * 7


def test_make_live_demo_ends_with_the_table() -> None:
    command = ["make", "--dry-run", "--no-print-directory", "-o", "install", "live-demo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    [page, table] = [line for line in done.stdout.splitlines() if ".venv/" in line]
    assert page.endswith("tools/live_demo.py")
    assert "benchmarks/measure_live.py " in table
