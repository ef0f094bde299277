# SPDX-License-Identifier: Apache-2.0
"""The emulated driver refuses what a driver refuses."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path
from typing import Any

import pytest

from core.gpu_truth import GpuTruth, begin, forget, run, translate
from ct2_triton import _core
from support import emulated_gpu
from support.commands import run as run_command
from support.native import backend_objects, link, linked_engine
from support.tiny import tiny_engine_model
from tiny_models import TinyOptions

NO_CONTEXT, INVALID_HANDLE, NOT_IN_CAPTURE, BROKEN_CAPTURE = 201, 400, 900, 901
THREAD_LOCAL = 1
SIZE = 64


@pytest.fixture
def driver() -> Any:
    library = ctypes.CDLL(str(emulated_gpu.emulated_gpu()))
    use_device(library, 0)
    yield library
    library.cuCtxSetCurrent(None)


@pytest.fixture
def two_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library of its own, which reads the number of devices when it is loaded."""
    monkeypatch.setenv("CT2_TRITON_EMULATED_GPUS", "2")
    return Path(shutil.copy(emulated_gpu.emulated_gpu(), tmp_path / "libtwo_gpus.so"))


def use_device(driver: Any, ordinal: int) -> None:
    """Makes a device's context that of this thread."""
    context = ctypes.c_void_p()
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal) == 0
    assert driver.cuCtxSetCurrent(context) == 0


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


def test_a_thread_needs_the_context_of_the_stream(two_devices: Path) -> None:
    driver, size, made = ctypes.CDLL(str(two_devices)), ctypes.c_size_t(SIZE), ctypes.c_void_p()
    assert driver.cuMemAlloc_v2(ctypes.byref(ctypes.c_ulonglong()), size) == NO_CONTEXT
    use_device(driver, 0)
    assert driver.cuStreamCreate(ctypes.byref(made), 0) == 0
    use_device(driver, 1)

    assert driver.cuStreamSynchronize(made) == INVALID_HANDLE

    use_device(driver, 0)
    assert driver.cuStreamSynchronize(made) == 0
    assert driver.cuStreamDestroy_v2(made) == 0


def test_two_devices_take_turns_on_a_thread(two_devices: Path, tmp_path: Path) -> None:
    """Each call is made in the context of its device, which has memory of its own."""
    truth = GpuTruth(tiny_engine_model("marian"))
    images = emulated_gpu.no_images(tmp_path / "kernels.bin")
    first, second = (truth.decoder(two_devices, images, ordinal=ordinal) for ordinal in (0, 1))
    [source, other] = truth.sources(9, 5)
    want = [translate(first, truth, [row], 4) for row in (source, other)]

    [one], [two] = first.encode([source]), second.encode([other])
    names = begin(first, truth, one, limit=4), begin(second, truth, two, limit=4)
    steps: list[list[int]] = [[], []]
    for position in range(4):
        for decoder, name, found in zip((first, second), names, steps, strict=True):
            given = [truth.start] if position == 0 else []
            found += [c.token for c in run(decoder, [(name, position, given, 1)])]
    forget(first, [names[0]], [one])
    forget(second, [names[1]], [two])

    assert [[t for t in found if t >= 0] for found in steps] == [rows[0][0] for rows in want]
    assert first.device == "0 (emulated)"
    assert second.device == "1 (emulated)"
    with pytest.raises(_core.Error, match="there is no GPU 2; this machine has 2"):
        truth.decoder(two_devices, images, ordinal=2)


@pytest.mark.plain_process
def test_rows_go_to_the_gpu_with_less_load(tmp_path: Path) -> None:
    """Triton gives a batch to any instance that has returned, which ours have at once."""
    program = tmp_path / "two_gpus"
    link(
        program,
        *("two_gpus.cc", "triton_stand_in.cc", "triton_stand_in_request.cc"),
        *backend_objects(),
        *linked_engine(),
    )
    (tmp_path / "libcuda.so.1").symlink_to(emulated_gpu.emulated_gpu())
    environment = {**emulated_gpu.server_environment(), "CT2_TRITON_EMULATED_GPUS": "2"}
    environment["LD_LIBRARY_PATH"] += f":{tmp_path}"

    model = tiny_engine_model("nllb", TinyOptions(max_positions=1100))
    assert "both GPUs answered" in run_command(program, model, **environment).stdout
