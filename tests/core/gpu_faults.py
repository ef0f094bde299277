# SPDX-License-Identifier: Apache-2.0
"""Faults to put into the GPU's kernels, and what they compute on an emulated GPU.

python tests/core/gpu_faults.py LIBRARY IMAGES MODEL OUTPUT   # writes what is computed
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.extend(str(Path(__file__).resolve().parents[1] / name) for name in ("", "tiny"))

from core.gpu_truth import GpuTruth, begin, run
from support import emulated_gpu

# What: the file, what stands there once, and what is put there.
FAULTS = {
    "no barrier before the product's slices": (
        "product.cuh",
        "  __syncthreads();\n  for (int chunk = begin",
        "  for (int chunk = begin",
    ),
    "no barrier between staged rows and sums": (
        "product.cuh",
        "if constexpr (kNorm) __syncthreads();",
        "",
    ),
    "no barrier before the slices are added": (
        "product.cuh",
        "    __syncthreads();\n    const int place = threadIdx.x",
        "    const int place = threadIdx.x",
    ),
    "no meeting of the warp behind staging": (
        "product.cuh",
        "        __syncwarp();\n      }\n      CT2T_UNROLL",
        "      }\n      CT2T_UNROLL",
    ),
    "weights of another slice": (
        "product.cuh",
        "LoadEight(weight + (begin + i) * 256)",
        "LoadEight(weight + i * 256)",
    ),
    "the last slice is left out": ("product.cuh", "w < kWarps; ++w) y", "w < kWarps - 1; ++w) y"),
    "the norm of another row": ("product.cuh", "s->norm + 16 * t, s->staged", "s->norm, s->staged"),
    "spread of the parts is left out": (
        "numbers.cuh",
        "squares += spread[i].squares + 16",
        "squares += 16",
    ),
    "no barrier before a block's maximum": (
        "attention.cuh",
        "SumOf<32>(x);\n  __syncthreads();\n",
        "SumOf<32>(x);\n",
    ),
    "no barrier before the groups' values are added": (
        "attention.cuh",
        "= out[i];\n  __syncthreads();\n",
        "= out[i];\n",
    ),
    "a score too many": (
        "attention.cuh",
        "for (int t = threadIdx.x; t < is.tokens; t += kThreads) {\n    s.scores[t] = expf",
        "for (int t = threadIdx.x; t <= is.tokens; t += kThreads) {\n    s.scores[t] = expf",
    ),
    "a lane leaves before a shuffle": (
        "choice.cuh",
        "  const int count = JoinParts(",
        "  if (threadIdx.x == 31) return;\n  const int count = JoinParts(",
    ),
    "a penalty for each time that a token was seen": (
        "choice.cuh",
        "s->seen[place] = 1;",
        "s->logits[place] /= rule.penalty;",
    ),
    "a row goes on behind its limit": ("choice.cuh", "length + 1 >= rule.limit", "length >= 99"),
}


def compute(library: Path, images: Path, model: Path) -> np.ndarray:
    """What is computed: of many tokens in a step, and of steps of its own, in two orders."""
    truth = GpuTruth(model)
    decoder = truth.decoder(library, images)
    [source] = truth.sources(17)
    rules = {"penalty": 1.7, "candidates": 2}
    seen: list[float] = []
    for seed in (0, 1):
        emulated_gpu.run_in_order(library, seed)
        [encoding] = decoder.encode([source])
        name = begin(decoder, truth, encoding, **rules)
        tokens = [20] * 19
        for choice in run(decoder, [(name, 0, [truth.start, *tokens], 20)], [], [tokens]):
            seen += [x for candidate in choice.candidates for x in candidate]
        seen += decoder.logits()[-1]
        decoder.forget(name)
        name = begin(decoder, truth, encoding, limit=2, **rules)
        run(decoder, [(name, 0, [truth.start], 1)])
        for _ in range(2):
            [chosen] = run(decoder, [(name, 1, [], 1)])
            seen += [chosen.token, chosen.log_probability if chosen.token >= 0 else 0]
        decoder.forget(name)
    return np.array(seen)


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:]]
    np.save(given[3], compute(*given[:3]))
