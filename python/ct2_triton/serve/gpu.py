# SPDX-License-Identifier: Apache-2.0
"""What a server started here would find of GPUs and of the library that the engine needs on one."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path

# What CTranslate2 asks the loader for when it first multiplies on a GPU; its wheel has the rest.
CUBLAS = "libcublas.so.12"


def count_gpus() -> int:
    """Ask the CUDA driver for its devices (0 without one); CUDA_VISIBLE_DEVICES is honoured."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def cublas_wheel_folder() -> Path | None:
    """Find cuBLAS 12 in a Python wheel, where the loader does not look by itself."""
    spec = importlib.util.find_spec("nvidia")
    for location in (spec and spec.submodule_search_locations) or ():
        for library in sorted(Path(location).glob(f"*/lib/{CUBLAS}")):
            return library.parent
    return None


def has_cublas() -> bool:
    """Tell whether a server started here finds cuBLAS 12, through the loader or in a wheel."""
    if cublas_wheel_folder() is not None:
        return True
    try:
        ctypes.CDLL(CUBLAS)
    except OSError:
        return False
    return True
