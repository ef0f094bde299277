# SPDX-License-Identifier: Apache-2.0
"""Programs of Debian's packages that a test needs: installed where that is allowed."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.checkout import ROOT

# Of all who install packages while tests run; tests/fuzz/fuzz.sh has the same.
LOCK = ROOT / "build" / ".apt.lock"


def debian_command(name: str, package: str | None = None) -> Path:
    """The path of a program; its package is installed first where it is missing.

    Args:
        name: The program.
        package: Debian's name of its package, where it is another.
    """
    found = shutil.which(name)
    if found is None:
        _install(package or name)
        found = shutil.which(name)
    assert found is not None, f"package {package or name} brings no program {name}"
    return Path(found)


def debian_packages(*names: str) -> None:
    """Packages that a test needs; those that are missing are installed first."""
    missing = [name for name in names if not _is_installed(name)]
    if missing:
        _install(*missing)


def _is_installed(package: str) -> bool:
    if shutil.which("dpkg-query") is None:
        return False
    query = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", package]
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout == "installed"


def _install(*packages: str) -> None:
    names = " ".join(packages)
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip(f"needs of Debian: apt-get install {names}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("w") as lock:  # apt-get refuses to run twice at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        for arguments in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
            done = subprocess.run(
                ["apt-get", "-qq", *arguments],
                env=environment, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            )  # fmt: skip
    if done.returncode != 0:  # offline, for instance
        said = done.stderr.decode().strip().rpartition("\n")[2]
        pytest.skip(f"needs of Debian, which cannot be had: {names}: {said}")
