# SPDX-License-Identifier: Apache-2.0
"""The emulated GPU: kernels and the driver's functions in a library that is built here."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
from pathlib import Path

from support.checkout import ROOT
from support.made_once import made_once

SOURCES = ROOT / "backend" / "gpu"
PARTS = ("driver", "fibers", "kernels")
# backend/CMakeLists.txt has the same.
NAME = "libct2triton_emulated_gpu.so"
SONAME = f"-Wl,-soname,{NAME}"
FLAGS = ("-std=c++17", "-ffp-contract=off", "-fPIC")


def sources(folder: Path = SOURCES) -> list[Path]:
    """All that the library is made of."""
    return sorted(path for path in folder.rglob("*") if path.suffix in {".cc", ".cu", ".cuh", ".h"})


def emulated_gpu(folder: Path = SOURCES, flags: tuple[str, ...] = ("-O2",)) -> Path:
    """Builds the library, unless these sources were built with these flags before.

    Args:
        folder: A copy of backend/gpu.
        flags: Further ones of the compiler.

    Returns:
        The library.
    """
    digest = hashlib.sha256(repr((SONAME, flags)).encode())
    for path in sources(folder):
        digest.update(path.read_bytes())
    parts = [str(folder / "emulation" / f"{part}.cc") for part in PARTS]
    command = ["g++", *FLAGS, *flags, "-shared", SONAME, *parts, "-o"]
    return made_once(
        ROOT / "build" / "emulated-gpu" / digest.hexdigest()[:16] / NAME,
        lambda library: subprocess.run([*command, str(library)], check=True),
    )


# A library of the CUDA driver and a file of tools/gpu_images.py: the tests run on a real GPU then.
REAL_DRIVER = os.environ.get("CT2_TRITON_TEST_CUDA")
REAL_IMAGES = os.environ.get("CT2_TRITON_TEST_GPU_IMAGES")


def gpu_and_images(folder: Path) -> tuple[Path, Path]:
    """The library and the images that tests use: emulated ones, unless a GPU is named."""
    if REAL_DRIVER:
        return Path(REAL_DRIVER), Path(REAL_IMAGES or "")
    return emulated_gpu(), no_images(folder / "kernels.bin")


def load() -> None:
    """Makes the library known in this process by its name, as backend/ asks for it."""
    ctypes.CDLL(str(emulated_gpu()))


def server_environment(lost_after: int | None = None, code: int = 700) -> dict[str, str]:
    """What makes the models of a server run on the emulation.

    Args:
        lost_after: Launches of graphs, the last of which fails as all that follows it; with 0, the
            kernels do not load.
        code: The driver's, with which they fail.
    """
    fault = {}
    if lost_after is not None:
        fault["CT2_TRITON_EMULATED_GPU_FAULT"] = f"{lost_after},{code}"
    folder = str(emulated_gpu().parent)
    return {"CT2_TRITON_GPU": "emulated", "LD_LIBRARY_PATH": folder, **fault}


def run_in_order(library: Path, seed: int) -> None:
    """Chooses the order in which threads run, of this process and this library."""
    ctypes.CDLL(str(library)).ct2t_emulation_seed(seed)


def limit_memory(library: Path, size: int) -> None:
    """Sets how much memory the device has."""
    ctypes.CDLL(str(library)).ct2t_emulation_memory(ctypes.c_size_t(size))


def graphs_at_once(library: Path) -> int:
    """Graphs that waited in a stream at once, at most, since the last call."""
    return int(ctypes.CDLL(str(library)).ct2t_emulation_graphs_at_once())


def no_images(path: Path) -> Path:
    """Writes a file of images that the emulation takes: it has its kernels in itself."""
    # Not on the path of programs that need only the library.
    from gpu_images import Image, pack

    path.write_bytes(pack([Image("sm_80", b"emulated", {}, {})]))
    return path
