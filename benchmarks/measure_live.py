# SPDX-License-Identifier: Apache-2.0
"""Measures how steady and how late live captions are, on a live server.

    python benchmarks/measure_live.py --speakers 16

Speakers with clocks of their own speak sentences of the demo model as a recognizer with errors
would give them (seeded). Each mode or policy replays the same event. Written: the table,
updates.jsonl (each caption with its times) and, for SimulEval's tools, simuleval/POLICY.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.arguments import count, duration
from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.report import make_console, rich_table
from ct2_triton.bench.workload import SENTENCES
from ct2_triton.cli import main
from ct2_triton.client import TranslationClient
from ct2_triton.live import LiveOptions, SegmentUpdate
from ct2_triton.live.options import MODES
from ct2_triton.live.updates import LiveInputError
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import ServerOptions, TritonServer
from live_figures import (
    differing_table,
    figures,
    json_lines,
    lines_of,
    table,
    update_lines,
    write_simuleval,
)
from live_replay import POLICIES, replay
from recognizer_simulator import RecognizerSimulator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ct2_triton.bench.report import Table
    from live_replay import Replay

_LOG = logging.getLogger("ct2_triton.measure_live")
_PATIENCE_S = 5.0  # for a server that should already be running


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the script's arguments."""
    names = ", ".join((*MODES, *POLICIES))
    add = parser.add_argument
    add("--policy", action="append", metavar="NAME", help=f"repeatable: {names}")
    add("--speakers", type=count, default=16, metavar="N", help="(default: %(default)s)")
    add("--to", default="de,fr,es,it", help="languages (default: %(default)s)")
    add("--seconds", type=duration, default=30.0, help="length of the event (default: 30)")
    add("--words-per-second", type=duration, default=2.5, help="(default: %(default)s)")
    add("--error-rate", type=float, default=0.15, help="words misheard first (default: 0.15)")
    add("--stable", action="store_true", help="the recognizer names its stable part")
    add("--lower-case", action="store_true", help="the recognizer gives no capitals")
    add("--newest", action="store_true", help="translate all of an update, settled or not")
    add("--min-words", type=count, default=1, metavar="N", help="(default: %(default)s)")
    add("--min-interval-ms", type=float, default=300.0, help="(default: %(default)s)")
    add("--quality", action="store_true", help="have the server judge translations")
    add("--seed", type=int, default=1, help="(default: %(default)s)")
    add("--updates", type=Path, metavar="FILE", help="recorded updates, a JSON object a line")
    add("--url", help="a server that runs (default: one of its own, with the demo model)")
    add("--name", default="demo", help="with --url: the model's name (default: %(default)s)")
    add("--model-repository", type=Path, help="with --url: where its tokenizer is")
    add(
        "--output",
        type=Path,
        metavar="DIR",
        help="folder for the files (default: none written)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the figures of each policy.

    Raises:
        BenchError: An argument is invalid.
    """
    console = make_console()
    for shown in _tables(args):
        console.print(rich_table(shown))
    return 0


def _tables(args: argparse.Namespace) -> list[Table]:
    """Replay the event with each policy.

    Args:
        args: What `add_arguments` declares.

    Returns:
        The table, and one of the finals that are not the offline translation if there are any.

    Raises:
        BenchError: An argument is invalid.
    """
    policies = args.policy or ["final", "steady", "append", "retranslate"]
    if unknown := set(policies) - {*MODES, *POLICIES}:
        raise BenchError(
            f"no policy {sorted(unknown)[0]!r}; there are {', '.join((*MODES, *POLICIES))}"
        )
    if not 0 <= args.error_rate <= 1:
        raise BenchError(f"--error-rate is {args.error_rate}; it must be from 0 to 1")
    speeches = _speeches(args)
    if not any(speeches):
        raise BenchError(
            f"nobody speaks within {args.seconds:g} s: each speaker begins within 2 s; give more "
            "--seconds or --speakers"
        )
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    with ExitStack() as stack:
        repository, url = args.model_repository, args.url
        if url is None:
            _LOG.info("starting a server with the demo model")
            repository = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ct2-live-")))
            prepare(PrepareOptions("demo", repository, args.name))
            server = stack.enter_context(TritonServer(ServerOptions([repository])))
            url = server.grpc_url
        replays, offline = asyncio.run(_replay_all(args, policies, speeches, url, repository))
    load = f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    lines = {one.name: lines_of(one, offline) for one in replays}
    rows = {one.name: figures(one, lines[one.name]) for one in replays}
    if args.output:
        for name, its_lines in lines.items():
            write_simuleval(args.output / "simuleval" / name, its_lines)
        text = "".join(json_lines(update_lines(one)) for one in replays)
        (args.output / "updates.jsonl").write_text(text, encoding="utf-8")
    targets = args.to.count(",") + 1
    title = f"{len(speeches)} speakers x {targets} languages; {load}"
    return [table(rows, title), *differing_table(lines)]


async def _replay_all(
    args: argparse.Namespace,
    policies: Sequence[str],
    speeches: Sequence[Sequence[SegmentUpdate]],
    url: str,
    repository: Path,
) -> tuple[list[Replay], dict[tuple[str, str | None], str]]:
    """Replay with each policy in turn, then translate the final texts offline."""
    languages = {"source": "en", "targets": args.to.split(",")}
    options = LiveOptions(
        min_words=args.min_words,
        min_interval_ms=args.min_interval_ms,
        source="newest" if args.newest else "agreement",
        quality=args.quality,
    )
    replays = []
    async with TranslationClient(url, args.name, repository=repository) as client:
        await client.wait_until_ready(_PATIENCE_S)
        for number, name in enumerate(policies, 1):
            _LOG.info(
                "%s: the event is replayed, in real time (%d/%d)", name, number, len(policies)
            )
            replays.append(await replay(client, name, speeches, languages, options))
        texts = sorted({u.text for speech in speeches for u in speech if u.final})
        answers = await client.translate(texts, **languages)
    offline = {(a.source_text, a.target): a.text for answer in answers for a in answer}
    return replays, offline


def _speeches(args: argparse.Namespace) -> list[list[SegmentUpdate]]:
    if args.updates:
        return _recorded(args.updates)
    sentences = SENTENCES.read_text(encoding="utf-8").splitlines()
    speeches = []
    for number in range(args.speakers):
        own = random.Random(f"{args.seed}/{number}").sample(sentences, 200)
        speaker = RecognizerSimulator(
            f"speaker{number}",
            args.seed,
            words_per_s=args.words_per_second,
            error_rate=args.error_rate,
            says_stable=args.stable,
            lower_case=args.lower_case,
        )
        speeches.append(list(speaker.updates(own, args.seconds)))
    return speeches


def _recorded(file: Path) -> list[list[SegmentUpdate]]:
    """Read recorded updates; all of a file are one speaker's. Each segment must end."""
    try:
        read = file.read_bytes().splitlines()
    except OSError as error:
        raise BenchError(f"cannot read {file}: {error.strerror}") from error
    updates = []
    for number, line in enumerate(read, 1):
        try:
            updates += [SegmentUpdate.from_json(line)] if line.strip() else []
        except LiveInputError as error:
            raise BenchError(f"{file}, line {number}: {error}") from error
    ended = {update.segment for update in updates if update.final}
    if not ended or any(update.time is None for update in updates):
        raise BenchError(f"{file}: each update needs a time, and at least one segment a final")
    return [[update for update in updates if update.segment in ended]]


if __name__ == "__main__":
    sys.exit(main("measure_live", "measure_live"))
