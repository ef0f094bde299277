# SPDX-License-Identifier: Apache-2.0
"""Compares our load generator with NVIDIA's perf_analyzer: the same rows, the same server.

python benchmarks/compare_perf_analyzer.py --scenario single:16 --binary PATH
"""

from __future__ import annotations

import asyncio
import csv
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.arguments import count
from ct2_triton.bench import cli
from ct2_triton.bench.comparison import measure, send
from ct2_triton.bench.contenders import TritonContender, contender_kind, make_contender
from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.record import figures
from ct2_triton.bench.report import Table, make_console, number, rich_table
from ct2_triton.bench.scenarios import ClosedLoop, OpenLoop, parse_scenario
from ct2_triton.cli import main
from ct2_triton.shared_files import linked_folder, user_cache

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ct2_triton.bench.scenarios import Scenario
    from ct2_triton.bench.setup import Row, Setup
    from ct2_triton.bench.workload import Sentence

_NAME = "perf_analyzer"
# Libraries that it loads by these names. The wheel nvidia-pytriton has them under other names.
_LIBRARIES = {"libb64.so.0d": "libb64-*.so*", "libcudart.so.12": "libcudart-*.so*"}
_FIGURES = ("sentences/s", "p50 ms", "p95 ms", "p99 ms", "queue ms", "compute ms")
_COMPUTE = ("Server Compute Input", "Server Compute Infer", "Server Compute Output")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the script's arguments: those of ct2-bench, and two more."""
    cli.add_what(parser)
    cli.add_workload(parser)
    parser.add_argument("--binary", type=Path, help="perf_analyzer (default: the one on PATH)")
    parser.add_argument("--requests", type=count, default=400, help="(default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Print the figures of both for each scenario.

    Raises:
        BenchError: The tool is missing, or the contender is not one tritonserver.
    """
    binary = find_binary(args.binary)
    (name, *others) = args.contender or ["ct2-triton-int8"]
    scenarios = [parse_scenario(text) for text in args.scenario or ("single:16", "poisson:20")]
    if others or not issubclass(contender_kind(name, args.device), TritonContender):
        raise BenchError(f"perf_analyzer measures one tritonserver, not {name} {others or ''}")
    lines, console = cli.read_lines(args), make_console()

    async def compare(setup: Setup) -> None:
        sentences = cli.make_workload(args, lines, setup, [name]).sentences[: args.requests]
        async with make_contender(name, setup) as contender:
            assert isinstance(contender, TritonContender)
            for scenario in scenarios:
                table = await second_opinion(contender, scenario, sentences, binary)
                console.print(rich_table(table))

    with tempfile.TemporaryDirectory(prefix="ct2-bench-") as folder:
        asyncio.run(compare(cli.make_setup(args, Path(folder))))
    return 0


def find_binary(given: Path | None) -> Path:
    """Find the tool.

    Args:
        given: Where the user says it is; None to look on PATH.

    Returns:
        Its path.

    Raises:
        BenchError: It is not there; the message says how to get it.
    """
    found = given or shutil.which(_NAME)
    if found is None or not Path(found).is_file():
        raise BenchError(
            f"{given or _NAME} is not found; 'pip install --no-deps --target DIR "
            f"tritonclient==2.51.0' brings it, name it with --binary DIR/bin/{_NAME}"
        )
    return Path(found)


async def second_opinion(
    contender: TritonContender, scenario: Scenario, sentences: Sequence[Sentence], binary: Path
) -> Table:
    """Have our load generator and perf_analyzer send the same rows, one after the other.

    Args:
        contender: A running server.
        scenario: `single:...` or `poisson:...`.
        sentences: What to send, once each.
        binary: The tool.

    Returns:
        Their figures side by side.

    Raises:
        BenchError: The tool cannot run the scenario, or failed.
    """
    load = _load_flags(scenario)
    await send(contender, scenario, sentences[: max(16, scenario.in_flight)])  # warms up
    round_, _ = await measure(contender, scenario, sentences, 0)
    ours = figures(round_)
    rows = [scenario.rows(sentence)[0] for sentence in sentences]
    theirs = await asyncio.to_thread(_run, contender, rows, binary, load)
    cells = [[name, number(ours[name]), number(theirs[name])] for name in _FIGURES]
    title = f"{contender.name}, {scenario.name}: {len(sentences)} sentences"
    return Table(title, ["", "ct2-bench", _NAME], cells)


def _load_flags(scenario: Scenario) -> list[str]:
    if isinstance(scenario, ClosedLoop) and not scenario.fan_out:
        return ["--concurrency-range", str(scenario.sessions)]
    if isinstance(scenario, OpenLoop) and scenario.kind == "poisson":
        return ["--request-rate-range", f"{scenario.amount:g}", "--request-distribution", "poisson"]
    raise BenchError(f"{_NAME} does not know {scenario.name}; it runs single and poisson")


def _run(
    contender: TritonContender, rows: Sequence[Row], binary: Path, load: Sequence[str]
) -> dict[str, float]:
    """Send each row once, and give what the tool says, under our names of figures."""
    folder = contender.setup.folder
    rows_file, result_file = folder / f"{_NAME}.json", folder / f"{_NAME}.csv"
    rows_file.write_text(json.dumps({"data": [_tensors(row) for row in rows]}), encoding="utf-8")
    result_file.unlink(missing_ok=True)
    command = [str(binary.absolute()), "-m", rows[0].model, "-i", "grpc"]
    command += ["-u", contender.server.grpc_url, "--input-data", str(rows_file)]
    command += ["--request-count", str(len(rows)), "-f", str(result_file), *load]
    environment = {**os.environ, **_library_path()}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not result_file.exists():
        raise BenchError(f"{_NAME} failed: {(done.stderr or done.stdout).strip()[-2000:]}")
    with result_file.open(encoding="utf-8", newline="") as file:
        line = next(csv.DictReader(file))
    return {
        "sentences/s": float(line["Inferences/Second"]),
        **{f"p{p} ms": float(line[f"p{p} latency"]) / 1000 for p in (50, 95, 99)},
        "queue ms": float(line["Server Queue"]) / 1000,
        "compute ms": sum(float(line[name]) for name in _COMPUTE) / 1000,
    }


def _tensors(row: Row) -> dict[str, object]:
    tensors = {"INPUT_IDS": row.input_ids, "TARGET_PREFIX": row.target_prefix}
    return {name: {"content": ids, "shape": [len(ids)]} for name, ids in tensors.items()}


def _library_path() -> dict[str, str]:
    """Offer the wheel's libraries under the names the tool looks for, after those it finds."""
    spec = importlib.util.find_spec("pytriton")
    if spec is None or spec.origin is None:
        return {}
    carried = Path(spec.origin).parents[1] / "nvidia_pytriton.libs"
    links = {name: path for name, glob in _LIBRARIES.items() for path in carried.glob(glob)}
    if not links:
        return {}
    folder = linked_folder(user_cache() / _NAME, links)
    there = os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": f"{there}{os.pathsep}{folder}" if there else str(folder)}


if __name__ == "__main__":
    sys.exit(main("compare_perf_analyzer", "compare_perf_analyzer"))
