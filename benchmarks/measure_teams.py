# SPDX-License-Identifier: Apache-2.0
"""What idle cores that help with a decode step gain, served over gRPC.

    python benchmarks/measure_teams.py --clients 1,4,48 [--busy]

Serves one model twice: with `intra_threads` 1, where each step runs on one thread, and without,
where threads that have nothing else to do help. Both get the same load in turn; the ratio is that
of the rows answered. With --busy, a program computes on each core all the time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import threading
import time
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
"""
MODELS = {
    "one": 'parameters { key: "intra_threads" value { string_value: "1" } }',
    "team": "",
}
OPTIONS = {"beam_size": 1}


def main() -> int:
    """Measure, print, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_model_arguments(parser)
    parser.add_argument("--clients", default="1,4", help="numbers of clients (default: 1,4)")
    parser.add_argument("--rounds", type=int, default=12, help="of both models (default: 12)")
    parser.add_argument("--seconds", type=float, default=3, help="of a load (default: 3)")
    parser.add_argument("--tokens", type=int, default=18, help="of a source (default: 18)")
    parser.add_argument("--busy", action="store_true", help="with a busy program on each core")
    arguments = parser.parse_args()
    busy = [multiprocessing.Process(target=_compute, daemon=True) for _ in _cores(arguments.busy)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        repository = _repository(folder / "served", model_of(arguments, folder))
        with TritonServer(ServerOptions([repository])) as server:
            for process in busy:
                process.start()
            for clients in map(int, arguments.clients.split(",")):
                _compare(server.grpc_url, clients, arguments)
            for process in busy:
                process.kill()
    return 0


def _cores(busy: bool) -> range:
    return range(multiprocessing.cpu_count() if busy else 0)


def _compute() -> None:
    while True:
        pass


def _repository(folder: Path, directory: Path) -> Path:
    for name, parameter in MODELS.items():
        version = folder / name / "1"
        version.mkdir(parents=True)
        (version / "model").symlink_to(directory.resolve())
        (version.parent / "config.pbtxt").write_text(CONFIG + parameter, encoding="utf-8")
    return folder


def _compare(url: str, clients: int, arguments: argparse.Namespace) -> None:
    times: dict[str, list[float]] = {name: [] for name in MODELS}
    ratios = []
    for round_ in range(arguments.rounds + 1):
        rates = {}
        for name in sorted(MODELS, reverse=bool(round_ % 2)):
            taken = _load(url, name, clients, arguments)
            rates[name] = len(taken) / arguments.seconds
            if round_ > 0:  # the first one warms up
                times[name] += taken
        if round_ > 0:
            ratios.append(rates["team"] / rates["one"])
    mean, deviation = np.exp(np.mean(np.log(ratios))), np.std(ratios, ddof=1)
    print(f"{clients} clients: {mean:.3f} times the rows (deviation of a round {deviation:.3f})")
    for name, each in times.items():
        p50, p95 = np.percentile(each, [50, 95])
        rate = len(each) / arguments.rounds / arguments.seconds
        print(f"  {name}: {rate:.1f} rows/s, p50 {p50:.1f} ms, p95 {p95:.1f} ms", flush=True)


def _load(url: str, model: str, clients: int, arguments: argparse.Namespace) -> list[float]:
    """Return milliseconds of each row; clients send the next row when the last is answered."""
    end = time.perf_counter() + arguments.seconds
    times: list[float] = []

    def run(index: int) -> None:
        rng = random.Random(index)
        client = grpc_client.InferenceServerClient(url)
        while (started := time.perf_counter()) < end:
            row = random_row(rng, 4, 1000, arguments.tokens)
            ids = grpc_client.InferInput("INPUT_IDS", [1, len(row)], "INT32")
            ids.set_data_from_numpy(np.array([row], dtype=np.int32))
            client.infer(model, [ids], parameters=OPTIONS)
            times.append(1000 * (time.perf_counter() - started))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


if __name__ == "__main__":
    sys.exit(main())
