# SPDX-License-Identifier: Apache-2.0
"""Where the processor time of a served row goes: our decode loop, our code around it, Triton.

    python benchmarks/measure_server.py --symbols build/*/backend/libtriton_ctranslate2.so

Serves the demo model, keeps some clients busy, and samples the server's stacks with `perf` (Debian:
linux-perf). Each sample is charged to the innermost stack frame with a known owner, so the time of
malloc, the kernel and CTranslate2 belongs to their caller. `--symbols` names the plugin as it was
built, because the installed one has no symbols. The clients' own time is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.client import TranslationClient
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepared_model import TEXT_SUFFIX
from ct2_triton.serve import ServerOptions, TritonServer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parents[1]
LOOKS_A_SECOND = 1999
PLUGIN = "libtriton_ctranslate2.so"
TRITON = "Triton and gRPC"
ENGINE = "the loop's steps and encodings"
# Owners by the names of our functions, checked from the leaf of a stack to its root.
PARTS = (
    (ENGINE, r"DecodeLoop::(Step|Admit)|DecoderStep|EncoderPass|SourceEncoder|products::|Chooser"),
    ("metrics, statistics, traces", r"ModelMetrics|MetricsClock|MetricSeries|TargetCounts|Report"),
    ("metrics, statistics, traces", r"RequestTrace|InstanceState::(RowLeft|RunDone)"),
    ("text: sentences and tokens", r"TextFront|Segment|Tokenizer|Pieces|PieceModel|TargetText"),
    ("text: sentences and tokens", r"TextAnswer|TextPlan|sentencepiece|TextWithTokens"),
    ("requests in", r"IdsFront|SplitRows|ReadIds|ReadStrings|DescribeInput|ReadOptions|CheckRow"),
    ("requests in", r"PendingRequest::(Own|Decode|Enter)|InstanceState|LoadedModel::Check"),
    ("answers out", r"IdsAnswer|AnswerTensors|WriteTensor|Response::|PendingRequest|RequestHandle"),
    (
        "queue and loop's rows",
        r"RowQueue|Translator|RunningLoop|LoopWork|RunningRows|SupersedeKeys",
    ),
    ("threads: wait and wake", r"Scheduler|ModelWork"),
)
UNKNOWN = "not told"


@dataclass(frozen=True)
class Frame:
    """A function of a stack, and the file that it is in."""

    symbol: str
    file: str


def part_of(stack: Iterable[Frame]) -> str:
    """Return the owner of a sample of the processor.

    Args:
        stack: Its frames, the leaf first.

    Returns:
        A name of `PARTS`, `TRITON` or `UNKNOWN`.
    """
    for frame in stack:
        if "tritonserver" in frame.file:
            return TRITON
        if frame.file == PLUGIN:
            for part, names in PARTS:
                if re.search(names, frame.symbol):
                    return part
    return UNKNOWN


def read_stacks(lines: Iterable[str]) -> Iterator[list[Frame]]:
    """Read the output of `perf script -F ip,sym,dso`: stacks, each followed by a blank line."""
    stack: list[Frame] = []
    for line in lines:
        found = re.fullmatch(r"\s*[0-9a-f]+ (.*) \(([^()]*)\)\s*", line)
        if found:
            stack.append(Frame(found[1], Path(found[2]).name))
        elif stack:
            yield stack
            stack = []
    if stack:
        yield stack


@dataclass(frozen=True)
class Case:
    """A load: the number of clients, and whether they send IDs or text."""

    name: str
    model: str
    clients: int


CASES = (
    Case("ids, 1 client", "demo", 1),
    Case("ids, 16 clients", "demo", 16),
    Case("text, 1 client", "demo" + TEXT_SUFFIX, 1),
    Case("text, 16 clients", "demo" + TEXT_SUFFIX, 16),
)


class Perf:
    """Samples the stacks of a process with perf, into one folder."""

    def __init__(self, folder: Path, symbols: Path | None) -> None:
        """Register the symbols of the plugin."""
        self._folder = folder
        self._command = ["perf", "--buildid-dir", str(folder / "symbols")]
        if symbols is not None:
            self._run("buildid-cache", "--add", str(symbols))

    def record(self, pid: int, seconds: float) -> list[str]:
        """The command that samples for `seconds`."""
        look = ["-e", "cpu-clock", "-F", str(LOOKS_A_SECOND), "--call-graph", "dwarf,16384"]
        to = ["-o", str(self._folder / "looks"), "-p", str(pid)]
        return [*self._command, "record", *look, *to, "--", "sleep", str(seconds)]

    def parts(self) -> Counter[str]:
        """Microseconds of each part in the last recording."""
        text = self._run(
            *("script", "-i", str(self._folder / "looks"), "-F", "ip,sym,dso", "--no-inline")
        )
        looks = Counter(part_of(stack) for stack in read_stacks(text.splitlines()))
        return Counter({part: count * 1e6 / LOOKS_A_SECOND for part, count in looks.items()})

    def _run(self, *command: str) -> str:
        run = subprocess.run([*self._command, *command], capture_output=True, text=True, check=True)
        return run.stdout


async def load(url: str, repository: Path, case: Case, look: list[str]) -> int:
    """Keep clients busy while the command runs; return the rows answered meanwhile."""
    sentences = (ROOT / "tools" / "commentary.txt").read_text(encoding="utf-8").splitlines()
    answered = 0
    enough = False

    async def one(at: int) -> None:
        nonlocal answered
        while not enough:
            await client.translate(sentences[at % len(sentences)], source="en", targets="de")
            answered += 1
            at += case.clients

    async with TranslationClient(url, case.model, repository=repository) as client:
        tasks = [asyncio.create_task(one(i)) for i in range(case.clients)]
        await asyncio.sleep(1)  # they warm up
        before = answered
        perf = await asyncio.create_subprocess_exec(*look, stderr=subprocess.DEVNULL)
        await perf.wait()
        rows = answered - before
        enough = True
        await asyncio.gather(*tasks)
    return rows


def print_table(columns: dict[str, tuple[int, Counter[str]]]) -> None:
    """Print microseconds a row, a line for each part."""
    names = dict.fromkeys([ENGINE, *(part for part, _ in PARTS)])
    ours = [part for part in names if part != ENGINE]
    print("us of a core for a row".ljust(36) + "".join(f"{name:>18}" for name in columns))
    rows = {part: [part] for part in (*names, TRITON, UNKNOWN)}
    rows["ours, without the loop"] = ours
    rows["all"] = [*names, TRITON, UNKNOWN]
    for name, parts in rows.items():
        figures = (sum(us[part] for part in parts) / count for count, us in columns.values())
        print(name.ljust(36) + "".join(f"{figure:18.1f}" for figure in figures))
    print("rows seen".ljust(36) + "".join(f"{count:>18}" for count, _ in columns.values()))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--symbols", type=Path, help="the plugin as it was built, with its names")
    parser.add_argument("--seconds", type=float, default=8, help="of each load: %(default)s")
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES])
    arguments = parser.parse_args()
    columns = {}
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder) / "repository"
        prepare(PrepareOptions("demo", repository, io="both"))
        perf = Perf(Path(folder), arguments.symbols)
        with TritonServer(ServerOptions([repository])) as server:
            look = perf.record(server.process.pid, arguments.seconds)
            for case in CASES:
                if case.name in (arguments.case or [case.name]):
                    rows = asyncio.run(load(server.grpc_url, repository, case, look))
                    columns[case.name] = (rows, perf.parts())
    print_table(columns)
    return 0


if __name__ == "__main__":
    sys.exit(main())
