# SPDX-License-Identifier: Apache-2.0
"""Programs of tests/native, linked with the core that the package was built from."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tests" / "native"


def built_core() -> Path:
    """The build folder of the backend with the static core; where there is none, skips."""
    named = Path(os.environ.get("CT2_TRITON_CORE", "")).parent  # of a build of its own
    builds = [named, *ROOT.glob("build/cp*/backend")]
    cores = [core for build in builds if (core := build / "libct2triton_core.a").exists()]
    if not cores or shutil.which("g++") is None:
        pytest.skip("needs g++ and the static core that an editable install leaves in build/")
    return max(cores, key=lambda core: core.stat().st_mtime).parent


def link(to: Path, *parts: Path | str) -> None:
    """Makes a program of sources, objects and libraries, with the core's headers.

    Args:
        to: The program.
        parts: In the linker's order; the names of sources are of tests/native.
    """
    headers = (f"-I{ROOT / 'backend' / part}" for part in ("src", "abi", "."))
    given = (str(SOURCES / part if str(part).endswith(".cc") else part) for part in parts)
    command = ("g++", "-std=c++17", "-O2", "-pthread", *headers, '-DCT2TRITON_BUILD="none"')
    subprocess.run([*command, *given, "-ldl", "-o", str(to)], check=True)
