# SPDX-License-Identifier: Apache-2.0
"""What this machine has for a server: GPUs, real or emulated, cuBLAS, and exact int8 products."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# The library that CTranslate2 loads for its first product on a GPU; its wheel has the others.
CUBLAS = "libcublas.so.12"


def count_gpus() -> int:
    """Return the CUDA driver's number of devices (0 without it), as CUDA_VISIBLE_DEVICES allows."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def cublas_wheel_folder() -> Path | None:
    """Find cuBLAS 12 in a Python wheel, which the loader does not search by itself."""
    spec = importlib.util.find_spec("nvidia")
    for location in (spec and spec.submodule_search_locations) or ():
        for library in sorted(Path(location).glob(f"*/lib/{CUBLAS}")):
            return library.parent
    return None


def has_cublas() -> bool:
    """Return whether a server on this machine finds cuBLAS 12, by the loader or in a wheel."""
    if cublas_wheel_folder() is not None:
        return True
    try:
        ctypes.CDLL(CUBLAS)
    except OSError:
        return False
    return True


INEXACT_INT8 = (
    "this processor lacks VNNI, so CTranslate2's calls at int8 are inexact; decode loops are exact,"
    " and CT2_USE_MKL=1 or compute_type float32 makes calls exact and slower"
)


def int8_calls_are_inexact(
    variables: Mapping[str, str] = os.environ, processor: Path = Path("/proc/cpuinfo")
) -> bool:
    """Return whether oneDNN multiplies int8 and adds the products in 16 bits.

    On Intel, or if configured, CTranslate2 uses MKL instead.
    """
    try:
        found = processor.read_text(encoding="utf-8")
    except OSError:
        return False
    by_mkl = variables.get("CT2_USE_MKL", "GenuineIntel" if "GenuineIntel" in found else "0")
    return "avx2" in found and "vnni" not in found and by_mkl.lower() in {"0", "false"}


_VARIABLE = "CT2_TRITON_GPU"  # as the backend reads it


def is_emulated(environment: Mapping[str, str]) -> bool:
    """Return whether CT2_TRITON_GPU, here or in `environment`, asks for an emulated GPU."""
    return {**os.environ, **environment}.get(_VARIABLE) == "emulated"


def lacks_gpu(environment: Mapping[str, str]) -> bool:
    """Return whether there is no GPU, not even an emulated one."""
    return count_gpus() == 0 and not is_emulated(environment)
