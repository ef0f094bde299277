# SPDX-License-Identifier: Apache-2.0
"""The long proofs behind docs/guarantees.md, one after the other, and the table of what they found.

    python tests/reliability/prove.py --hours 8

Each has its share of the time, and runs at least once. The table goes into
benchmarks/reliability.md, with the processor and its kernels. The exit status is 1 when a row is
wrong that must not be.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.extend(str(Path(__file__).resolve().parents[1] / name) for name in ("", "tiny"))

from core import loop_matrix
from core.matrix_model import MatrixModel
from ct2_triton import _core
from ct2_triton.arguments import count, duration
from ct2_triton.bench.record import describe_machine, describe_versions
from reliability.chaos import one_model
from reliability.fuzz import Fuzzer, write_fuzz_repository
from reliability.soak import Soak
from reliability.truths import make_cases
from server import configs
from server.helpers import Reference
from support.checkout import git
from support.servers import ServerStack
from support.tiny import tiny_engine_model

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = Path(__file__).resolve().parents[2] / "benchmarks" / "reliability.md"
BEGIN, END = "<!-- from here written by prove.py -->\n", "<!-- to here -->\n"
_ROWS_PER_CASE = 12
_LEAST_SOAK_S = 10.0  # for the figures of memory
_NO_END = range(10**9)  # the time ends them


@dataclass(frozen=True)
class Line:
    """A line of the table, and whether all is as it must be."""

    proof: str
    seeds: str
    rows: int
    found: str
    good: bool


@dataclass(frozen=True)
class Matrix:
    """Random rows of every kind of model through the decode loop, and what they are held against.

    `count` takes a model, how many rows and a seed, and counts rows that differ and ties.
    """

    proof: str
    compute_type: str
    beams: float
    count: Callable[[MatrixModel, int, int], Counter[str]]
    may_differ: bool = False


def _against_ctranslate2(model: MatrixModel, rows: int, seed: int) -> Counter[str]:
    tally = loop_matrix.run(model, rows, seed)
    return Counter(differ=len(tally.different), ties=tally.ties)


def _among_others(model: MatrixModel, rows: int, seed: int) -> Counter[str]:
    return Counter(differ=loop_matrix.composition(model, rows, seed))


def _with_drafts(model: MatrixModel, rows: int, seed: int) -> Counter[str]:
    return Counter(differ=loop_matrix.drafted(model, rows, seed).different)


_ALONE = "against CTranslate2 on the row alone"
MATRICES = (
    Matrix(f"float32, greedy rows, {_ALONE}", "float32", 0.0, _against_ctranslate2),
    Matrix(f"float32, 40 % beam searches, {_ALONE}", "float32", 0.4, _against_ctranslate2),
    Matrix("int8, 30 % beam searches, among other rows against alone", "int8", 0.3, _among_others),
    Matrix(f"int8, 30 % beam searches, {_ALONE}", "int8", 0.3, _against_ctranslate2, True),
    Matrix("int8, greedy rows, with drafts against without", "int8", 0.0, _with_drafts),
)
# Of the time: each of MATRICES, requests to a server, the soak.
SHARES = (0.2, 0.2, 0.15, 0.1, 0.1, 0.1, 0.15)


def matrix(proof: Matrix, kinds: dict[str, Path], seconds: float, seed: int, rows: int) -> Line:
    """Run rounds of so many rows of each kind, each with the next seed."""
    end = time.monotonic() + seconds
    models = [
        MatrixModel(kind, folder, proof.compute_type, proof.beams) for kind, folder in kinds.items()
    ]
    found: Counter[str] = Counter()
    for last in itertools.count(seed):
        for model in models:
            found.update(proof.count(model, rows, last), rows=rows)
        if time.monotonic() >= end:
            break
    differ, ties = found["differ"], found["ties"]
    text = f"{differ} differ" + (f", {ties} ties" if ties else "")
    good = proof.may_differ or differ == 0
    return Line(proof.proof, f"{seed} to {last}", found["rows"], text, good)


def requests(seconds: float, seed: int) -> Line:
    """Send valid, wrong and damaged requests to a server."""
    model = tiny_engine_model("nllb")
    cases = make_cases(model, _ROWS_PER_CASE, seed=1)
    with tempfile.TemporaryDirectory() as folder, ServerStack() as stack:
        write_fuzz_repository(Path(folder), model)
        fuzzer = Fuzzer(stack.start(Path(folder)), cases, seed)
        report = fuzzer.run(_NO_END, limit_s=seconds)
    print(*report.complaints[:20], sep="\n")
    proof = "requests to a server over gRPC and HTTP, 30 % with a mistake, 15 % damaged"
    return Line(proof, str(seed), report.sent(), f"{report.wrong} wrong", report.wrong == 0)


def soak(seconds: float, seed: int) -> Line:
    """Send requests of all shapes, and see what stays resident."""
    model = tiny_engine_model("nllb")
    with one_model(model, configs.full()) as server:
        report = Soak(server, "model", Reference(model), seed).run(max(seconds, _LEAST_SOAK_S))
    print(*report.wrong[:20], sep="\n")
    text = (
        f"{len(report.wrong)} wrong in {report.requests} requests; {report.warm_mib:.0f} MiB "
        f"after the warm-up, {report.end_mib:.0f} at the end"
    )
    return Line("soak: rows of all shapes", str(seed), report.rows, text, not report.wrong)


def prove(seconds: float, seed: int, rows: int) -> list[Line]:
    """Run all proofs in so many seconds; print each line when it is there."""
    times = [share * seconds for share in SHARES]
    lines = []
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kinds = loop_matrix.matrix_models(tiny_engine_model, scratch)
        runs = [lambda s, one=one: matrix(one, kinds, s, seed, rows) for one in MATRICES]
        for run, share_s in zip(
            [*runs, lambda s: requests(s, seed), lambda s: soak(s, seed)], times, strict=True
        ):
            lines.append(run(share_s))
            print(lines[-1], flush=True)
    return lines


def table(lines: list[Line], hours: float) -> str:
    """Give the lines as Markdown, with what they ran on."""
    machine, versions = describe_machine(), describe_versions()
    kernels = ", ".join(dict.fromkeys([*_core.kernels(), *_core.kernels("float32")]))
    commit = git("rev-parse", "--short", "HEAD")[0]
    head = (
        f"{time.strftime('%-d %B %Y')}, commit {commit}, {machine['processor']}, "
        f"{machine['cores']} cores, kernels {kernels}, CTranslate2 {versions['ctranslate2']}, "
        f"{hours:g} hours in all:"
    )
    rows = [f"| {one.proof} | {one.seeds} | {one.rows:,} | {one.found} |" for one in lines]
    return "\n".join(
        [head, "", "| proof | seeds | rows, or requests | found |", "|---|---|---:|---|", *rows, ""]
    )


def main() -> int:
    """Run what the command line asks for, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=duration, default=8.0, help="in all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the first one (default: %(default)s)")
    parser.add_argument(
        "--rows", type=count, default=200, help="of each kind in a round (default: %(default)s)"
    )
    parser.add_argument("--page", type=Path, default=PAGE, help="default: %(default)s")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = prove(3600 * args.hours, args.seed, args.rows)
    before, _, rest = args.page.read_text(encoding="utf-8").partition(BEGIN)
    text = f"{before}{BEGIN}{table(lines, args.hours)}{END}{rest.partition(END)[2]}"
    args.page.write_text(text, encoding="utf-8")
    return 0 if all(line.good for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
