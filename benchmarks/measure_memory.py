# SPDX-License-Identifier: Apache-2.0
"""What a server with several different models keeps in memory, beside their weights.

    python benchmarks/measure_memory.py --models 4

Serves int8 models with their own files, in decode loops and in CTranslate2 calls. Prints resident
MiB after loading and after clients have sent each sentence to all models for some seconds, and the
sizes of weights and copies that `ct2_weight_bytes` reports.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np
import tritonclient.grpc as grpc_client

from ct2_triton.serve import ServerOptions, TritonServer
from random_rows import random_row
from shape_model import add_model_arguments, model_of

CONFIG = """
backend: "ctranslate2"
dynamic_batching { }
instance_group { kind: KIND_CPU count: 1 }
parameters { key: "compute_type" value { string_value: "int8" } }
"""
WAYS = {"loops": {}, "calls": {"decoding": "calls"}}
MIB = 2**20


def main() -> int:
    """Prints a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_model_arguments(parser)
    parser.add_argument("--models", type=int, default=4, help="default: %(default)s")
    parser.add_argument("--clients", type=int, default=12, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=6, help="of load (default: %(default)s)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = model_of(args, Path(scratch))
        for name, parameters in WAYS.items():
            repository = _repository(Path(scratch) / name, directory, args.models, parameters)
            print(f"{name}: {_measure(repository, args)}", flush=True)
    return 0


def _repository(folder: Path, model: Path, count: int, parameters: dict[str, str]) -> Path:
    config = CONFIG + "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
        for key, value in parameters.items()
    )
    for i in range(count):
        shutil.copytree(model, folder / f"model-{i}" / "1" / "model")
        (folder / f"model-{i}" / "config.pbtxt").write_text(config, encoding="utf-8")
    return folder


def _measure(repository: Path, args: argparse.Namespace) -> str:
    with TritonServer(ServerOptions([repository])) as server:
        loaded = _resident_mib(server)
        threads = [
            threading.Thread(target=_send, args=(server.grpc_url, seed, args))
            for seed in range(args.clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(1)  # metrics are published four times a second
        with urllib.request.urlopen(server.metrics_url) as answer:  # noqa: S310
            page = answer.read().decode()
        lines = re.findall(r"^ct2_weight_bytes\{[^}]*\} (\S+)", page, re.MULTILINE)
        weights, used = sum(map(float, lines)) / MIB, _resident_mib(server)
        return (
            f"weights {weights:.0f} MiB, resident {loaded:.0f} loaded, {used:.0f} after the load: "
            f"{used - weights:.0f} beside the weights"
        )


def _resident_mib(server: TritonServer) -> float:
    text = Path(f"/proc/{server.process.pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"VmRSS:\s+(\d+) kB", text)[1]) / 1024


def _send(url: str, seed: int, args: argparse.Namespace) -> None:
    """Sends each sentence to all models, one after the other."""
    client = grpc_client.InferenceServerClient(url)
    rng = random.Random(seed)
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        row = random_row(rng, 1000, 20_000)
        ids = grpc_client.InferInput("INPUT_IDS", [1, len(row)], "INT32")
        ids.set_data_from_numpy(np.array([row], dtype=np.int32))
        for i in range(args.models):
            client.infer(f"model-{i}", [ids])


if __name__ == "__main__":
    sys.exit(main())
