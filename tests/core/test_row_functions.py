# SPDX-License-Identifier: Apache-2.0
"""Norms and log-softmax of the decode loop: the bits of CTranslate2's own functions."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ct2_triton import _core

FLOATS = ctypes.POINTER(ctypes.c_float)
# Around the widths of registers and the sizes of known models.
SIZES = [1, 3, 4, 5, 7, 8, 9, 11, 12, 13, 16, 20, 31, 32, 100, 512, 515, 1024, 4099]
# CTranslate2 takes the functions for AVX2 where it is left alone, on newer processors too.
AVX2 = "_ZN11ctranslate23cpu{}ILNS0_6CpuIsaE2EEEv{}"


@pytest.fixture(params=["plain", "avx2", "avx512"])
def kernels(request: pytest.FixtureRequest) -> str:
    if not {"avx2", request.param} <= set(_core.kernel_names()):
        pytest.skip("this processor does not run them, or not CTranslate2's")
    return str(request.param)


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    """The library of CTranslate2 that the core has loaded."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    [path] = {line.split()[-1] for line in maps if "/libctranslate2" in line}
    return ctypes.CDLL(path)


def rows(size: int) -> Any:
    """Rows of several magnitudes, with and without a mean."""
    rng = np.random.default_rng(size)
    for spread in (0.01, 1, 30):
        for mean in (0, 5):
            yield (rng.normal(size=size) * spread + mean).astype(np.float32)


def pointer(array: Any) -> Any:
    return array.ctypes.data_as(FLOATS)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shifted", [True, False], ids=["layer norm", "rms norm"])
def test_norms_have_the_librarys_bits(
    kernels: str, library: ctypes.CDLL, size: int, shifted: bool
) -> None:
    one, size_of = ctypes.c_long(1), ctypes.c_long(size)
    rng = np.random.default_rng(1)
    gamma, beta = rng.normal(size=(2, size)).astype(np.float32)
    epsilon = 1e-5 if shifted else 1e-6
    for row in rows(size):
        expected = np.empty_like(row)
        if shifted:
            library[AVX2.format("10layer_norm", "PKfS4_S4_Pfllf")](
                pointer(row), pointer(gamma), pointer(beta), pointer(expected), one, size_of,
                ctypes.c_float(epsilon),
            )  # fmt: skip
        else:
            library[AVX2.format("8rms_norm", "PKfS4_Pfllfb")](
                pointer(row), pointer(gamma), pointer(expected), one, size_of,
                ctypes.c_float(epsilon), False,
            )  # fmt: skip
        found = _core.norm(kernels, row, gamma, beta if shifted else None, epsilon)
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("size", SIZES)
def test_log_softmax_has_the_librarys_bits(kernels: str, library: ctypes.CDLL, size: int) -> None:
    log_softmax = library[AVX2.format("7softmax", "PKfPKiPfllb")]
    for row in rows(size):
        expected = np.empty_like(row)
        log_softmax(
            pointer(row), None, pointer(expected), ctypes.c_long(1), ctypes.c_long(size), True
        )
        assert _core.log_softmax(kernels, row).tobytes() == expected.tobytes()
