# SPDX-License-Identifier: Apache-2.0
"""Measures the memory of a loaded int8 model, in decode loops and in calls.

    python benchmarks/measure_packed_memory.py [--shape nllb-600m]

Each way is a process of its own. It loads the model, decodes rows in the loop, and then a row that
only a call of CTranslate2 can run, twice. MiB of memory beyond that of the process before the load;
pages of files, which the system can take back at any time, do not count.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ct2_triton.bench.shapes import SHAPES
from shape_model import make_shape

FIELDS = ("loaded", "peak", "huge", "decoded", "called", "first_ms", "second_ms")
END = 2
GREEDY = {"beam_size": 1, "max_decoding_length": 24}
ONLY_IN_CALLS = {**GREEDY, "beam_size": 2, "coverage_penalty": 0.1}


def main() -> int:
    """Prints a line for each shape and way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", action="append", choices=SHAPES)
    parser.add_argument("--model", type=Path, help="a converted model; no shape is made")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measured(arguments.model)))
        return 0
    print("| model | " + " | ".join(FIELDS) + " |")
    print("|---|" + "---:|" * len(FIELDS))
    if arguments.model:
        print_lines(arguments.model.name, arguments.model)
        return 0
    for shape in arguments.shape or ["transformer-base"]:
        with tempfile.TemporaryDirectory() as scratch:
            print_lines(shape, make_shape(shape, Path(scratch)))
    return 0


def print_lines(name: str, directory: Path) -> None:
    """Measures in a process of its own."""
    command = [sys.executable, __file__, "--child", "--model", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    figures = " | ".join(f"{found[field]:,.0f}" for field in FIELDS)
    print(f"| {name} | {figures} |", flush=True)


def measured(directory: Path) -> dict[str, float]:
    """Return MiB after loading and after decoding, and milliseconds of the CTranslate2 calls."""
    from ct2_triton import _core

    before = memory("Anonymous")
    engine = {"compute_type": "int8", "inter_threads": "2"}
    model = _core.Translator(str(directory), engine)
    found = {"loaded": memory("Anonymous") - before, "huge": memory("AnonHugePages")}
    found["peak"] = peak() - before
    rows = [[10 + i, *range(20, 30), END] for i in range(48)]
    model.translate(rows, None, GREEDY)
    found["decoded"] = memory("Anonymous") - before
    for field in ("first_ms", "second_ms"):
        start = time.perf_counter()
        model.translate(rows[:1], None, ONLY_IN_CALLS)
        found[field] = (time.perf_counter() - start) * 1e3
    found["called"] = memory("Anonymous") - before
    return found


def memory(kind: str) -> float:
    """MiB of this process."""
    return read("/proc/self/smaps_rollup", kind)


def peak() -> float:
    """Return the peak resident MiB, less the pages of files that are resident now."""
    return read("/proc/self/status", "VmHWM") - read("/proc/self/status", "RssFile")


def read(file: str, field: str) -> float:
    """Return the MiB that a line of a file in /proc gives."""
    text = Path(file).read_text(encoding="utf-8")
    found = re.search(rf"^{field}:\s*([0-9]+) kB$", text, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


if __name__ == "__main__":
    sys.exit(main())
