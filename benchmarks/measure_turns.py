# SPDX-License-Identifier: Apache-2.0
"""How much greedy requests are slowed down by beam searches on the same server.

    python benchmarks/measure_turns.py [--shape transformer-base] [--model DIR]

Serves one int8 model over gRPC. First one client sends greedy rows, one at a time: alone, and while
rows of 32 beams run from their first token to their last, so many that each decode loop has one.
Then several clients do: greedy ones alone, and beside as many that send rows of 4 beams.
"""

from __future__ import annotations

import argparse
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

MODEL = "measured"
CONFIG = """
backend: "ctranslate2"
dynamic_batching { }
instance_group { kind: KIND_CPU count: 1 }
"""
GREEDY = {"beam_size": 1}
BEAMS = {"beam_size": 4}


def main() -> int:
    """Measure, print, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_model_arguments(parser)
    parser.add_argument("--tokens", type=int, default=1024, help="of the wide row (default: 1024)")
    parser.add_argument("--wide", type=int, default=2, help="rows of 32 beams (default: 2)")
    parser.add_argument("--clients", type=int, default=8, help="of each kind (default: 8)")
    parser.add_argument("--seconds", type=float, default=20, help="of a mixed load (default: 20)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        directory = model_of(arguments, folder)
        with TritonServer(ServerOptions([_repository(folder / "served", directory)])) as server:
            url = server.grpc_url
            _beside_wide(url, arguments.wide, arguments.tokens)
            _mixed(url, arguments.clients, arguments.seconds)
    return 0


def _repository(folder: Path, directory: Path) -> Path:
    version = folder / MODEL / "1"
    version.mkdir(parents=True)
    (version / "model").symlink_to(directory.resolve())
    (version.parent / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
    return folder


def _send(client: grpc_client.InferenceServerClient, row: list[int], options: dict) -> float:
    """Return the milliseconds of one row."""
    ids = grpc_client.InferInput("INPUT_IDS", [1, len(row)], "INT32")
    ids.set_data_from_numpy(np.array([row], dtype=np.int32))
    started = time.perf_counter()
    client.infer(MODEL, [ids], parameters=options)
    return 1000 * (time.perf_counter() - started)


def _beside_wide(url: str, count: int, tokens: int) -> None:
    """Send the same 20 sentences repeatedly, so that both medians are of the same work."""
    client = grpc_client.InferenceServerClient(url)
    rng = random.Random(0)
    rows = [random_row(rng, 4, 1000, 18) for _ in range(20)]
    alone = [_send(client, rows[i % 20], GREEDY) for i in range(120)][20:]
    wide = {"beam_size": 32, "min_decoding_length": tokens, "max_decoding_length": tokens}
    seconds: list[float] = []

    def search(index: int) -> None:
        own = grpc_client.InferenceServerClient(url)
        seconds.append(_send(own, rows[index], wide) / 1000)

    threads = [threading.Thread(target=search, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    beside: list[float] = []
    while all(thread.is_alive() for thread in threads):
        beside.append(_send(client, rows[len(beside) % 20], GREEDY))
    for thread in threads:
        thread.join()
    print(f"a greedy row of 18 tokens, ms: alone {_spread(alone)}")
    name = f"beside {count} rows of 32 beams and {tokens} tokens ({min(seconds):.0f} s)"
    print(f"  {name}: {_spread(beside)}")
    _print_ratios(alone, beside)


def _mixed(url: str, clients: int, seconds: float) -> None:
    kinds = {
        f"{clients} greedy clients": ([GREEDY] * clients, clients),
        f"{2 * clients} greedy clients": ([GREEDY] * 2 * clients, 2 * clients),
        f"{clients} beam 4 clients": ([BEAMS] * clients, 0),
        f"{clients} greedy, {clients} beam 4": ([GREEDY] * clients + [BEAMS] * clients, clients),
    }
    found: dict[str, list[float]] = {}
    for name, (options, greedy) in kinds.items():
        _load(url, options, seconds / 10)
        times = _load(url, options, seconds)
        found[name] = [each for client in times[:greedy] for each in client]
        beams = [each for client in times[greedy:] for each in client]
        print(f"{name}: greedy {_spread(found[name])}; beam 4 {_spread(beams)}")
    alone, twice, _, mixed = found.values()
    _print_ratios(alone, mixed)
    _print_ratios(twice, mixed)


def _load(url: str, options: list[dict], seconds: float) -> list[list[float]]:
    """Return milliseconds of each client's rows; clients send when the last row is answered."""
    end = time.perf_counter() + seconds
    times: list[list[float]] = [[] for _ in options]

    def run(index: int) -> None:
        rng = random.Random(index)
        client = grpc_client.InferenceServerClient(url)
        while time.perf_counter() < end:
            times[index].append(_send(client, random_row(rng, 4, 1000), options[index]))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(options))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def _spread(values: list[float]) -> str:
    if not values:
        return "none"
    p50, p95, most = np.percentile(values, [50, 95, 100])
    return f"{len(values)} rows, p50 {p50:.1f}, p95 {p95:.1f}, most {most:.1f}"


def _print_ratios(alone: list[float], beside: list[float]) -> None:
    ratios = (np.percentile(beside, p) / np.percentile(alone, p) for p in (50, 95))
    print("  times as long: p50 {:.2f}, p95 {:.2f}".format(*ratios), flush=True)


if __name__ == "__main__":
    sys.exit(main())
