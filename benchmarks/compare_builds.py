# SPDX-License-Identifier: Apache-2.0
"""Compares two builds of the backend in turn: requests a second, time and memory of a load.

    python benchmarks/compare_builds.py OLD.so NEW.so [--rounds 12] [--load nllb-600m]

Each build is in one folder with its other libraries. Both are served at once, and the same rows go
to one and then to the other. A table gives each scenario's geometric mean of the ratios NEW / OLD
and their range. `--load` compares a server's start with an int8 model of this shape instead, in
seconds and in MiB of peak resident memory. NEW is started twice, first with an empty cache of
proofs and then with the proof that the first start wrote. The files are in the page cache.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tritonclient.grpc as grpc_client

from closed_loop import send_all
from ct2_triton.bench.shapes import SHAPES
from ct2_triton.serve import ServerOptions, TritonServer
from random_rows import Rows, same_rows
from shape_model import make_shape

CONFIG = """
backend: "ctranslate2"
max_batch_size: 64
input [
  { name: "INPUT_IDS" data_type: TYPE_INT32 dims: [ -1 ] allow_ragged_batch: true },
  {
    name: "TARGET_PREFIX" data_type: TYPE_INT32 dims: [ -1 ]
    allow_ragged_batch: true optional: true
  }
]
output { name: "OUTPUT_IDS" data_type: TYPE_INT32 dims: [ -1 ] }
instance_group { kind: KIND_CPU count: 1 }
parameters { key: "max_decoding_length" value { string_value: "24" } }
"""
FOUR = [f"int8-{i}" for i in range(4)]
SCENARIOS = {  # models, clients, rows a round
    "1 client, int8": (["int8-0"], 1, 24),
    "16 clients, int8": (["int8-0"], 16, 160),
    "48 clients, int8": (["int8-0"], 48, 288),
    "48 clients, float32": (["float32"], 48, 144),
    "four models, 12 clients": (FOUR, 12, 120),
}


def main() -> int:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rounds", type=int, default=12, help="default: %(default)s")
    parser.add_argument("--load", choices=SHAPES, help="compare the load of this shape")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["XDG_CACHE_HOME"] = f"{scratch}/cache"
        if args.load:
            compare_loads(args, make_shape(args.load, Path(scratch)), Path(scratch))
        else:
            model = make_shape("transformer-base", Path(scratch))
            compare_rates(args, model, Path(scratch))
    return 0


def compare_rates(args: argparse.Namespace, model: Path, scratch: Path) -> None:
    """Serves both builds and prints a line for each scenario."""
    repository = scratch / "repository"
    for name in (*FOUR, "float32"):
        add(repository, name, model, name.split("-")[0])
    with server(args.old, repository) as old, server(args.new, repository) as new:
        clients = [grpc_client.InferenceServerClient(each.grpc_url) for each in (old, new)]
        print("| scenario | old, rows/s | new, rows/s | ratio | range |\n|---|---:|---:|---:|---:|")
        means = []
        for name, (models, count, rows) in SCENARIOS.items():
            rates = rates_in_turn(clients, models, count, same_rows(rows), args.rounds)
            ratios = [b / a for a, b in zip(*rates, strict=True)]
            means.append(math.exp(statistics.mean(map(math.log, ratios))))
            old_rate, new_rate = map(statistics.median, rates)
            print(
                f"| {name} | {old_rate:.1f} | {new_rate:.1f} | {means[-1]:.3f} "
                f"| {min(ratios):.2f} to {max(ratios):.2f} |",
                flush=True,
            )
    print(f"\nGeometric mean: {math.exp(statistics.mean(map(math.log, means))):.3f}")


def rates_in_turn(
    clients: Sequence[grpc_client.InferenceServerClient],
    models: Sequence[str],
    count: int,
    rows: Rows,
    rounds: int,
) -> tuple[list[float], list[float]]:
    """Return rows per second of both servers in each round, after a warm-up round."""
    rates: tuple[list[float], list[float]] = ([], [])
    with ThreadPoolExecutor(len(models)) as pool:
        for turn in range(-1, rounds):
            for k in (0, 1) if turn % 2 else (1, 0):
                begin = time.perf_counter()
                sent = [
                    pool.submit(
                        send_all,
                        clients[k],
                        name,
                        rows[i :: len(models)],
                        max(1, count // len(models)),
                    )
                    for i, name in enumerate(models)
                ]
                for each in sent:
                    each.result()
                if turn >= 0:
                    rates[k].append(len(rows) / (time.perf_counter() - begin))
    return rates


def compare_loads(args: argparse.Namespace, model: Path, scratch: Path) -> None:
    """Starts a server with each build in turn; prints a line a round."""
    repository = scratch / "repository"
    add(repository, "int8", model, "int8")
    print(f"model.bin: {(model / 'model.bin').stat().st_size / 2**20:.0f} MiB\n")
    print("| old | new, without a proof | new, with a proof | ratio |\n|---|---|---|---:|")
    for turn in range(-1, args.rounds):
        old = start(args.old, repository)
        shutil.rmtree(scratch / "cache/ct2-triton/proofs", ignore_errors=True)
        tried, proved = start(args.new, repository), start(args.new, repository)
        if turn >= 0:
            cells = " | ".join(f"{s:.2f} s, {m:.0f} MiB" for s, m in (old, tried, proved))
            print(f"| {cells} | {proved[0] / old[0]:.2f} |", flush=True)


def start(plugin: Path, repository: Path) -> tuple[float, float]:
    """Return seconds until a server with this build is ready, and its peak resident MiB."""
    begin = time.perf_counter()
    with server(plugin, repository) as started:
        seconds = time.perf_counter() - begin
        status = Path(f"/proc/{started.process.pid}/status").read_text(encoding="utf-8")
    return seconds, int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024


def server(plugin: Path, repository: Path) -> TritonServer:
    """Return a server with this build of the backend, not started yet."""
    os.environ["CT2_TRITON_PLUGIN"] = str(plugin.resolve())
    return TritonServer(ServerOptions([repository]))


def add(repository: Path, name: str, model: Path, compute_type: str) -> None:
    """Adds a model with files of its own: other models do not share its weights."""
    shutil.copytree(model, repository / name / "1" / "model")
    parameter = f'parameters {{ key: "compute_type" value {{ string_value: "{compute_type}" }} }}\n'
    (repository / name / "config.pbtxt").write_text(f'name: "{name}"\n{CONFIG}{parameter}')


if __name__ == "__main__":
    raise SystemExit(main())
