# SPDX-License-Identifier: Apache-2.0
"""How much memory and time `ct2-prepare` takes for models of real sizes.

    python benchmarks/measure_prepare_memory.py [--shape nllb-600m] [--quantization int8]

Makes a checkpoint of each shape (`ct2_triton/bench/shapes.py`), prepares it in a process of its
own, and prints a table: the size of the weights, the largest memory of that process, and what
`ct2-prepare` said before it started. Pages of the checkpoint's file that are resident count as
well, although the kernel can take them back: the process alone needs less.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ct2_triton.bench.shapes import SHAPES
from ct2_triton.prepare.checkpoint import weights_bytes
from ct2_triton.prepare.options import QUANTIZATIONS

_MAKE = """
import pathlib, sys
from ct2_triton.bench.shapes import write_shape
write_shape(sys.argv[1], pathlib.Path(sys.argv[2]))
"""
# VmHWM, because ru_maxrss includes the memory of the process that started this one.
_CHILD = """
import atexit, pathlib, sys
from ct2_triton.cli import prepare
atexit.register(lambda: sys.stderr.write(pathlib.Path("/proc/self/status").read_text()))
sys.exit(prepare())
"""
_PEAK = re.compile(r"^VmHWM:\s*([0-9]+) kB$", re.MULTILINE)
_STATED = re.compile(r"needs about ([0-9.]+) GB of memory")
_GB = 1e9
_HEAD = "| model | weights, GB | peak, GB | peak / weights | stated, GB | minutes |"


def main() -> int:
    """Measure, print a table, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", action="append", choices=SHAPES, help="default: all")
    parser.add_argument("--checkpoint", type=Path, help="measure this one, and no shape")
    parser.add_argument("--quantization", default="int8", choices=QUANTIZATIONS)
    arguments = parser.parse_args()
    print(_HEAD, "|---|---:|---:|---:|---:|---:|", sep="\n")
    if arguments.checkpoint:
        print(measured(arguments.checkpoint, arguments.quantization))
        return 0
    for shape in arguments.shape or SHAPES:
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run([sys.executable, "-c", _MAKE, shape, scratch], check=True)
            print(measured(Path(scratch) / shape, arguments.quantization), flush=True)
    return 0


def measured(checkpoint: Path, quantization: str) -> str:
    """Prepare a checkpoint in a temporary folder; return its row of the table."""
    with tempfile.TemporaryDirectory() as scratch:
        options = ["--model-repository", scratch, "--quantization", quantization]
        began = time.monotonic()
        peak, stated = peak_of_prepare(str(checkpoint), *options)
        minutes = (time.monotonic() - began) / 60
    weights = weights_bytes(checkpoint) / _GB
    return (
        f"| {checkpoint.name} | {weights:.2f} | {peak:.2f} | "
        f"{peak / weights:.2f} | {stated:.1f} | {minutes:.1f} |"
    )


def peak_of_prepare(*arguments: str) -> tuple[float, float]:
    """Run ct2-prepare to its end; return its peak memory and the one it stated, in GB."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, *arguments], capture_output=True, text=True, check=False
    )
    peak, stated = _PEAK.search(done.stderr), _STATED.search(done.stderr)
    if done.returncode or not peak or not stated:
        raise RuntimeError(f"ct2-prepare ended with {done.returncode}: {done.stderr[-2000:]}")
    return int(peak[1]) * 1024 / _GB, float(stated[1])


if __name__ == "__main__":
    sys.exit(main())
