# SPDX-License-Identifier: Apache-2.0
"""The planner of large runs: it keeps to the limits, and the page shows what it prints."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from plan_scale import Setting, simulate, table

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("setting", "part"),
    [
        (Setting(server_ms=5, client_ms=0.1, cores=4, workers=2), "servers"),
        (Setting(server_ms=1, client_ms=2, cores=8, workers=2), "workers"),
        (Setting(network_mbit=0.1), "network"),
    ],
)
def test_a_part_that_is_always_busy_gives_the_rate(setting: Setting, part: str) -> None:
    limits = setting.limits()
    assert min(limits, key=lambda name: limits[name]) == part
    assert 0.95 * limits[part] <= simulate(setting) <= 1.02 * limits[part]


def test_one_row_at_a_time_takes_client_and_server_in_turn() -> None:
    setting = Setting(server_ms=3, client_ms=1, workers=1, in_flight=1)
    assert simulate(setting) == pytest.approx(1000 / 4, rel=0.02)
    assert simulate(Setting(server_ms=3, client_ms=1, workers=1, block_rows=1)) == pytest.approx(
        1000 / 4, rel=0.02
    )


def test_twice_of_all_is_twice_as_fast() -> None:
    one, two = Setting(servers=1, workers=2), Setting(servers=2, workers=4)
    assert simulate(two, 40_000) == pytest.approx(2 * simulate(one, 20_000), rel=0.03)


def test_the_cost_is_that_of_all_cores() -> None:
    setting = Setting(server_ms=10, client_ms=0.1, cores=4)
    row = table(setting, [1], 1, rows=1e6, price=3600).splitlines()[2].split("|")
    cores, rate, million = (float(row[at].replace(",", "")) for at in (3, 4, 6))
    assert cores == 5
    assert million == pytest.approx(cores * 1e6 / rate, rel=0.01)


def test_the_page_shows_what_is_printed() -> None:
    page = (ROOT / "benchmarks" / "scale.md").read_text(encoding="utf-8")
    shown = re.findall(r"```sh\n(python benchmarks/plan_scale.*)\n```\n\n((?:\|.*\n)+)", page)
    assert len(shown) == 2
    for command, printed in shown:
        words = [sys.executable, *shlex.split(command)[1:]]
        assert subprocess.check_output(words, cwd=ROOT, text=True) == printed


def test_what_cannot_be_is_refused() -> None:
    for flag in ("--cores", "--rows", "--servers", "--workers-per-server"):
        command = [sys.executable, ROOT / "benchmarks" / "plan_scale.py", flag, "0"]
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == 2
        assert "must be above 0" in result.stderr
