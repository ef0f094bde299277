# SPDX-License-Identifier: Apache-2.0
"""The emulated driver refuses what a driver refuses."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from support import emulated_gpu

NOT_IN_CAPTURE, BROKEN_CAPTURE = 900, 901
THREAD_LOCAL = 1
SIZE = 64


@pytest.fixture
def driver() -> Any:
    return ctypes.CDLL(str(emulated_gpu.emulated_gpu()))


@pytest.fixture
def stream(driver: Any) -> Any:
    made = ctypes.c_void_p()
    assert driver.cuStreamCreate(ctypes.byref(made), 0) == 0
    yield made
    assert driver.cuStreamDestroy_v2(made) == 0


def memory_of(driver: Any) -> ctypes.c_ulonglong:
    address = ctypes.c_ulonglong()
    assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(SIZE)) == 0
    return address


@pytest.mark.parametrize(
    "what",
    ["allocate", "free", "copy to", "copy from", "fill", "wait", "find a kernel", "launch a graph"],
)
def test_a_capture_is_lost_by_all_but_launches(driver: Any, stream: Any, what: str) -> None:
    """Of what the driver's documentation forbids or leaves to it, our graphs need nothing."""
    address, host, found = memory_of(driver), (ctypes.c_char * SIZE)(), ctypes.c_void_p()
    size = ctypes.c_size_t(SIZE)
    calls = {
        "allocate": (driver.cuMemAlloc_v2, ctypes.byref(ctypes.c_ulonglong()), size),
        "free": (driver.cuMemFree_v2, address),
        "copy to": (driver.cuMemcpyHtoDAsync_v2, address, host, size, stream),
        "copy from": (driver.cuMemcpyDtoHAsync_v2, host, address, size, stream),
        "fill": (driver.cuMemsetD8Async, address, ctypes.c_ubyte(0), size, stream),
        "wait": (driver.cuStreamSynchronize, stream),
        "find a kernel": (driver.cuModuleGetFunction, ctypes.byref(found), None, b"choose"),
        "launch a graph": (driver.cuGraphLaunch, None, stream),
    }
    function, *arguments = calls[what]
    graph = ctypes.c_void_p()
    assert driver.cuStreamBeginCapture_v2(stream, THREAD_LOCAL) == 0

    assert function(*arguments) == NOT_IN_CAPTURE

    assert driver.cuStreamEndCapture(stream, ctypes.byref(graph)) == BROKEN_CAPTURE
    assert graph.value is None
    assert driver.cuMemFree_v2(address) == 0
    assert driver.cuStreamBeginCapture_v2(stream, THREAD_LOCAL) == 0
    assert driver.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0
    assert driver.cuGraphDestroy(graph) == 0


def test_a_kernel_that_does_not_exist_is_not_found(driver: Any) -> None:
    assert driver.cuModuleGetFunction(ctypes.byref(ctypes.c_void_p()), None, b"no") == 500
