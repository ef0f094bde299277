# SPDX-License-Identifier: Apache-2.0
"""Time each part of a decoder step, beside what the machine can do at most.

    python benchmarks/roofline.py --shape transformer-base --rows 1,8,24,48
    python benchmarks/roofline.py --compute-type float32

One loop on one thread runs steps of `--rows` rows. For each part of a step: its multiply-adds
and the bytes that it must read, and how long it took. The limits are measured by
machine_limits.cc, which is compiled for that. A part's bound is the longer of the times that
its multiply-adds and its bytes would take at the limits of one core; the share is the bound divided
by the time. The limit for bytes is measured by reading as many as one step reads, repeatedly,
because caches hold some of them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

END = 2
WARM_STEPS = 10
STEPS = 20
KEPT_BYTES = 2**30
SOURCE_TOKENS = 24
SELF, SOURCE = "attention to itself", "attention to the source"
# Parts of a step, and the names of their products.
PRODUCTS = {
    "products of self-attention": ("self_attention/linear_0", "self_attention/linear_1"),
    "products of cross-attention": ("/attention/linear_0", "/attention/linear_2"),
    "feed-forward": ("ffn/linear_0", "ffn/linear_0_noact", "ffn/linear_1"),
    "vocabulary, with the choice": ("decoder/projection",),
}
# The only thing between these products and the next one is attention.
ATTENTION = {SELF: "self_attention/linear_0", SOURCE: "/attention/linear_0"}
REST = "the rest"
# The limit of the products of each compute type, as machine_limits.cc calls it.
RATES = {"int8": "int8", "float32": "float"}


@dataclass
class Part:
    """A part of a step, in sums over all steps that were measured.

    Attributes:
        operations: Multiply-adds: of the compute type in products, of floats in attention.
        bytes: Weights, or keys and values, that had to be read.
        ns: How long it took.
    """

    operations: int = 0
    bytes: int = 0
    ns: int = 0


@dataclass
class Steps:
    """Steps with the same number of rows.

    Attributes:
        rows: Rows of each step.
        count: Steps.
        parts: By name; `REST` has a time alone.
    """

    rows: int
    count: int
    parts: dict[str, Part] = field(default_factory=dict)

    @property
    def ns(self) -> int:
        """Time of all steps."""
        return sum(part.ns for part in self.parts.values())

    @property
    def step_bytes(self) -> int:
        """Bytes that one step reads."""
        return sum(part.bytes for part in self.parts.values()) // self.count


@dataclass(frozen=True)
class Limits:
    """What one core can do in a second.

    Attributes:
        products: Multiply-adds of the compute type.
        floats: Multiply-adds of floats.
        bytes: Bytes read, where as many as those of a step are read again and again.
    """

    products: float
    floats: float
    bytes: float

    def bound_ns(self, name: str, part: Part) -> float:
        """Return the least time that the limits leave for a part."""
        operations = self.floats if name in ATTENTION else self.products
        return 1e9 * max(part.operations / operations, part.bytes / self.bytes)


def measure_limits(seconds: float, sizes: Sequence[int] = ()) -> dict[str, Any]:
    """Compile benchmarks/machine_limits.cc and run it.

    Args:
        seconds: Duration of each of its measurements.
        sizes: Bytes to be read again and again.

    Returns:
        What it prints: `one` and `all` cores by `int8`, `float`, levels of memory, and sizes.
    """
    source = Path(__file__).with_name("machine_limits.cc")
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/machine_limits"
        compiler = os.environ.get("CXX", "c++")
        flags = ("-O3", "-std=c++17", "-pthread")
        subprocess.run([compiler, *flags, str(source), "-o", program], check=True)
        command = [program, str(seconds), *map(str, sizes)]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
    limits: dict[str, Any] = json.loads(run.stdout)
    return limits


def measure_steps(model: Any, rows: int, steps: int = STEPS, beside: Any = None) -> Steps:
    """Run steps of rows that are all at the same position.

    Args:
        model: A timed `_core.LoopModel`.
        rows: How many.
        steps: Steps that count, after some that warm up.
        beside: A `_core.DecodeLoop` of the model whose kept memory the rows reuse.

    Returns:
        Time, multiply-adds and bytes of each part.
    """
    rng = random.Random(rows)
    last = WARM_STEPS + steps + 1
    options = {"beam_size": 1, "min_decoding_length": last, "max_decoding_length": last}
    sources = [
        [*(rng.randrange(100, 1000) for _ in range(SOURCE_TOKENS - 1)), END] for _ in range(rows)
    ]
    loop = _core.DecodeLoop(model, beside=beside)
    loop.admit([(source, [], options) for source in sources])
    for _ in range(WARM_STEPS):
        loop.step()
    before = model.layer_times, loop.counters
    for _ in range(steps):
        loop.step()
    after = model.layer_times, loop.counters
    if after[1]["step_tokens"] - before[1]["step_tokens"] != rows * steps:
        raise SystemExit("a row brought more than a token into a step, or left before the end")
    found = Steps(rows, steps, _parts(before[0], after[0], rows, steps))
    spent = after[1]["step_ns"] - before[1]["step_ns"]
    found.parts[REST] = Part(ns=spent - found.ns)
    return found


def _parts(
    before: list[dict[str, Any]], after: list[dict[str, Any]], rows: int, steps: int
) -> dict[str, Part]:
    """Return the work of each part's products between two readings of the counters."""
    parts: dict[str, Part] = {}
    # A token sees those before it, and itself.
    self_tokens = sum(range(WARM_STEPS + 1, WARM_STEPS + steps + 1))
    tokens = {SELF: rows * self_tokens, SOURCE: rows * steps * SOURCE_TOKENS}
    for old, new in zip(before, after, strict=True):
        if not new["scope"].startswith("decoder/"):
            continue
        for name, endings in PRODUCTS.items():
            if new["scope"].endswith(endings):
                uses, done = new["uses"] - old["uses"], new["rows"] - old["rows"]
                part = parts.setdefault(name, Part())
                part.operations += done * new["inputs"] * new["outputs"]
                part.bytes += uses * new["bytes"]
                part.ns += new["ns"] - old["ns"]
        for name, ending in ATTENTION.items():
            if new["scope"].endswith(ending):
                width = new["outputs"] // (3 if name == SELF else 1)  # query, key and value
                part = parts.setdefault(name, Part())
                part.operations += 2 * width * tokens[name]
                part.bytes += 2 * width * tokens[name] * 4  # floats
                part.ns += new["after_ns"] - old["after_ns"]
    return parts


def table(found: Steps, limits: Limits) -> list[str]:
    """Write the lines of a Markdown table: figures of one step."""
    lines = [
        f"| {found.rows} rows | us | 1e9 multiply-adds/s | GB/s | bound, us | share |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    bounds = 0.0
    for name, part in found.parts.items():
        us = part.ns / found.count / 1e3
        if name == REST:
            lines.append(f"| {name} | {us:.0f} | | | | |")
            continue
        bound = limits.bound_ns(name, part)
        bounds += bound
        lines.append(
            f"| {name} | {us:.0f} | {part.operations / part.ns:.1f} | {part.bytes / part.ns:.1f} "
            f"| {bound / found.count / 1e3:.0f} | {bound / part.ns:.0%} |"
        )
    lines.append(
        f"| the step | {found.ns / found.count / 1e3:.0f} | | | {bounds / found.count / 1e3:.0f} "
        f"| {bounds / found.ns:.0%} |"
    )
    return lines


def limits_table(measured: dict[str, Any]) -> list[str]:
    """Write the lines of a Markdown table of the limits."""
    return [
        "| 1e9 a second | one core | all cores |",
        "|---|---:|---:|",
        *(
            f"| {name}: {each['what']} | {each['one'] / 1e9:.0f} | {each['all'] / 1e9:.0f} |"
            for name, each in measured.items()
            if name != "cores"
        ),
    ]


def _shape_model(shape: str, folder: Path, compute_type: str) -> Path:
    """Make a model of a shape of ct2-bench; its CTranslate2 directory."""
    from ct2_triton.bench.shapes import write_shape
    from ct2_triton.prepare import PrepareOptions, prepare

    checkpoint = str(write_shape(shape, folder))
    options = PrepareOptions(checkpoint, folder / "prepared", quantization=compute_type)
    return prepare(options).model_folder


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    model = parser.add_mutually_exclusive_group()
    model.add_argument("--shape", default="transformer-base", help="of ct2-bench: %(default)s")
    model.add_argument("--model", type=Path, help="a CTranslate2 directory instead")
    parser.add_argument("--compute-type", default="int8", choices=RATES, help="%(default)s")
    parser.add_argument("--rows", default="1,8,24,48", help="of a step: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="the median counts: %(default)s")
    parser.add_argument("--seconds", type=float, default=0.2, help="for each limit: %(default)s")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = args.model or _shape_model(args.shape, Path(folder), args.compute_type)
        timed = _core.LoopModel(str(directory), {"compute_type": args.compute_type}, timed=True)
        steps = []
        for rows in map(int, args.rows.split(",")):
            memory = _core.DecodeLoop(timed, keep_bytes=KEPT_BYTES)
            measure_steps(timed, rows, beside=memory)  # a server's rows have memory of earlier ones
            rounds = [measure_steps(timed, rows, beside=memory) for _ in range(args.rounds)]
            steps.append(sorted(rounds, key=lambda found: found.ns)[len(rounds) // 2])
    measured = measure_limits(args.seconds, [found.step_bytes for found in steps])
    print("\n".join(limits_table(measured)))
    for found in steps:
        names = (RATES[args.compute_type], "float", str(found.step_bytes))
        rates = (measured[name]["one"] for name in names)
        print("\n".join(["", *table(found, Limits(*rates))]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
