# SPDX-License-Identifier: Apache-2.0
"""Holds the simulation of decode loops against the loops themselves.

    python tests/measure/measure_loops.py --seconds 4

Measures what a step of 1, 8 and 24 rows and an encoding cost while every core runs one. Then
streams send each sentence to one model, and to four with files of their own, as fast as they are
answered; `tools/simulate_loops.py` predicts the same from those costs. Without a server: clients
are threads of this process. Also printed: from a row's arrival to its first token, in steps.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before the engine is loaded: a loop has one thread
sys.path.extend(str(Path(__file__).resolve().parents[1] / name) for name in ("tiny", "../tools"))

import numpy as np

import tiny_models
from ct2_triton import _core
from ct2_triton.bench.shapes import SHAPES, write_shape
from simulate_loops import Costs, Outcome, Plan, simulate

END, FIRST_ID, LAST_ID = 2, 1000, 20_000
ROWS, MEDIAN_TOKENS, PASSES = (1, 8, 24), 18, 20
OPTIONS = {"beam_size": 1, "max_decoding_length": 128}


@dataclass
class Measured:
    """What the clients and the loops saw."""

    seconds: float = 0.0
    tokens: int = 0
    steps: int = 0
    step_ms: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)
    first_tokens_ms: list[float] = field(default_factory=list)


def main() -> int:
    """Prints costs and a line for each load."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", default="transformer-base", choices=SHAPES)
    parser.add_argument("--model", type=Path, help="CTranslate2 directory, instead of a shape's")
    parser.add_argument("--compute-type", default="int8", help="default: %(default)s")
    parser.add_argument("--streams", default="1,4,16,48", help="to one model")
    parser.add_argument("--many", default="4,12", help="streams to several models")
    parser.add_argument("--models", type=int, default=4, help="that these have")
    parser.add_argument("--seconds", type=float, default=4, help="of a load (default: %(default)s)")
    args = parser.parse_args()
    os.environ.setdefault("CT2_PACKED_GEMM", "0")  # before a model is loaded
    with tempfile.TemporaryDirectory() as scratch:
        directory = args.model or _make_model(Path(scratch), args.shape)
        costs = _costs(directory, args.compute_type)
        print(costs, flush=True)
        models = [_load(directory, Path(scratch), i, args) for i in range(args.models)]
        for count, loads in ((1, args.streams), (args.models, args.many)):
            for streams in map(int, filter(None, loads.split(","))):
                run(models[:count], streams, args.seconds / 4)  # warms up
                measured = run(models[:count], streams, args.seconds)
                threads = _core.usable_cores()
                predicted = simulate(Plan(streams, count, costs, threads))
                _print_line(count, streams, predicted, measured)
    return 0


def _make_model(folder: Path, shape: str) -> Path:
    checkpoint = write_shape(shape, folder / "checkpoint")
    return tiny_models.convert(checkpoint, folder / "model", "int8")


def _load(directory: Path, folder: Path, number: int, args: argparse.Namespace) -> Any:
    """A model with files of its own, which shares nothing with the others."""
    own = shutil.copytree(directory, folder / f"model-{number}")
    return _core.Translator(str(own), {"decoding": "loop", "compute_type": args.compute_type})


def _sentence(rng: random.Random, tokens: int | None = None) -> list[int]:
    """Random ids and the end token; log-normal length, median 18, clipped to 3..80."""
    drawn = tokens or round(rng.lognormvariate(np.log(MEDIAN_TOKENS), 0.5))
    return [rng.randint(FIRST_ID, LAST_ID) for _ in range(min(80, max(3, drawn)) - 1)] + [END]


def _costs(directory: Path, compute_type: str) -> Costs:
    """Fits the costs to loops of several sizes, one on each core at a time."""
    model = _core.LoopModel(str(directory), {"compute_type": compute_type})
    cores = _core.usable_cores()
    steps, encodings = [], []
    with ThreadPoolExecutor(cores) as pool:
        for rows in ROWS:
            for step_ns, encode_ns in pool.map(_decode, [model] * cores, [rows] * cores):
                steps.append((rows, step_ns))
                encodings.append((rows * MEDIAN_TOKENS, encode_ns))
    return Costs(*(round(float(ms), 3) for ms in (*_line(steps), *_line(encodings))))


def _line(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Fits the fixed part and that by the piece, in ms; every point's error counts by its size."""
    x, y = np.array(points).T
    slope, fixed = np.polyfit(x, y / 1e6, 1, w=1 / y)
    return fixed, slope


def _decode(model: Any, rows: int) -> tuple[float, float]:
    """Gives ns of a step and of an encoding of so many rows of median length."""
    rng = random.Random(rows)
    loop = _core.DecodeLoop(model)
    steps, encodings = [], []
    for _ in range(PASSES):
        before = loop.counters
        loop.admit([(_sentence(rng, MEDIAN_TOKENS), [], OPTIONS) for _ in range(rows)])
        while loop.running:
            loop.step()
        after = loop.counters
        steps.append((after["step_ns"] - before["step_ns"]) / (after["steps"] - before["steps"]))
        encodings.append(after["encode_ns"] - before["encode_ns"])
    return float(np.median(steps)), float(np.median(encodings))


def run(models: list[Any], streams: int, seconds: float) -> Measured:
    """Keeps all streams busy: each sends a sentence to all models, and waits for all of them."""
    measured = Measured()
    before = [(_counters(model), len(model.first_tokens_ns)) for model in models]
    begin = time.perf_counter()
    lock = threading.Lock()

    def send(model: Any, row: list[int], sent: float) -> None:
        model.translate([row], parameters=OPTIONS)
        with lock:
            measured.latencies_ms.append(1000 * (time.perf_counter() - sent))
            measured.tokens += len(row)

    def stream(seed: int) -> None:
        rng = random.Random(seed)
        with ThreadPoolExecutor(len(models)) as pool:
            while time.perf_counter() - begin < seconds:
                row, sent = _sentence(rng), time.perf_counter()
                if len(models) == 1:
                    send(models[0], row, sent)
                else:
                    list(pool.map(send, models, itertools.repeat(row), itertools.repeat(sent)))

    threads = [threading.Thread(target=stream, args=(i,)) for i in range(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    measured.seconds = time.perf_counter() - begin
    for model, (counters, rows) in zip(models, before, strict=True):
        steps, step_ns = (a - b for a, b in zip(_counters(model), counters, strict=True))
        measured.steps += steps
        measured.step_ms += step_ns / 1e6
        measured.first_tokens_ms += [ns / 1e6 for ns in model.first_tokens_ns[rows:]]
    return measured


def _counters(model: Any) -> tuple[int, int]:
    loops = model.loops
    return sum(loop["steps"] for loop in loops), sum(loop["step_ns"] for loop in loops)


def _print_line(models: int, streams: int, predicted: Outcome, measured: Measured) -> None:
    def p(values: list[float], percent: float) -> float:
        return float(np.percentile(values, percent))

    rate = measured.tokens / measured.seconds
    step_ms = measured.step_ms / measured.steps
    first_ms = p(measured.first_tokens_ms, 95)
    print(
        f"| {models} | {streams} | {predicted.tokens_per_s:.0f} | {rate:.0f} "
        f"| {predicted.tokens_per_s / rate:.2f} "
        f"| {p(predicted.latencies_ms, 50):.0f}, {p(measured.latencies_ms, 50):.0f} "
        f"| {p(predicted.latencies_ms, 95):.0f}, {p(measured.latencies_ms, 95):.0f} "
        f"| {p(predicted.first_tokens_ms, 95):.1f}, {first_ms:.1f} "
        f"| {step_ms:.2f} | {first_ms / step_ms:.1f} |",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
