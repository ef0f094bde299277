# SPDX-License-Identifier: Apache-2.0
"""Programs of Debian's packages that a test needs: installed where that is allowed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


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


def _install(package: str) -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip(f"needs Debian's package {package}: apt-get install {package}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", package]):
        subprocess.run(
            ["apt-get", "-qq", *arguments], env=environment, check=True, stdout=subprocess.DEVNULL
        )
