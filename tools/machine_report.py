#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parts of tools/machine_check.sh: what it lacks here, tables of what it measured, and a verdict.

python tools/machine_report.py missing kernels loop  # what these parts need and is not here
python tools/machine_report.py widen MODEL           # makes a prepared model's list a usual size
python tools/machine_report.py kernels FOLDER        # writes FOLDER/kernels.md
python tools/machine_report.py aims FOLDER           # writes FOLDER/aims.md
python tools/machine_report.py cores FOLDER          # writes FOLDER/cores.md
python tools/machine_report.py verdict FOLDER        # prints it, from all of the above
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
LOOP_INT8 = "ct2-triton-loop-int8_float16"
PYTHON = "python-transformers-float16"
ALL_CORES = "ct2-triton-int8"
ONE_CORE, TWO_CORES = f"{ALL_CORES}@1", f"{ALL_CORES}@2"
FEWEST_CORES = 12  # physical, of a server that aims of 16 cores are held against; others send


@dataclass(frozen=True)
class Aim:
    """A ratio to reach in one scenario of a run of ct2-bench.

    Attributes:
        run: Its folder.
        scenario: The run's scenario.
        contender: The contender that is to reach the ratio.
        baseline: The contender that it is compared with.
        figure: The figure whose ratio is taken.
        ratio: The ratio to reach; for milliseconds, the ratio to stay below.
    """

    run: str
    scenario: str
    contender: str
    baseline: str
    figure: str
    ratio: float


_RATE, _P95 = "source tokens/s", "p95 ms"
GPU_AIMS = (
    *(
        Aim("transformer-base", f"single:{clients}", LOOP, CALLS, _RATE, ratio)
        for clients, ratio in ((16, 4), (48, 6), (128, 6))
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
    *(Aim("nllb-listed", f"single:{clients}", LOOP_INT8, CALLS, _RATE, 4) for clients in (1, 48)),
)
CORE_AIMS = (
    Aim("transformer-base", "single:48", ALL_CORES, TWO_CORES, _RATE, 5),
    Aim("transformer-base", "single:48", ALL_CORES, TWO_CORES, _P95, 1),
    Aim("transformer-base", "single:512", ALL_CORES, TWO_CORES, _RATE, 7),
    Aim("four-models", "streams:12", ALL_CORES, TWO_CORES, _RATE, 5),
    Aim("four-models", "streams:12", ALL_CORES, TWO_CORES, _P95, 1),
    Aim("four-models", "streams:128", ALL_CORES, TWO_CORES, _RATE, 7),
    Aim("nllb-600m", "single:1", ALL_CORES, ONE_CORE, _RATE, 5),
)
MOST_STEPS = {2: 4, 16: 3}  # to the first token, p95 of 48 clients, by cores
MOST_STEP_MS = 0.25  # of transformer-base in float16, up to 48 rows
LIST_TOKENS = 25_000
DOUBTFUL_STEP_MS = 0.35  # of one such row: above it, the calculation behind the aims is wrong
_BASE = "transformer-base-float16"
_TITLES = {"aims": "Aims of the GPU", "cores": "Aims of 16 cores"}  # by part


def missing(parts: list[str]) -> list[str]:
    """Return what these parts of machine_check.sh need and this machine lacks."""
    lacks = []
    if count_gpus() == 0:
        lacks.append("a GPU (the driver, libcuda.so.1); --cpu runs the same steps without one")
    if not is_current(OUTPUT):
        try:
            find_nvrtc()
        except CompileError as error:
            lacks.append(f"kernels, and what compiles them: {error}")
    served = {"served", "speed", "aims"} & set(parts)
    calls = served | ({"loop"} & set(parts))  # CTranslate2 itself runs on the GPU
    if calls and not has_cublas():
        lacks.append(f"cuBLAS 12 (pip install nvidia-cublas-cu12), for {', '.join(sorted(calls))}")
    modules = {
        **dict.fromkeys(("torch", "transformers", "ctranslate2"), parts),
        **dict.fromkeys(("pytest", "pytest_asyncio", "pytest_timeout", "hypothesis"), parts),
        **dict.fromkeys(("tritonclient", "matplotlib"), served | ({"cores"} & set(parts))),
    }
    absent = [
        name
        for name, needed in modules.items()
        if needed and importlib.util.find_spec(name) is None
    ]
    lacks += [f"the Python package {name}" for name in absent]
    if "kernels" in parts and "torch" not in absent and not _torch_sees_gpu():
        lacks.append("PyTorch with CUDA, which measures the bandwidth of the GPU's memory")
    return lacks


def _torch_sees_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def widen(model: Path, size: int = LIST_TOKENS) -> int:
    """Fill the list of a prepared model up with the first tokens of its vocabulary.

    A model of a shape has few tokens of which texts consist, and its list has only these.

    Returns:
        The number of tokens in the list.
    """
    folder = model / "1" / "model"
    listed = (folder / "vmap.txt").read_text("utf-8").strip("\t\n").split(" ")
    vocabulary = json.loads((folder / "shared_vocabulary.json").read_text("utf-8"))
    tokens = list(dict.fromkeys([*listed, *vocabulary[: size + len(listed)]]))
    tokens = tokens[: max(size, len(listed))]
    (folder / "vmap.txt").write_text("\t" + " ".join(tokens) + "\n", "utf-8")
    return len(tokens)


@dataclass(frozen=True)
class Result:
    """A figure that was held against an aim.

    Attributes:
        what: The figure.
        measured: Its value; None: it was not measured.
        aim: The value to reach.
        is_time: Whether `aim` is the most, not the least.
    """

    what: str
    measured: float | None
    aim: float
    is_time: bool

    @property
    def met(self) -> bool:
        """Whether it was measured and reached."""
        if self.measured is None:
            return False
        return self.measured <= self.aim if self.is_time else self.measured >= self.aim

    @property
    def word(self) -> str:
        """The verdict on it."""
        return "not measured" if self.measured is None else "yes" if self.met else "no"


def compare_with_aims(runs: dict[str, Run], times: list[dict[str, Any]]) -> list[Result]:
    """Compare runs, by folder, and times of steps with the aims."""
    found = [_held(aim, runs.get(aim.run)) for aim in GPU_AIMS]
    of_rows = {entry["rows"]: entry for entry in times if entry["model"] == _BASE}
    for rows in (1, 16, 48):
        entry = of_rows.get(rows)
        ms = _step_ms(entry) if entry else None
        joining = statistics.median(entry["joining_ms"]) / _step_ms(entry) if entry else None
        step = f"step of {rows} rows, {_BASE}"
        found.append(Result(f"{step}, ms", ms, MOST_STEP_MS, True))
        found.append(Result(f"encoding of 512 joining tokens / {step}", joining, 1, True))
    return found


def _step_ms(entry: dict[str, Any]) -> float:
    return statistics.median(entry["rounds_ms"]) / entry["steps_of_a_round"]


def compare_cores(runs: dict[str, Run], loops: list[dict[str, Any]]) -> list[Result]:
    """Compare runs, by folder, and figures of measure_loops.py with the aims of 16 cores.

    What ran on fewer than `FEWEST_CORES` counts as not measured.
    """
    wide = {name: run for name, run in runs.items() if _server_cores(run) >= FEWEST_CORES}
    found = [_held(aim, wide.get(aim.run)) for aim in CORE_AIMS]
    steps = {
        min(each["cores"], max(MOST_STEPS)): each["first_token_p95_ms"][1] / each["step_ms"]
        for each in loops
    }
    found += [
        Result(
            f"48 clients on {cores} cores: first token's p95, steps", steps.get(cores), most, True
        )
        for cores, most in MOST_STEPS.items()
    ]
    return found


def _server_cores(run: Run) -> int:
    return int(run.contenders.get(ALL_CORES, {}).get("physical cores", 0))


def _held(aim: Aim, run: Run | None) -> Result:
    what = f"{aim.run}, {aim.scenario}: {aim.figure} of {aim.contender} / {aim.baseline}"
    return Result(what, _ratio(aim, run), aim.ratio, aim.figure.endswith("ms"))


def aims_table(title: str, results: list[Result], runs: dict[str, Run]) -> str:
    """Write what was held against the aims; what was not measured says so."""
    lines = [f"## {title}", "", "| what | measured | aim | met |", "|---|---:|---:|---|"]
    for each in results:
        measured = "" if each.measured is None else f"{each.measured:.3g}"
        sign = "<=" if each.is_time else ">="
        lines.append(f"| {each.what} | {measured} | {sign} {each.aim:.3g} | {each.word} |")
    lines += ["", *(f"{name}: {line}" for name, run in runs.items() for line in busy_clients(run))]
    return "\n".join(lines) + "\n"


def kernels_table(times: list[dict[str, Any]]) -> str:
    """Write what each kernel of a step took, and its share of the GPU's bandwidth."""
    lines = [
        "## Kernels",
        "",
        "Launched one by one, so that their sum is above the step, which is mostly a graph. Share:",
        "the bandwidth at which a kernel read its weights, over that of a copy in the memory.",
    ]
    for entry in times:
        lines += [
            "",
            f"{entry['model']}, {entry['rows']} rows: a step of {_step_ms(entry):.3f} ms, "
            f"{entry['kernels']} kernels, all weights read in "
            f"{entry['weight_bytes'] / entry['bandwidth_gb_s'] / 1e6:.3f} ms at "
            f"{entry['bandwidth_gb_s']:,.0f} GB/s",
            "",
            "| kernel | weights | launches | ms | GB/s | share |",
            "|---|---|---:|---:|---:|---:|",
            *(_kernel_line(kernel, entry) for kernel in entry["kernels_of_a_step"]),
        ]
    return "\n".join(lines) + "\n"


def _kernel_line(kernel: dict[str, Any], entry: dict[str, Any]) -> str:
    cells = [kernel["kernel"], "", str(kernel["launches"]), f"{kernel['ms']:.4f}", "", ""]
    if kernel["weight_bytes"]:
        gb_s = kernel["weight_bytes"] / kernel["ms"] / 1e6
        cells[1] = f"{kernel['outputs']} x {kernel['inputs']}"
        cells[4:] = [f"{gb_s:,.0f}", f"{gb_s / entry['bandwidth_gb_s']:.0%}"]
    return f"| {' | '.join(cells)} |"


def verdict(
    steps: dict[str, int], aims: dict[str, list[Result]], times: list[dict[str, Any]]
) -> list[str]:
    """Say in a few sentences what a check has found.

    Args:
        steps: The exit status of each step, by its title.
        aims: What was held against the aims, by their name, of the parts that ran.
        times: Those of kernels; empty: that part did not run.
    """
    failed = [f"{title} (status {status})" for title, status in steps.items() if status]
    lines = [
        f"FAILED: {len(failed)} of {len(steps)} steps: {'; '.join(failed)}."
        if failed
        else f"PASSED: all {len(steps)} steps."
    ]
    lines += [
        f"A step of one row of {_BASE} takes {_step_ms(entry):.3f} ms, above {DOUBTFUL_STEP_MS}: "
        "find out why before anything else is built on these kernels."
        for entry in times
        if entry["model"] == _BASE and entry["rows"] == 1 and _step_ms(entry) > DOUBTFUL_STEP_MS
    ]
    for title, results in aims.items():
        counts = {word: sum(each.word == word for each in results) for word in ("yes", "no")}
        missed = [each.what for each in results if each.word == "no"]
        lines.append(
            f"{title}: {counts['yes']} met, {counts['no']} missed, "
            f"{len(results) - sum(counts.values())} not measured"
            + (f". Missed: {'; '.join(missed)}." if missed else ".")
        )
    return lines


def _ratio(aim: Aim, run: Run | None) -> float | None:
    for scenario in run.scenarios if run else ():
        if scenario.name == aim.scenario:
            found = ratios(scenario, aim.contender, aim.baseline, aim.figure)
            return found.median if found else None
    return None


def _read_runs(folder: Path) -> dict[str, Run]:
    runs = {}
    for path in sorted(folder.glob("*/run.json")):
        try:
            runs[path.parent.name] = Run.read(path)
        except BenchError as error:
            print(error, file=sys.stderr)
    return runs


def _read_figures(*paths: Path) -> list[dict[str, Any]]:
    return [
        entry for path in paths if path.is_file() for entry in json.loads(path.read_text("utf-8"))
    ]


def _read_steps(folder: Path) -> dict[str, int]:
    lines = (folder / "steps.tsv").read_text("utf-8").splitlines()
    return {title: int(status) for status, title in (line.split("\t", 1) for line in lines)}


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("missing").add_argument("parts", nargs="+")
    commands.add_parser("widen").add_argument("model", type=Path)
    for name in ("kernels", "aims", "cores", "verdict"):
        commands.add_parser(name).add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.command == "missing":
        lacks = missing(options.parts)
        for lack in lacks:
            print(f"machine_check.sh: missing here: {lack}", file=sys.stderr)
        return 1 if lacks else 0
    if options.command == "widen":
        print(f"{widen(options.model)} tokens")
        return 0
    folder: Path = options.folder
    times = _read_figures(folder / "kernels" / "times.json")
    runs = {part: _read_runs(folder / part) for part in _TITLES if (folder / part).is_dir()}
    aims = {
        "aims": compare_with_aims(runs.get("aims", {}), times),
        "cores": compare_cores(
            runs.get("cores", {}), _read_figures(*folder.glob("cores/loops-*.json"))
        ),
    }
    if options.command == "verdict":
        ran = {_TITLES[part]: aims[part] for part in runs}
        print("\n\n".join(verdict(_read_steps(folder), ran, times)))
        return 0
    if options.command == "kernels":
        if not times:
            print("no step was timed", file=sys.stderr)
            return 1
        table = kernels_table(times)
    else:
        part = options.command
        table = aims_table(_TITLES[part], aims[part], runs.get(part, {}))
    (folder / f"{options.command}.md").write_text(table, encoding="utf-8")
    print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
