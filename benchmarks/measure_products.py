# SPDX-License-Identifier: Apache-2.0
"""Measure the packed int8 products: what each kernel reaches, by rows.

Not a test: figures depend on the machine. It guards the kernels against a compiler that keeps their
sums in memory, which costs a third and more; compare the lines of two builds on one machine.

    python benchmarks/measure_products.py
    python benchmarks/measure_products.py --kernels avx2 --inputs 2048 --outputs 512
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from ct2_triton import _core

ROWS = (1, 4, 8, 24, 48, 96)


def main() -> None:
    """Print a line of figures for each kernel and use."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", nargs="+", default=_core.kernels())
    parser.add_argument("--inputs", type=int, default=512)
    parser.add_argument("--outputs", type=int, default=32000)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each figure")
    arguments = parser.parse_args()
    print(f"{arguments.outputs} outputs x {arguments.inputs} inputs, one thread; 1e9 products/s")
    print(f"{'':24}" + "".join(f"{rows:>8}" for rows in ROWS) + "  rows")
    rng = np.random.default_rng(1)
    weight = rng.integers(-127, 128, (arguments.outputs, arguments.inputs), dtype=np.int8)
    scale = rng.uniform(100, 1000, arguments.outputs).astype(np.float32)
    for kernel in arguments.kernels:
        layer = _core.PackedLinear(weight, scale, kernel=kernel)
        ways = {
            "written": lambda rows, n, layer=layer: layer.apply(rows, repeat=n),
            "gelu": lambda rows, n, layer=layer: layer.apply(rows, "gelu", repeat=n),
            "chosen": lambda rows, n, layer=layer: layer.choose(rows, repeat=n),
            "chosen, with scores": lambda rows, n, layer=layer: layer.choose(rows, True, repeat=n),
        }
        for name, run in ways.items():
            figures = []
            for count in ROWS:
                rows = rng.standard_normal((count, arguments.inputs)).astype(np.float32)
                seconds = best_time(lambda n, run=run, rows=rows: run(rows, n), arguments.seconds)
                figures.append(count * weight.size / seconds / 1e9)
            print(f"{kernel + ' ' + name:24}"[:24] + "".join(f"{f:8.1f}" for f in figures))


def best_time(run: callable, budget: float) -> float:
    """The shortest time of one product among batches of them, in seconds."""
    run(1)
    begin = time.perf_counter()
    run(1)
    once = time.perf_counter() - begin
    batch = max(1, int(budget / 10 / once))
    best = once
    end = time.perf_counter() + budget
    while time.perf_counter() < end:
        begin = time.perf_counter()
        run(batch)
        best = min(best, (time.perf_counter() - begin) / batch)
    return best


if __name__ == "__main__":
    main()
