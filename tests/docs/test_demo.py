# SPDX-License-Identifier: Apache-2.0
"""`make demo`, less the set-up that the tests have done already."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from demo import Flow

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ["deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn", "por_Latn", "nld_Latn"]
SUMMARY = re.compile(
    r"240 lines into 6 languages, .* \d+ sentences/s \(\d+ translations/s\), "
    r"p50 \d+ ms and p95 \d+ ms .*, mean batch \d+\.\d rows \(Triton's statistics\)"
)


@pytest.mark.server
def test_the_demo_prints_six_languages_for_each_line_and_what_it_measured() -> None:
    result = subprocess.run(
        [sys.executable, ROOT / "tools" / "demo.py"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    sentences = [line for line in lines if line.startswith("> ")]
    answers = [line.strip().split("  ", 1) for line in lines if "_Latn  " in line]
    assert len(sentences) == 20
    assert sorted(code for code, _ in answers) == sorted(LANGUAGES * 20)
    assert all(text.strip() for _, text in answers)
    assert ["deu_Latn", "Wir sehen uns am Donnerstag in Madrid!"] in answers
    assert lines[-2] == "server stopped"
    assert SUMMARY.fullmatch(lines[-1])


def test_a_percentile_is_the_latency_of_a_sentence() -> None:
    """The smallest that so many per cent of the sentences do not exceed (nearest rank)."""
    latencies_s = [0.001 * n for n in range(1, 21)]
    flow = Flow(taken=dict.fromkeys(range(20), 0.0), done=dict(enumerate(latencies_s)))
    percentiles = [flow.percentile_ms(share) for share in (0.01, 0.5, 0.95, 1)]
    assert percentiles == pytest.approx([1, 10, 19, 20])
    assert flow.seconds == pytest.approx(0.02)
