# SPDX-License-Identifier: Apache-2.0
"""Decode loop against calls on a GPU, in process: closed loops of greedy rows of random ids.

    python benchmarks/measure_gpu_loop.py MODEL --compute-type float16 --rows 16 48 128

MODEL is a CTranslate2 model. Lengths are log-normal, about 18 ids; each row has a limit of its own.
Loop and calls alternate for some rounds. Prints source tokens per second and latencies of rows.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from pathlib import Path
from typing import Any

from ct2_triton import _core

WARM_UP_S = 1.0


def measure(translator: Any, rows: int, seconds: float, ids: int) -> str:
    """Keep `rows` rows in flight for a while."""
    begin = time.monotonic() + WARM_UP_S
    end = begin + seconds
    times: list[tuple[float, int]] = []

    def ask(seed: int) -> None:
        rng = random.Random(seed)
        while (start := time.monotonic()) < end:
            length = min(80, max(2, int(rng.lognormvariate(2.9, 0.5))))
            source = [rng.randrange(10, ids) for _ in range(length)]
            limit = min(100, max(2, int(length * rng.uniform(0.8, 1.3))))
            options = {"beam_size": 1, "max_decoding_length": limit}
            translator.translate([source], [[rng.randrange(10, ids)]], options)
            if begin < (now := time.monotonic()) < end:
                times.append((now - start, length))

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(rows)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    in_order = sorted(taken for taken, _ in times)
    p50, p95 = (1000 * in_order[int(len(in_order) * share)] for share in (0.5, 0.95))
    tokens_s = sum(length for _, length in times) / seconds
    return f"{tokens_s:8,.0f} source tokens/s, p50 {p50:6.1f} ms, p95 {p95:6.1f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--compute-type", default="float16")
    parser.add_argument("--rows", type=int, nargs="+", default=[16, 48, 128])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--ids", type=int, default=30_000, help="size of the vocabulary")
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    arguments = parser.parse_args()
    for rows in arguments.rows:
        for _ in range(arguments.rounds):
            for decoding in ("calls", "loop"):
                translator = _core.Translator(
                    str(arguments.model),
                    {"compute_type": arguments.compute_type, "decoding": decoding},
                    gpu=arguments.device == "gpu",
                )
                found = measure(translator, rows, arguments.seconds, arguments.ids)
                print(f"{rows:4} rows, {decoding:5}: {found}", flush=True)


if __name__ == "__main__":
    main()
