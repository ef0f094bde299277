#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parts of tools/gpu_check.sh: what it lacks here, and a table of what it measured.

python tools/gpu_report.py missing kernels loop    # what these parts need and is not here
python tools/gpu_report.py aims FOLDER             # writes FOLDER/aims.md
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.record import Run, ratios
from ct2_triton.bench.report import busy_clients
from ct2_triton.serve.machine import count_gpus, has_cublas
from gpu_images import OUTPUT, CompileError, find_nvrtc, is_current

CALLS, LOOP = "ct2-triton-float16", "ct2-triton-loop-float16"
PYTHON = "python-transformers-float16"


@dataclass(frozen=True)
class Aim:
    """A ratio to reach in one scenario of a run of ct2-bench.

    Attributes:
        run: Its folder.
        scenario: The run's scenario.
        contender: The contender that is to reach the ratio.
        baseline: The contender that it is compared with.
        figure: The figure whose ratio is taken.
        least: The ratio to reach; for milliseconds, the ratio to stay below.
    """

    run: str
    scenario: str
    contender: str
    baseline: str
    figure: str
    least: float


_RATE, _P95 = "source tokens/s", "p95 ms"
AIMS = (
    *(
        Aim("transformer-base", f"single:{clients}", LOOP, CALLS, _RATE, least)
        for clients, least in ((16, 4), (48, 6), (128, 6))
    ),
    *(
        Aim("transformer-base", f"single:{clients}", LOOP, CALLS, _P95, 0.25)
        for clients in (16, 48, 128)
    ),
    Aim("transformer-base", "single:1", LOOP, CALLS, "p50 ms", 8 / 37),
    *(Aim("transformer-base", f"single:{clients}", LOOP, PYTHON, _RATE, 15) for clients in (4, 48)),
    Aim("four-models", "streams:48", LOOP, CALLS, _RATE, 5),
    *(Aim("four-models", f"streams:{streams}", LOOP, PYTHON, _RATE, 15) for streams in (4, 48)),
    *(Aim("nllb-600m", f"single:{clients}", LOOP, CALLS, _RATE, 3) for clients in (1, 48)),
)
MOST_STEP_MS = 0.25  # of transformer-base in float16, up to 48 rows


def missing(parts: list[str]) -> list[str]:
    """Return what these parts of gpu_check.sh need and this machine lacks."""
    lacks = []
    if count_gpus() == 0:
        lacks.append("a GPU (the driver, libcuda.so.1); --cpu runs the same steps without one")
    if not is_current(OUTPUT):
        try:
            find_nvrtc()
        except CompileError as error:
            lacks.append(f"kernels, and what compiles them: {error}")
    calls = {"served", "speed", "aims"} & set(parts)
    if calls and not has_cublas():
        lacks.append(f"cuBLAS 12 (pip install nvidia-cublas-cu12), for {', '.join(sorted(calls))}")
    modules = {"torch": parts, "pytest": parts, "tritonclient": calls, "matplotlib": calls}
    lacks += [
        f"the Python package {name}"
        for name, needed in modules.items()
        if needed and importlib.util.find_spec(name) is None
    ]
    return lacks


def aims_table(runs: dict[str, Run], times: list[dict[str, Any]]) -> str:
    """Compare runs, by folder, and times of steps with the aims; what was not measured says so."""
    lines = ["## Aims", "", "| what | measured | aim | met |", "|---|---:|---:|---|"]
    for aim in AIMS:
        measured = _ratio(aim, runs.get(aim.run))
        is_time = aim.figure.endswith("ms")
        met = measured is not None and (measured <= aim.least if is_time else measured >= aim.least)
        lines.append(
            f"| {aim.run}, {aim.scenario}: {aim.figure} of {aim.contender} / {aim.baseline} "
            f"| {_number(measured)} | {'<=' if is_time else '>='} {aim.least:.3g} | {_word(met)} |"
        )
    for entry in times:
        if entry["model"] != "transformer-base-float16" or entry["rows"] > 48:
            continue
        step = statistics.median(entry["rounds_ms"]) / entry["steps_of_a_round"]
        lines.append(
            f"| step of {entry['rows']} rows, transformer-base, ms | {_number(step)} "
            f"| <= {MOST_STEP_MS} | {_word(step <= MOST_STEP_MS)} |"
        )
    lines += ["", *(f"{name}: {line}" for name, run in runs.items() for line in busy_clients(run))]
    return "\n".join(lines) + "\n"


def _ratio(aim: Aim, run: Run | None) -> float | None:
    for scenario in run.scenarios if run else ():
        if scenario.name == aim.scenario:
            found = ratios(scenario, aim.contender, aim.baseline, aim.figure)
            return found.median if found else None
    return None


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3g}"


def _word(met: bool) -> str:
    return "yes" if met else "no"


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("missing").add_argument("parts", nargs="+")
    commands.add_parser("aims").add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.command == "missing":
        lacks = missing(options.parts)
        for lack in lacks:
            print(f"gpu_check.sh: missing here: {lack}", file=sys.stderr)
        return 1 if lacks else 0
    runs = {}
    for path in sorted((options.folder / "aims").glob("*/run.json")):
        try:
            runs[path.parent.name] = Run.read(path)
        except BenchError as error:
            print(error, file=sys.stderr)
    times = options.folder / "kernels" / "times.json"
    table = aims_table(runs, json.loads(times.read_text()) if times.is_file() else [])
    (options.folder / "aims.md").write_text(table, encoding="utf-8")
    print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
