# SPDX-License-Identifier: Apache-2.0
"""Holds the simulation of decode loops against the loops themselves.

    python benchmarks/measure_loops.py --seconds 4

Measures what a step and an encoding cost while about 1, 8 and 24 rows are in each loop. Then
streams send each sentence to one model, and to four with files of their own, as fast as they are
answered; `benchmarks/simulate_loops.py` predicts that from those costs. Without a server: clients
are threads of this process. Also printed: from a row's arrival to its first token, in steps.
tools/machine_check.sh reads the output file.
"""

from __future__ import annotations

import argparse
import itertools
import json
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

import numpy as np

from ct2_triton import _core
from ct2_triton.bench.cores import count_cores, first_cores, on_cores, usable_cores
from random_rows import random_row
from shape_model import add_model_arguments, model_of
from simulate_loops import Costs, Outcome, Plan, simulate

FIRST_ID, LAST_ID = 1000, 20_000
ROWS = (1, 8, 24)
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
    add_model_arguments(parser)
    parser.add_argument("--compute-type", default="int8", help="default: %(default)s")
    parser.add_argument("--streams", default="1,4,16,48", help="to one model")
    parser.add_argument("--many", default="4,12", help="streams to several models")
    parser.add_argument("--models", type=int, default=4, help="that these have")
    parser.add_argument("--seconds", type=float, default=4, help="of a load (default: %(default)s)")
    parser.add_argument("--cores", type=int, help="to use (default: all)")
    parser.add_argument("--output", type=Path, help="file for the figures, as JSON")
    args = parser.parse_args()
    cores = count_cores() if args.cores is None else args.cores
    if not 1 <= cores <= count_cores():
        parser.error(f"--cores {cores}: there are {count_cores()}")
    figures = []
    with (
        on_cores(first_cores(usable_cores(), cores)),
        tempfile.TemporaryDirectory() as scratch,
    ):
        directory = model_of(args, Path(scratch))
        models = [_load(directory, Path(scratch), i, args) for i in range(args.models)]
        run(models, max(ROWS), args.seconds / 2)  # warms up
        costs = _costs(models[0], args.seconds)
        print(costs, flush=True)
        for count, loads in ((1, args.streams), (args.models, args.many)):
            for streams in map(int, filter(None, loads.split(","))):
                measured = run(models[:count], streams, args.seconds)
                threads = _core.usable_cores()
                predicted = simulate(Plan(streams, count, costs, threads))
                figures.append(_figures(count, streams, predicted, measured))
                _print_line(figures[-1])
    if args.output:
        args.output.write_text(json.dumps(figures), encoding="utf-8")
    return 0


def _load(directory: Path, folder: Path, number: int, args: argparse.Namespace) -> Any:
    """A model with files of its own, which shares nothing with the others."""
    own = shutil.copytree(directory, folder / f"model-{number}")
    return _core.Translator(str(own), {"decoding": "loop", "compute_type": args.compute_type})


def _costs(model: Any, seconds: float) -> Costs:
    """Fits the costs to what the loops count while about 1, 8 and 24 rows are in each."""
    steps, encodings = [], []
    for rows in ROWS:
        before = _counters(model)
        run([model], rows * _core.usable_cores(), seconds)
        count = {name: value - before[name] for name, value in _counters(model).items()}
        steps.append((count["step_rows"] / count["steps"], count["step_ns"] / count["steps"]))
        encodes = count["encodes"]
        encodings.append((count["encoded_tokens"] / encodes, count["encode_ns"] / encodes))
    return Costs(*(round(float(ms), 3) for ms in (*_line(steps), *_line(encodings))))


def _line(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Fits the fixed time and the time per row or token, in ms, by relative error."""
    x, y = np.array(points).T
    slope, fixed = np.polyfit(x, y / 1e6, 1, w=1 / y)
    return fixed, slope


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
                row, sent = random_row(rng, FIRST_ID, LAST_ID), time.perf_counter()
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
        after = _counters(model)
        measured.steps += after["steps"] - counters["steps"]
        measured.step_ms += (after["step_ns"] - counters["step_ns"]) / 1e6
        measured.first_tokens_ms += [ns / 1e6 for ns in model.first_tokens_ns[rows:]]
    return measured


def _counters(model: Any) -> dict[str, int]:
    loops = model.loops
    return {name: sum(loop[name] for loop in loops) for name in loops[0]}


def _figures(models: int, streams: int, predicted: Outcome, measured: Measured) -> dict[str, Any]:
    """The figures of a load; those with a prediction are pairs, the predicted one first."""

    def both(name: str, percent: float) -> tuple[float, float]:
        values = (getattr(predicted, name), getattr(measured, name))
        return float(np.percentile(values[0], percent)), float(np.percentile(values[1], percent))

    return {
        "cores": _core.usable_cores(),
        "models": models,
        "streams": streams,
        "tokens_per_s": (predicted.tokens_per_s, measured.tokens / measured.seconds),
        "p50_ms": both("latencies_ms", 50),
        "p95_ms": both("latencies_ms", 95),
        "first_token_p95_ms": both("first_tokens_ms", 95),
        "step_ms": measured.step_ms / measured.steps,
    }


def _print_line(figures: dict[str, Any]) -> None:
    rates, first, step_ms = (figures[k] for k in ("tokens_per_s", "first_token_p95_ms", "step_ms"))
    latencies = [f"{a:.0f}, {b:.0f}" for a, b in (figures["p50_ms"], figures["p95_ms"])]
    print(
        f"| {figures['models']} | {figures['streams']} | {rates[0]:.0f} | {rates[1]:.0f} "
        f"| {rates[0] / rates[1]:.2f} | {' | '.join(latencies)} | {first[0]:.1f}, {first[1]:.1f} "
        f"| {step_ms:.2f} | {first[1] / step_ms:.1f} |",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
