# SPDX-License-Identifier: Apache-2.0
"""Measures what the queue and the scheduler cost by themselves, without a model.

    python benchmarks/measure_queue.py
    python benchmarks/measure_queue.py --waiting 1,1000 --threads 64 --models 1,50

Builds tests/native/queue_costs.cc on the static core of an editable install, runs it for each
combination and prints a Markdown table: processor time in microseconds. A claim is one task of the
scheduler, which takes a waiting row and adds another one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from support.native import built_core, link  # noqa: E402


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--waiting", default="1,1000,100000", help="rows (default: %(default)s)")
    parser.add_argument("--threads", default="1,8,64", help="(default: %(default)s)")
    parser.add_argument("--models", default="1,50", help="(default: %(default)s)")
    parser.add_argument("--tenants", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--operations", type=int, default=20_000, help="(default: %(default)s)")
    args = parser.parse_args()
    lists = [text.split(",") for text in (args.waiting, args.threads, args.models)]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "queue_costs"
        opener = ROOT / "backend/src/engine/calls/open_library.cc"
        link(program, "queue_costs.cc", opener, built_core() / "libct2triton_core.a")
        print("| rows that wait | threads | models | append | row taken | row of a call | claim |")
        print("|---:|---:|---:|---:|---:|---:|---:|")
        for waiting, threads, models in itertools.product(*lists):
            given = (waiting, args.tenants, args.operations, threads, models)
            printed = subprocess.run(
                [str(program), *map(str, given)], check=True, capture_output=True, text=True
            ).stdout
            times = [f"{ns / 1000:.2f}" for ns in json.loads(printed).values()]
            print(f"| {int(waiting):,} | {threads} | {models} | {' | '.join(times)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
