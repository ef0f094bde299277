# SPDX-License-Identifier: Apache-2.0
"""Runs of the tests on machines that this one is not."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.checkout import NO_GIT, git, needs_git
from support.commands import run
from support.debian_packages import debian_command

ROOT = Path(__file__).resolve().parents[2]


def run_tests(
    *arguments: str, code: int, on: Sequence[str] = (), folder: Path = ROOT, **variables: str
) -> Any:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return run(*on, *command, code=code, folder=folder, **variables)


def in_namespaces(*options: str) -> list[str]:
    """Before a command, so that it runs in such namespaces. Skips where none can be made."""
    command = [str(debian_command("unshare", "util-linux")), *options]
    done = run(*command, "true", code=None)
    if done.returncode:
        pytest.skip(f"no namespaces can be made here: {done.stderr.strip()}")
    return command


def test_without_the_compiled_core_the_tests_of_the_toolkit_run() -> None:
    """As on arm64; what imports the core is skipped, and the run is green."""
    done = run_tests(
        *("tests/docs/test_parameters_doc.py", "tests/docs/test_demo.py"),
        "tests/python/test_arguments.py",
        code=0,
        CT2_TRITON_CORE="/nonexistent",
    )
    reason = "CT2_TRITON_CORE names /nonexistent, which is not there"
    assert f"SKIPPED [1] tests/docs/test_parameters_doc.py:0: {reason}" in done.stdout
    assert f"needs the backend: {reason}" in done.stdout
    assert " passed" in done.stdout
    assert "kernels tested: none" in done.stdout


def test_a_processor_without_the_kernels_that_a_run_requires_is_refused() -> None:
    done = run_tests("tests/python/test_arguments.py", "--require-kernels=avx2048,plain", code=4)
    assert "--require-kernels: this processor does not run avx2048; it runs " in done.stderr


SERVED = ("tests/server/test_tensors.py", "tests/python/test_arguments.py", "--share=8")
DECODED = ("tests/core/test_loop.py", "tests/core/test_products.py", "--share=10", "-m", "not long")


def test_a_user_without_rights() -> None:
    """Files belong to this user, who may install nothing and mount nothing."""
    user = in_namespaces("--user", "--map-user=1000", "--map-group=1000")
    packages = ("tests/packaging/test_system_packages.py", "tests/packaging/test_makefile.py")
    done = run_tests(*SERVED, *packages, "tests/deploy/test_cut_links.py", code=0, on=user)
    assert "network namespaces need root" in done.stdout
    assert "no network namespace can be made" not in done.stdout


def test_no_network() -> None:
    up = f"{debian_command('ip', 'iproute2')} link set lo up"
    alone = in_namespaces("--user", "--map-root-user", "--net")
    done = run_tests(*SERVED, code=0, on=[*alone, "sh", "-c", f'{up}; exec "$@"', "sh"])
    assert " passed" in done.stdout


def test_a_processor_without_avx512() -> None:
    done = run_tests(*DECODED, code=0, CT2_TRITON_KERNELS="avx2")
    assert " passed" in done.stdout
    assert "kernels tested: avx2, plain\n" in done.stdout


def test_64_cores(tmp_path: Path) -> None:
    library = tmp_path / "many_cores.so"
    run("g++", "-shared", "-fPIC", "-o", library, ROOT / "tests" / "native" / "many_cores.cc")
    tests = ("tests/core/test_core_shares.py", *DECODED)
    done = run_tests(*tests, code=0, LD_PRELOAD=str(library), OMP_NUM_THREADS="2")
    assert " passed" in done.stdout


@needs_git
def test_a_source_archive(tmp_path: Path) -> None:
    """As GitHub's archive of a release: the tracked files, and no history."""
    for name in git("ls-files"):
        target = tmp_path / "source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    rules = ("tests/packaging/test_house_rules.py", "tests/packaging/test_workflows.py")
    tests = (*rules, "tests/packaging/test_third_party.py", "tests/docs/test_diagrams.py")
    done = run_tests(*tests, code=0, folder=tmp_path / "source")
    assert NO_GIT in done.stdout
