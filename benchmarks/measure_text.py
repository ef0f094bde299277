# SPDX-License-Identifier: Apache-2.0
"""Compares text to the server with other ways to have text translated.

    python benchmarks/measure_text.py --clients 16 --way ids --way gateway

The other ways are token ids from a client that tokenizes, the classic ensemble, and ct2-gateway.
The demo model is served in all ways, with one set of weights and workers. Each round measures every
load in each way, one directly after the other. The result is the ratio of text to each other way,
as a median over the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from ct2_triton.arguments import count, duration
from ct2_triton.bench.report import Table, make_console, rich_table
from ct2_triton.bench.workload import SENTENCES
from ct2_triton.cli import main
from ct2_triton.engine_library import load_core
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import ServerOptions, TritonServer
from ensemble import write_ensemble
from text_ways import MODEL, WAYS, open_ways

if TYPE_CHECKING:
    from collections.abc import Sequence

    from text_ways import Way

_COMPARED = 100
_TEXT = "text"
_DEFAULT_WAYS = ("ids", _TEXT, "ensemble")


@dataclass(frozen=True)
class Load:
    """A load on the server.

    Attributes:
        clients: Number of clients. Each sends its next sentence when the last is answered.
        targets: Languages that each sentence is translated into.
    """

    clients: int
    targets: tuple[str, ...]

    def __str__(self) -> str:
        """Return the row's name."""
        return f"{self.clients} clients x {len(self.targets)} languages"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the script's arguments."""
    add = parser.add_argument
    add(
        "--clients",
        action="append",
        type=count,
        metavar="N",
        help="clients at a time; repeatable (default: 1, 16, 48)",
    )
    add(
        "--way",
        action="append",
        choices=WAYS,
        help=f"a way to compare; text is always one; repeatable (default: "
        f"{', '.join(_DEFAULT_WAYS)})",
    )
    add(
        "--to",
        default="de,fr,es,it",
        help="languages: the first alone, and all (default: %(default)s)",
    )
    add(
        "--rounds",
        type=count,
        default=9,
        metavar="N",
        help="turns of each way (default: %(default)s)",
    )
    add(
        "--seconds",
        type=duration,
        default=1.0,
        metavar="S",
        help="length of a turn in seconds (default: 1)",
    )


def run(args: argparse.Namespace) -> int:
    """Print translations a second each way, and the ratios."""
    console = make_console()
    for shown in _tables(args):
        console.print(rich_table(shown))
    return 0


def _tables(args: argparse.Namespace) -> list[Table]:
    """Measure all loads.

    Args:
        args: What `add_arguments` declares.

    Returns:
        The table: translations a second each way, and the ratio.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    rounds = args.rounds
    languages = tuple(args.to.split(","))
    targets = dict.fromkeys([languages[:1], languages])
    loads = [Load(clients, some) for some in targets for clients in args.clients or (1, 16, 48)]
    names = tuple(dict.fromkeys([*(args.way or _DEFAULT_WAYS), _TEXT]))
    with ExitStack() as stack:
        repository = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ct2-text-")))
        write_ensemble(prepare(PrepareOptions(MODEL, repository, io="both")).directory)
        server = stack.enter_context(TritonServer(ServerOptions([repository])))
        measured = _measure(server.grpc_url, repository, names, loads, rounds, args.seconds)
        rates, differing = asyncio.run(measured)
    title = f"translations a second, medians of {rounds} rounds of {args.seconds:g} s turns"
    return [
        Table(
            f"{title}; {os.cpu_count()} cores",
            ("", *names, "answers that differ"),
            [[str(load), *_medians(rates[load], names), differing[load]] for load in loads],
        ),
        Table(
            "text against the others: medians of the rounds' ratios, and their range",
            ("", *(f"text/{name}" for name in names if name != _TEXT)),
            [[str(load), *_ratios(rates[load], names)] for load in loads],
        ),
    ]


async def _measure(
    url: str,
    repository: Path,
    names: Sequence[str],
    loads: Sequence[Load],
    rounds: int,
    seconds: float,
) -> tuple[dict[Load, list[dict[str, float]]], dict[Load, str]]:
    """Return the rates of each round by load, and how many answers differ."""
    sentences = whole_sentences()
    async with AsyncExitStack() as stack:
        ways = await open_ways(stack, names, url, repository)
        rates: dict[Load, list[dict[str, float]]] = {load: [] for load in loads}
        for number in range(-1, rounds):  # the first warms up
            first = number % len(names)
            for load in loads:
                done = {
                    name: await _turn(ways[name], load, sentences, seconds)
                    for name in (*names[first:], *names[:first])
                }
                if number >= 0:
                    rates[load].append(done)
        differing = {load: str(await _differing(ways, load, sentences)) for load in loads}
    return rates, differing


def whole_sentences() -> list[str]:
    """Return the lines that are one sentence to the server as well: the same work both ways."""
    core = load_core()
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if len(core.segment(line.encode(), "en")) == 1]


async def _turn(way: Way, load: Load, sentences: Sequence[str], seconds: float) -> float:
    """Send requests for some time.

    Returns:
        Translations a second, up to the last answer.
    """
    start = time.perf_counter()
    done = 0

    async def ask(first: int) -> None:
        nonlocal done
        position = first
        while time.perf_counter() - start < seconds:
            sentence = sentences[position % len(sentences)]
            await way.ask(sentence, load.targets)
            position += load.clients
            done += len(load.targets)

    await asyncio.gather(*(ask(number) for number in range(load.clients)))
    return done / (time.perf_counter() - start)


def _medians(rates: Sequence[dict[str, float]], names: Sequence[str]) -> list[str]:
    return [f"{median(one[name] for one in rates):.0f}" for name in names]


def _ratios(rates: Sequence[dict[str, float]], names: Sequence[str]) -> list[str]:
    cells = []
    for name in names:
        if name != _TEXT:
            ratios = sorted(one[_TEXT] / one[name] for one in rates)
            cells.append(f"{median(ratios):.3f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    return cells


async def _differing(ways: dict[str, Way], load: Load, sentences: Sequence[str]) -> int:
    """Count translations of some sentences that are not the same all ways."""
    differing = 0
    for sentence in sentences[:_COMPARED]:
        answers = [await way.ask(sentence, load.targets) for way in ways.values()]
        differing += sum(len(set(texts)) > 1 for texts in zip(*answers, strict=True))
    return differing


if __name__ == "__main__":
    sys.exit(main("measure_text", "measure_text"))
