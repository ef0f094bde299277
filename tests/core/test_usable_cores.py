# SPDX-License-Identifier: Apache-2.0
"""How many cores a process may use: those it may run on, and what its control groups allow."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ct2_triton import _core

ALL = len(os.sched_getaffinity(0))
MOUNT = "sys/fs/cgroup"
SERVICE = "/system.slice/ct2-serve.service"
MANY_CORES = Path(__file__).parents[1] / "native" / "many_cores.cc"

needs_two_cores = pytest.mark.skipif(ALL < 2, reason="a quota of one core changes nothing here")


def _write(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    return str(root)


def _version_2(quota: str, group: str = "") -> dict[str, str]:
    return {f"{MOUNT}{group}/cpu.max": f"{quota}\n"}


def _version_1(
    quota_us: int, period_us: int, folder: str = "cpu", group: str = ""
) -> dict[str, str]:
    return {
        f"{MOUNT}/{folder}{group}/cpu.cfs_quota_us": f"{quota_us}\n",
        f"{MOUNT}/{folder}{group}/cpu.cfs_period_us": f"{period_us}\n",
    }


def _member(*lines: str) -> dict[str, str]:
    return {"proc/self/cgroup": "".join(f"{line}\n" for line in lines)}


@pytest.mark.parametrize(
    "files",
    [
        {},
        _version_2("max 100000"),
        _version_2(""),
        _version_2("100000 0"),
        _version_2("100000000 100000"),
        _version_1(-1, 100000),
        _version_1(100000, 0),
        {f"{MOUNT}/cpu/cpu.cfs_quota_us": "50000\n"},
        _version_1(100000 * 1000, 100000),
        _member(f"0::{SERVICE}") | _version_2("max 100000", SERVICE),
        _member(f"0::{SERVICE}") | _version_2("100000 100000", "/other.slice"),
        _member("4:cpuset:/a", "5:memory:/a") | _version_1(100000, 100000, group="/a"),
        _member("0::/../a") | _version_2("100000 100000", "/a"),
        _member("not a line of it", "") | _version_2("max 100000"),
    ],
    ids=repr,
)
def test_without_a_quota_all_cores_are_used(tmp_path: Path, files: dict[str, str]) -> None:
    assert _core.usable_cores(_write(tmp_path, files)) == ALL


@needs_two_cores
@pytest.mark.parametrize(
    ("files", "cores"),
    [
        (_version_2("100000 100000"), 1),
        (_version_2("1000 100000"), 1),
        (_version_2("100001 100000"), 2),
        (_version_1(100000, 100000), 1),
        (_version_1(25000, 50000), 1),
        (_version_1(100001, 100000), 2),
        (_version_1(100000, 100000, "cpu,cpuacct"), 1),
        (_version_2("max 100000") | _version_1(100000, 100000), 1),
        (_version_2("100000 100000") | _version_1(-1, 100000), 1),
        (_version_2("800000 100000") | _version_1(100000, 100000), 1),
        (_member(f"0::{SERVICE}") | _version_2("100000 100000", SERVICE), 1),
        (_member(f"0::{SERVICE}") | _version_2("100000 100000", "/system.slice"), 1),
        (
            _member("0::/a/b/c")
            | _version_2("max 100000", "/a/b/c")
            | _version_2("100000 100000", "/a/b")
            | _version_2("800000 100000", "/a"),
            1,
        ),
        (_member("4:cpu,cpuacct:/a/b") | _version_1(100000, 100000, "cpu,cpuacct", "/a"), 1),
        (_member("4:cpuacct,cpu:/a", "0::/") | _version_1(100000, 100000, group="/a"), 1),
        # A container that sees its own group as the topmost one.
        (_member("4:cpu:/docker/1f") | _version_1(100000, 100000), 1),
    ],
    ids=repr,
)
def test_the_least_quota_of_a_group_and_those_above_it_counts(
    tmp_path: Path, files: dict[str, str], cores: int
) -> None:
    assert _core.usable_cores(_write(tmp_path, files)) == cores


def test_this_machine_has_some() -> None:
    assert 1 <= _core.physical_cores() <= _core.usable_cores() <= ALL


@pytest.fixture(scope="module")
def many_cores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with which a process believes that it has as many cores as CT2_TEST_CORES says."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++")
    library = tmp_path_factory.mktemp("preload") / "many_cores.so"
    subprocess.run([compiler, "-shared", "-fPIC", MANY_CORES, "-o", library], check=True)
    return library


def _seen(many_cores: Path, cores: int, expression: str) -> str:
    code = f"from ct2_triton import _core; print({expression})"
    environment = {**os.environ, "LD_PRELOAD": str(many_cores), "CT2_TEST_CORES": str(cores)}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return result.stdout.strip()


@pytest.mark.plain_process
@pytest.mark.parametrize("cores", [3, 1024, 1025, 5000])
def test_more_processors_than_a_fixed_mask_has_room_for(
    many_cores: Path, tmp_path: Path, cores: int
) -> None:
    assert _seen(many_cores, cores, f"_core.usable_cores({str(tmp_path)!r})") == str(cores)


@pytest.mark.plain_process
@pytest.mark.parametrize(("quota", "physical"), [("max 100000", 4), ("300000 100000", 3)])
def test_hyperthreads_of_a_core_count_as_one_physical_core(
    many_cores: Path, tmp_path: Path, quota: str, physical: int
) -> None:
    """Seven processors: 0 and 3, 1 and 4, 2 and 5 share a core; 6 has one of its own."""
    siblings = {i: f"{i % 3},{i % 3 + 3}" for i in range(6)} | {6: "6"}
    folder = "sys/devices/system/cpu"
    files = {f"{folder}/cpu{i}/topology/thread_siblings_list": text for i, text in siblings.items()}
    root = _write(tmp_path, files | _version_2(quota))
    assert _seen(many_cores, 7, f"_core.physical_cores({root!r})") == str(physical)
