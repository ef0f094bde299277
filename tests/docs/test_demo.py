# SPDX-License-Identifier: Apache-2.0
"""`make demo`, less the set-up that the tests have done already."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.server
def test_the_demo_prints_four_languages_for_each_sentence_and_stops() -> None:
    result = subprocess.run(
        [sys.executable, ROOT / "tools" / "demo.py"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    sentences = [line for line in lines if line.startswith("> ")]
    answers = [line.split("  ", 1) for line in lines if "_Latn  " in line]
    assert len(sentences) == 3
    assert [code for code, _ in answers] == ["deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn"] * 3
    assert all(text.strip() for _, text in answers)
    assert lines[-1] == "server stopped"
