# SPDX-License-Identifier: Apache-2.0
"""Faults to put into the GPU's kernels, and what they compute on an emulated GPU.

python tests/core/gpu_faults.py LIBRARY IMAGES MODEL OUTPUT   # writes what is computed
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

sys.path.extend(str(Path(__file__).resolve().parents[1] / name) for name in ("", "tiny"))

from core.gpu_truth import GpuTruth, begin, run
from support import emulated_gpu

if TYPE_CHECKING:
    from ct2_triton._core import GpuDecoder

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
    "keys and values of another sequence": (
        "attention.cuh",
        "a.table + static_cast<size_t>(sequence) * a.table_stride;",
        "a.table;",
    ),
    "attention up to the end of another source": (
        "attention.cuh",
        "position + 1 : a.count[sequence]",
        "position + 1 : a.count[0]",
    ),
    "a token's key goes to another sequence's slot": (
        "rows.cuh",
        "a.slots[static_cast<size_t>(sequence) * a.slots_stride + position]",
        "a.slots[position]",
    ),
    "an alignment by another row's attention": (
        "rows.cuh",
        "static_cast<size_t>(row) * a.all_heads",
        "static_cast<size_t>(0) * a.all_heads",
    ),
    "an alignment to tokens that it may not name": ("rows.cuh", "rule.first_source + i", "i"),
    "the same draw at each step": ("choice.cuh", "static_cast<unsigned long long>(step)", "0ULL"),
    "a draw of the best without its temperature": (
        "choice.cuh",
        "best[i].value * warmth - best[0].value * warmth",
        "best[i].value - best[0].value",
    ),
    "a draw of all without its temperature": (
        "choice.cuh",
        "expf((logits[place] - most) / rule.temperature)",
        "expf(logits[place] - most)",
    ),
}


def compute(library: Path, images: Path, model: Path) -> np.ndarray:
    """What is computed: of many tokens in a step, and of steps of its own, in two orders."""
    truth = GpuTruth(model)
    decoder = truth.decoder(library, images)
    source, other = truth.sources(17, 6)
    rules = {"penalty": 1.7, "candidates": 2}
    seen: list[float] = []
    for seed in (0, 1):
        emulated_gpu.run_in_order(library, seed)
        encoding, of_other = decoder.encode([source, other])
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
        seen += draws(decoder, truth, [encoding, of_other])
        seen += beams_and_alignments(decoder, truth, [encoding, of_other])
        for one in (encoding, of_other):
            decoder.forget_encoding(one)
    return np.array(seen)


def draws(decoder: GpuDecoder, truth: GpuTruth, encodings: list[int]) -> list[float]:
    """Tokens drawn of the best and of all, by two rows in the same steps."""
    drawn = {"draws": True, "key": 7, "temperature": 3.0, "limit": 6}
    names = [
        begin(decoder, truth, encoding, top_k=top_k, **drawn)
        for encoding, top_k in zip(encodings, (20, 0), strict=True)
    ]
    found = run(decoder, [(name, 0, [truth.start], 1) for name in names])
    for position in range(1, 6):
        found += run(decoder, [(name, position, [], 1) for name in names])
    for name in names:
        decoder.forget(name)
    return [one.token for one in found]


def beams_and_alignments(decoder: GpuDecoder, truth: GpuTruth, encodings: list[int]) -> list[float]:
    """Two sequences that share their first slot, and an aligned row of the other source."""
    first, second = decoder.join(encodings[0], 2, truth.rules())
    aligned = begin(decoder, truth, encodings[1], first_source=2, sources=4)
    run(decoder, [(first, 0, [truth.start], 1)])
    rows = [(first, 1, [20], 1), (second, 1, [30], 1), (aligned, 0, [truth.start, 40], 2)]
    found = run(decoder, rows, [[0, 1], [0, 2]])
    seen = [x for logits in decoder.logits() for x in logits]
    for one in found[2:]:
        seen += [one.aligned_source, one.alignment_weight]
    for name in (first, second, aligned):
        decoder.forget(name)
    return seen


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:]]
    np.save(given[3], compute(*given[:3]))
