# SPDX-License-Identifier: Apache-2.0
"""Programs of tests/native, linked with the core that the package was built from."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import ctranslate2
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


def backend_objects() -> list[Path]:
    """What the plugin is linked from, but for how it opens the library of calls."""
    objects = (built_core() / "CMakeFiles/triton_ctranslate2.dir").rglob("*.o")
    return sorted(path for path in objects if path.name != "open_library.cc.o")


def linked_engine() -> list[Path | str]:
    """The core with the library of calls and CTranslate2 in the program, for `link`."""
    build = built_core()
    calls = build / "CMakeFiles/ct2triton_calls_objects.dir/src/engine/calls/library"
    library = next(Path(ctranslate2.__file__).parents[1].glob("ctranslate2.libs/libctranslate2*"))
    return [
        *sorted(calls.glob("*.o")),
        build / "libct2triton_core.a",
        f"-Wl,--disable-new-dtags,-rpath,{library.parent}",
        *("-Wl,--allow-shlib-undefined,--no-as-needed", library),
    ]


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
