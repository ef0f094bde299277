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

INVALID_VALUE, NO_CONTEXT, INVALID_HANDLE = 1, 201, 400
SIZE = 64


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("sizes", ctypes.c_uint * 7),  # grid, block, shared memory
        ("args", ctypes.POINTER(ctypes.c_void_p)),
        *((name, ctypes.c_void_p) for name in ("extra", "kernel", "context")),
    )


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


def test_a_graph_is_one_chain_of_kernels(driver: Any) -> None:
    """A device may run nodes that do not depend on each other at the same time."""
    function, graph, node = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    assert driver.cuModuleGetFunction(ctypes.byref(function), None, b"choose") == 0
    assert driver.cuGraphCreate(ctypes.byref(graph), 0) == 0
    given = (ctypes.c_char * 4096)()
    args = (ctypes.c_void_p * 1)(ctypes.addressof(given))
    launch = KernelNode(function, (1, 1, 1, 32, 1, 1, 256), args)

    def add(after: Any, count: int) -> int:
        size = ctypes.c_size_t(count)
        code = driver.cuGraphAddKernelNode_v2(
            ctypes.byref(node), graph, after, size, ctypes.byref(launch)
        )
        return int(code)

    assert add(None, 0) == 0
    first = ctypes.c_void_p(node.value)
    assert add(ctypes.byref(first), 1) == 0
    assert add(None, 0) == INVALID_VALUE
    assert add(ctypes.byref(first), 1) == INVALID_VALUE
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
