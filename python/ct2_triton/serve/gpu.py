# SPDX-License-Identifier: Apache-2.0
"""Counts the GPUs that a server started here would see."""

from __future__ import annotations

import ctypes


def count_gpus() -> int:
    """Ask the CUDA driver for its devices; CUDA_VISIBLE_DEVICES is honoured.

    Returns:
        The number of devices; 0 without a driver.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value
