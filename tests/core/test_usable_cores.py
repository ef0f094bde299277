# SPDX-License-Identifier: Apache-2.0
"""How many cores a process may use: those it may run on, and what its control group allows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ct2_triton import _core

ALL = len(os.sched_getaffinity(0))

needs_two_cores = pytest.mark.skipif(ALL < 2, reason="a quota of one core changes nothing here")


def _write(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="ascii")
    return str(folder)


def _version_1(quota_us: int, period_us: int, folder: str = "cpu") -> dict[str, str]:
    return {
        f"{folder}/cpu.cfs_quota_us": f"{quota_us}\n",
        f"{folder}/cpu.cfs_period_us": f"{period_us}\n",
    }


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"cpu.max": "max 100000\n"},
        {"cpu.max": ""},
        {"cpu.max": "100000 0\n"},
        {"cpu.max": "100000000 100000\n"},
        _version_1(-1, 100000),
        _version_1(100000, 0),
        {"cpu/cpu.cfs_quota_us": "50000\n"},
        _version_1(100000 * 1000, 100000),
    ],
    ids=repr,
)
def test_without_a_quota_all_cores_are_used(tmp_path: Path, files: dict[str, str]) -> None:
    assert _core.usable_cores(_write(tmp_path, files)) == ALL


@needs_two_cores
@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "100000 100000\n"}, 1),
        ({"cpu.max": "1000 100000\n"}, 1),
        ({"cpu.max": "100001 100000\n"}, 2),
        (_version_1(100000, 100000), 1),
        (_version_1(25000, 50000), 1),
        (_version_1(100001, 100000), 2),
        (_version_1(100000, 100000, "cpu,cpuacct"), 1),
        ({"cpu.max": "max 100000\n"} | _version_1(100000, 100000), 1),
        ({"cpu.max": "100000 100000\n"} | _version_1(-1, 100000), 1),
        ({"cpu.max": "800000 100000\n"} | _version_1(100000, 100000), 1),
    ],
    ids=repr,
)
def test_the_quota_of_either_version_counts(
    tmp_path: Path, files: dict[str, str], cores: int
) -> None:
    assert _core.usable_cores(_write(tmp_path, files)) == cores


def test_this_machine_has_some() -> None:
    assert 1 <= _core.usable_cores() <= ALL
