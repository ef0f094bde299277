# SPDX-License-Identifier: Apache-2.0
"""Measures what drafts save where texts grow, on a server of its own.

    python benchmarks/measure_served_drafts.py --shape transformer-base

A growing text is a seeded list of IDs. Each update keeps the first 70 % of the previous tokens,
replaces the others, and adds one. Clients send each update when the previous one is answered:
alternately without drafts, and with the previous answer as the draft.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ct2_triton.arguments import count
from ct2_triton.bench import cli
from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.report import Table, make_console, rich_table
from ct2_triton.bench.workload import text_ids
from ct2_triton.cli import main
from ct2_triton.client.tokenization import Tokenizer
from ct2_triton.serve import ServerOptions, TritonServer

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ct2_triton.bench.setup import Ids
    from ct2_triton.client.connection import Connection
    from ct2_triton.client.id_codec import ModelTensors

KEPT = 0.7
_LOAD_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Pass:
    """What the clients saw of all texts.

    Attributes:
        rows: Updates answered.
        steps: Steps of the decoder for their tokens, forced ones left out, the end token counted.
        seconds: Time from the first request to the last answer.
        answers: Answers by text, an answer for each update.
    """

    rows: int
    steps: int
    seconds: float
    answers: tuple[tuple[Ids, ...], ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the script's arguments: those of ct2-bench, and more."""
    cli.add_what(parser)
    cli.add_workload(parser)
    add = parser.add_argument
    add(
        "--clients",
        type=count,
        default=8,
        metavar="N",
        help="clients at a time, each with a text of its own (default: %(default)s)",
    )
    add("--texts", type=count, default=48, metavar="N", help="growing texts (default: 48)")
    add("--updates", type=count, default=6, metavar="N", help="of each (default: %(default)s)")
    add("--tokens", type=count, default=18, metavar="N", help="of the first one (default: 18)")
    add("--precision", default="int8", help="of the weights (default: %(default)s)")
    add(
        "--seed",
        type=int,
        default=1,
        help="number that decides the texts; an equal one gives equal texts (default: %(default)s)",
    )


def growing_text(ids: Sequence[int], seed: int, tokens: int, updates: int) -> list[Ids]:
    """Make the updates of one text.

    Args:
        ids: Tokens to draw from.
        seed: Equal seeds give equal texts.
        tokens: Length of the first update.
        updates: How many to make.

    Returns:
        The updates. Each is one token longer than the one before, and shares its first 70 %.
    """
    rng = np.random.default_rng(seed)
    texts: list[Ids] = [tuple(map(int, rng.choice(ids, tokens)))]
    while len(texts) < updates:
        kept = texts[-1][: int(KEPT * len(texts[-1]))]
        new = rng.choice(ids, len(texts[-1]) + 1 - len(kept))
        texts.append((*kept, *map(int, new)))
    return texts


def run(args: argparse.Namespace) -> int:
    """Measure without drafts and with them in turn.

    Args:
        args: What `add_arguments` declares.

    Raises:
        BenchError: An answer with a draft was not the one without.
    """
    with tempfile.TemporaryDirectory(prefix="ct2-bench-") as folder:
        setup = cli.make_setup(args, Path(folder))
        prepared = setup.prepared(args.precision)
        rules = (tokenizer := Tokenizer(prepared.tokenizer_folder)).rules
        [target, *_] = tokenizer.targets(args.to.split(",")[0] or None)
        source, prefix = tokenizer.source(args.source or None), rules.target_prefix(target)
        texts = [
            [
                tuple(rules.input_ids(ids, source, target))
                for ids in growing_text(
                    text_ids(rules), 1000 * args.seed + i, args.tokens, args.updates
                )
            ]
            for i in range(args.texts)
        ]
        with TritonServer(ServerOptions([prepared.directory.parent])) as server:
            server.start(_LOAD_TIMEOUT_S)
            measured = asyncio.run(
                _measure(server.grpc_url, prepared.name, texts, tuple(prefix), args)
            )
    table = _table(measured, f"{setup.title}, {args.precision}, {args.clients} clients")
    make_console().print(rich_table(table))
    return 0


async def _measure(
    url: str, model: str, texts: Sequence[Sequence[Ids]], prefix: Ids, args: argparse.Namespace
) -> list[tuple[Pass, Pass]]:
    from ct2_triton.client.connection import Connection
    from ct2_triton.client.id_codec import ModelTensors
    from ct2_triton.client.retry import Deadline, RetryPolicy

    connection = Connection(url, RetryPolicy())
    try:
        tensors = ModelTensors.from_metadata(
            await connection.model_metadata(model, "", Deadline(60.0)), ""
        )
        speaker = _Speaker(connection, tensors, prefix)
        await speaker.say(texts[: args.clients], args.clients, drafts=True)  # warms up
        found = []
        for _ in range(args.rounds or 3):
            without = await speaker.say(texts, args.clients, drafts=False)
            drafted = await speaker.say(texts, args.clients, drafts=True)
            if drafted.answers != without.answers:
                raise BenchError("an answer with a draft is not the one without")
            found.append((without, drafted))
        return found
    finally:
        await connection.close()


class _Speaker:
    """Send the updates of texts, several texts at a time."""

    def __init__(self, connection: Connection, tensors: ModelTensors, prefix: Ids) -> None:
        self._connection, self._tensors, self._prefix = connection, tensors, prefix

    async def say(self, texts: Sequence[Sequence[Ids]], clients: int, *, drafts: bool) -> Pass:
        answers: dict[int, tuple[Ids, ...]] = {}
        steps = 0
        waiting = iter(enumerate(texts))

        async def client() -> None:
            nonlocal steps
            for number, updates in waiting:
                mine: list[Ids] = []
                for update in updates:
                    draft = mine[-1] if drafts and mine else ()
                    answer, kept = await self._translate(update, draft)
                    steps += len(answer) + 1 - kept
                    mine.append(answer)
                answers[number] = tuple(mine)

        start = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(clients)))
        seconds = time.perf_counter() - start
        rows = sum(map(len, texts))
        return Pass(rows, steps, seconds, tuple(answers[i] for i in range(len(texts))))

    async def _translate(self, ids: Ids, draft: Ids) -> tuple[Ids, int]:
        from ct2_triton.client.id_codec import (
            build_request,
            read_draft_tokens_kept,
            read_response,
        )
        from ct2_triton.client.retry import Deadline

        options = {"beam_size": 1}
        request = build_request(self._tensors, ids, self._prefix, options, draft=draft)
        response = await self._connection.infer(request, Deadline(None))
        [best] = read_response(response, len(self._prefix), lambda _: "")
        return best.ids, read_draft_tokens_kept(response) or 0


def _table(measured: Sequence[tuple[Pass, Pass]], title: str) -> Table:
    without, drafted = measured[0]
    rates = [(a.rows / a.seconds, b.rows / b.seconds) for a, b in measured]
    ratios = [b / a for a, b in rates]
    rows = [
        [
            "without",
            f"{without.steps / without.rows:.1f}",
            "1.00",
            f"{statistics.median(a for a, _ in rates):.1f}",
            "1.00",
            "",
        ],
        [
            "with drafts",
            f"{drafted.steps / drafted.rows:.1f}",
            f"{drafted.steps / without.steps:.2f}",
            f"{statistics.median(b for _, b in rates):.1f}",
            f"{statistics.median(ratios):.2f}",
            f"{min(ratios):.2f} to {max(ratios):.2f}",
        ],
    ]
    header = ["", "steps a row", "ratio", "rows/s", "ratio", "range"]
    return Table(f"{title}, {without.rows} updates of growing texts", header, rows)


if __name__ == "__main__":
    sys.exit(main("measure_served_drafts", "measure_served_drafts"))
