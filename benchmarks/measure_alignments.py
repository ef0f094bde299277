# SPDX-License-Identifier: Apache-2.0
"""What alignments cost a decode loop: time of the steps with them, and without.

python benchmarks/measure_alignments.py [--rounds 9] [--rows 48]

The demo model is the worst case, because its products are small compared with its attention. Rounds
with and without alignments alternate on one thread; the translations must be the same.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from statistics import median
from typing import Any

from ct2_triton import _core

MODEL = Path(__file__).resolve().parents[1] / "python" / "ct2_triton" / "demo_model" / "model"
GERMAN, END = 4003, 2
LENGTH = 40


def step_seconds(translator: Any, sources: list[list[int]], options: dict[str, Any]) -> float:
    """Translate rows and return the time of the decode steps, in seconds."""
    before = sum(loop["step_ns"] for loop in translator.loops)
    translator.translate(sources, [[GERMAN]] * len(sources), options)
    return (sum(loop["step_ns"] for loop in translator.loops) - before) / 1e9


def main() -> None:
    """Measure greedy rows and beams, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="default: 9")
    parser.add_argument("--rows", type=int, default=48, help="default: 48")
    args = parser.parse_args()
    rng = random.Random(1)
    sources = [
        [*(rng.randrange(100, 3900) for _ in range(rng.randint(8, 30))), END]
        for _ in range(args.rows)
    ]
    translator = _core.Translator(str(MODEL), {"inter_threads": 1})
    for beam_size in (1, 4):
        options = {"beam_size": beam_size, "max_decoding_length": LENGTH,
                   "min_decoding_length": LENGTH}  # fmt: skip
        ratios, plain_s = [], []
        for _ in range(args.rounds):
            plain = step_seconds(translator, sources, options)
            aligned = step_seconds(translator, sources, options | {"return_alignments": True})
            plain_s.append(plain)
            ratios.append(aligned / plain)
        print(
            f"beam_size {beam_size}: steps of {args.rows} rows take {median(plain_s):.3f} s, "
            f"with alignments {median(ratios):.3f} of that ({min(ratios):.3f} to {max(ratios):.3f})"
        )


if __name__ == "__main__":
    main()
