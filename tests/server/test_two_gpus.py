# SPDX-License-Identifier: Apache-2.0
"""Two GPUs, served: a real tritonserver that finds two, and the emulated driver as libcuda.so.1.

Unlike CT2_TRITON_GPU=emulated, this is the way of real GPUs: Triton makes an instance on each, and
the backend asks the driver for the device of that number.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.gpu_truth import GpuTruth
from ct2_triton.serve import TritonServer
from ct2_triton.serve.backend_files import find_backend_files
from ct2_triton.serve.machine import count_gpus
from server import configs
from server.helpers import Connection
from support import emulated_gpu
from support.checkout import ROOT
from support.metrics import fresh
from support.repository import write_model
from support.servers import ServerStack
from support.tiny import TinyOptions, tiny_engine_model
from support.waiting import wait_until

pytestmark = [
    pytest.mark.server,
    pytest.mark.plain_process,
    pytest.mark.skipif(count_gpus() > 0, reason="tests/server/test_gpu.py runs on real GPUs"),
]
ON_TWO = "instance_group { kind: KIND_GPU gpus: [ 0, 1 ] }\n"
BUSY_ROWS = 8  # more than an answered row that is still counted
LONG, SHORT = 1000, 3


def with_images(folder: Path) -> Path:
    """The installed plugin in a folder that has kernels, which the emulation does not read."""
    files = find_backend_files()
    for file in (files.plugin, files.calls):
        (folder / file.name).symlink_to(file)
    emulated_gpu.no_images(folder / "gpu_kernels.bin")
    return folder / files.plugin.name


@pytest.fixture(scope="module")
def truth() -> GpuTruth:
    return GpuTruth(tiny_engine_model("nllb", TinyOptions(max_positions=1100)))


@pytest.fixture(scope="module")
def server(truth: GpuTruth, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    folder, repository = tmp_path_factory.mktemp("gpus"), tmp_path_factory.mktemp("repository")
    preloaded = folder / "two_cuda_devices.so"
    source = ROOT / "tests" / "native" / "two_cuda_devices.cc"
    subprocess.run(["g++", "-shared", "-fPIC", "-o", preloaded, source], check=True)
    (folder / "libcuda.so.1").symlink_to(emulated_gpu.emulated_gpu())
    environment = {
        "LD_PRELOAD": str(preloaded),
        "LD_LIBRARY_PATH": str(folder),
        "CT2_TRITON_EMULATED_GPUS": "2",
    }
    # CTranslate2 finds no CUDA that it knows in the emulated driver.
    without_calls = {"decoding": "loop", "calls": "refuse", "proof": "off"}
    config = configs.full(compute_type="float32", decoding_length_limit=1024, **without_calls)
    write_model(repository, "both", truth.directory, ON_TWO + config)
    with ServerStack() as stack:
        yield stack.start(repository, environment=environment, plugin=with_images(folder))


def limits(length: int) -> dict[str, Any]:
    """Options of a row that has so many tokens."""
    return {"beam_size": 1, "min_decoding_length": length, "max_decoding_length": length}


def test_rows_beside_a_busy_gpu_run_on_the_other(server: TritonServer, truth: GpuTruth) -> None:
    """On the same GPU, they would share the steps of the rows that are there."""
    rows, prefix = truth.sources(5, 2, 11, 17), [truth.ids["deu_Latn"]]
    connection = Connection(server.grpc_url)
    long = truth.sources(*[3] * BUSY_ROWS, seed=2)  # equal rows would be decoded once
    busy = connection.start("both", long, [prefix] * BUSY_ROWS, **limits(LONG))
    wait_until(lambda: fresh(server, "both")["ct2_decoding_rows"] == BUSY_ROWS)

    found = [connection.translate("both", row, prefix, **limits(SHORT)) for row in rows]

    assert not busy.has_ended()
    busy.cancel()
    wait_until(lambda: fresh(server, "both")["ct2_decoding_rows"] == 0)
    done = fresh(server, "both")
    connection.close()
    want = [truth.result(row, prefix, return_end_token=False, **limits(SHORT)) for row in rows]
    assert found == [[truth.ids[token] for token in one.hypotheses[0]] for one in want]
    assert done["ct2_gpu_passes_total"] > 0
    lacking = BUSY_ROWS * done["ct2_loop_steps_total"] - done["ct2_loop_step_rows_total"]
    assert lacking > (BUSY_ROWS - 1) * SHORT * len(rows) / 2  # each short step lacks 7
    assert "call" not in done.by("ct2_run_rows_total")
    for number in (0, 1):
        assert f"by our own kernels on GPU {number} (emulated)" in server.log_text()
