# SPDX-License-Identifier: Apache-2.0
"""``ct2-bench text``: text to the server, or token ids from a client that tokenizes.

The demo model is served both ways, on one set of weights and workers, and asked by the same Python
client. In each round every load has a turn of each way, one right after the other; what counts is
the ratio of the two, and its median over the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from ct2_triton.arguments import count, duration
from ct2_triton.bench.tables import Table
from ct2_triton.bench.workload import SENTENCES
from ct2_triton.client import TranslationClient
from ct2_triton.engine_library import load_core
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import ServerOptions, TritonServer

if TYPE_CHECKING:
    from collections.abc import Sequence

_IDS, _TEXT = "demo", "demo-text"
_ROUNDS = 9
_HEADER = ("", "ids", "text", "text/ids", "range", "answers that differ")


@dataclass(frozen=True)
class Load:
    """How a server is asked.

    Attributes:
        clients: How many ask at the same time, each for its next sentence when it has an answer.
        targets: Languages that each sentence is translated into.
    """

    clients: int
    targets: tuple[str, ...]

    def __str__(self) -> str:
        """Give the row's name."""
        return f"{self.clients} clients x {len(self.targets)} languages"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``ct2-bench text``."""
    add = parser.add_argument
    add(
        "--clients",
        action="append",
        type=count,
        metavar="N",
        help="clients at a time; may be given again (default: 1, 16, 48)",
    )
    add(
        "--to",
        default=argparse.SUPPRESS,  # so that --to before the subcommand is not overwritten
        help="languages: the first alone, and all (default: de,fr,es,it)",
    )
    add(
        "--rounds",
        type=count,
        default=argparse.SUPPRESS,
        metavar="N",
        help=f"turns of each way (default: {_ROUNDS})",
    )
    add(
        "--seconds",
        type=duration,
        default=1.0,
        metavar="S",
        help="length of a turn in seconds (default: 1)",
    )


def run(args: argparse.Namespace) -> list[Table]:
    """Measure all loads.

    Args:
        args: What `add_arguments` and the command declare.

    Returns:
        The table: translations a second each way, and the ratio.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    rounds = args.rounds or _ROUNDS
    languages = tuple(args.to.split(","))
    targets = dict.fromkeys([languages[:1], languages])
    loads = [Load(clients, some) for some in targets for clients in args.clients or (1, 16, 48)]
    with ExitStack() as stack:
        repository = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ct2-text-")))
        prepare(PrepareOptions("demo", repository, io="both"))
        server = stack.enter_context(TritonServer(ServerOptions([repository])))
        rows = asyncio.run(_measure(server.grpc_url, repository, loads, rounds, args.seconds))
    title = f"translations a second, medians of {rounds} rounds of {args.seconds:g} s turns"
    return [Table(f"{title}; {os.cpu_count()} cores", _HEADER, rows)]


async def _measure(
    url: str, repository: Path, loads: Sequence[Load], rounds: int, seconds: float
) -> list[list[str]]:
    sentences = _sentences()
    async with AsyncExitStack() as stack:
        ways = []
        for model in (_IDS, _TEXT):
            client = TranslationClient(url, model, repository=repository)
            ways.append(await stack.enter_async_context(client))
        rates: dict[Load, list[tuple[float, float]]] = {load: [] for load in loads}
        for number in range(-1, rounds):  # the first warms up
            for load in loads:
                turns = [0, 1] if number % 2 else [1, 0]
                done = {way: await _turn(ways[way], load, sentences, seconds) for way in turns}
                if number >= 0:
                    rates[load].append((done[0], done[1]))
        return [
            [str(load), *_row(rates[load]), str(await _differing(ways, load, sentences[:100]))]
            for load in loads
        ]


def _sentences() -> list[str]:
    """Give the lines that are one sentence to the server as well: the same work both ways."""
    core = load_core()
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if len(core.segment(line.encode(), "en")) == 1]


async def _turn(
    client: TranslationClient, load: Load, sentences: Sequence[str], seconds: float
) -> float:
    """Ask for some time.

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
            await client.translate(sentence, source="en", targets=load.targets)
            position += load.clients
            done += len(load.targets)

    await asyncio.gather(*(ask(number) for number in range(load.clients)))
    return done / (time.perf_counter() - start)


def _row(rates: Sequence[tuple[float, float]]) -> list[str]:
    ratios = sorted(text / ids for ids, text in rates)
    return [
        f"{median(ids for ids, _ in rates):.0f}",
        f"{median(text for _, text in rates):.0f}",
        f"{median(ratios):.3f}",
        f"{ratios[0]:.2f} to {ratios[-1]:.2f}",
    ]


async def _differing(
    ways: Sequence[TranslationClient], load: Load, sentences: Sequence[str]
) -> int:
    """Count translations of some sentences that are not the same both ways."""
    both = [await way.translate(sentences, source="en", targets=load.targets) for way in ways]
    pairs = zip(*((one.text for row in answers for one in row) for answers in both), strict=True)
    return sum(ids != text for ids, text in pairs)
