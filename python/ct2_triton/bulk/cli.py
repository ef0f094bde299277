# SPDX-License-Identifier: Apache-2.0
r"""Translate large files with one server or several, through workers of Ray Data.

Files of lines, of JSON lines (*.jsonl) and of Parquet (*.parquet) become files of the kind that the
output's name says, with exactly one translation for each line, in order. A run that was interrupted
continues with the blocks that are missing. Lines that failed are empty, and listed in
OUTPUT.failed.jsonl; the same command again translates them.

    ct2-translate bulk --model nllb --from en --to de -i book.txt -o book.de.txt
    ct2-translate bulk --model nllb --from en --to de,fr --url one:8001,two:8001 \
        -i pages.parquet -o pages.de-fr.parquet --column body --workers 4
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.arguments import count
from ct2_triton.bulk.blocks import (
    JSON,
    PARQUET,
    check_columns,
    cut,
    finish,
    kind_of,
    open_blocks,
    open_parts,
    remove_parts,
)
from ct2_triton.bulk.worker import Task, cluster, translate
from ct2_triton.client.calls import code_of
from ct2_triton.connection_arguments import make_client
from ct2_triton.errors import ClientError
from ct2_triton.interrupts import GOES_ON, interrupts_say
from ct2_triton.prepared_model import default_repository
from ct2_triton.subtitles import is_subtitles
from ct2_triton.translate.cli import (
    add_translation_arguments,
    decoding_options,
    made_of,
)
from ct2_triton.translate.files import Progress, plan
from ct2_triton.translate.line_errors import check_request
from ct2_triton.translate.records import check_unchanged, describe, finished, held

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ct2_triton.bulk.blocks import Block
    from ct2_triton.translate.files import Job

_LOG = logging.getLogger(__name__)
_LOG_EVERY_S = 30.0
USUAL = (
    *("--input", "--output", "--column", "--workers", "--model", "--from", "--to", "--url"),
    "--ray-address",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "-i",
        "--input",
        action="append",
        required=True,
        type=Path,
        metavar="FILE",
        help="read this file; repeatable",
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        type=Path,
        metavar="FILE",
        help="write this file, or those of several files into this folder",
    )
    parser.add_argument(
        "--column",
        default="text",
        metavar="NAME",
        help="text column of a Parquet file (default: %(default)s)",
    )
    for flag, default, text in (
        ("--workers", 2, "processes, which translate a block each"),
        ("--block-lines", 5000, "lines of a block; an interrupted block is translated again"),
        ("--tries", 3, "attempts for a line that fails or takes too long"),
    ):
        parser.add_argument(
            flag,
            type=count,
            default=default,
            metavar="N",
            help=f"{text} (default: %(default)s)",
        )
    parser.add_argument(
        "--ray-address",
        metavar="ADDRESS",
        help="join this Ray cluster, whose machines see the same files (default: processes of this "
        "machine)",
    )
    add_translation_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Translate all files; return 1 if lines failed."""
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # gRPC logs each lost connection on stderr
    jobs = plan(args.input, args.output)
    _make_absolute(args)
    task = asyncio.run(_task(args))
    _check(jobs, task)
    with interrupts_say(GOES_ON), held([job.output for job in jobs]):
        failed = _translate_all(jobs, task)
    return 1 if failed else 0


def _translate_all(jobs: Sequence[Job], task: Task) -> int:
    """Translate the missing blocks; return the number of failed translations."""
    waiting = []
    for job in jobs:
        content = describe(job.source, task.settings)
        earlier = finished(job.output, content)
        if earlier is not None and not earlier.failed:
            _LOG.info("%s is complete: nothing to do", job.output)
            remove_parts(job, content)
            continue
        open_parts(job, {**content, "block_lines": task.args.block_lines})
        blocks = list(cut(job.source.absolute(), job.output.absolute(), task.args.block_lines))
        open_blocks(blocks)
        waiting.append((job, blocks, content))
    _translate([block for _, blocks, _ in waiting for block in blocks], task)
    failed = 0
    for job, blocks, content in waiting:
        check_unchanged(job.source, job.output, content)
        if listed := finish(job, blocks, content):
            _LOG.error(
                "%s.failed.jsonl lists %d translations that failed; the same command again "
                "translates these lines",
                job.output,
                listed,
            )
            failed += listed
    return failed


def _make_absolute(args: argparse.Namespace) -> None:
    """Make paths absolute, because workers have other working directories."""
    args.model_repository = args.model_repository or default_repository()
    for name in ("model_repository", "tokenizer", "tls_ca", "tls_cert", "tls_key"):
        path = getattr(args, name)
        setattr(args, name, None if path is None else path.absolute())
    if args.tokenizer is not None:
        args.model_repository = None


async def _task(args: argparse.Namespace) -> Task:
    """Ask the server what the task needs to know, before any worker starts."""
    async with make_client(args, args.model) as client:
        if args.retry_for:
            await client.wait_until_ready(max(args.retry_for, 1.0))
        versions = await client.connect()
        client.languages.source(args.source)
        targets = tuple(map(code_of, client.languages.targets(args.targets)))
        await check_request(client, args.source, args.targets, decoding_options(args))
        settings = {**made_of(args, versions, targets), "column": args.column}
        return Task(args, targets, settings)


def _check(jobs: Sequence[Job], task: Task) -> None:
    for job in jobs:
        source, output = kind_of(job.source), kind_of(job.output)
        if is_subtitles(job.source) or is_subtitles(job.output):
            raise ClientError(f"{job.source}: subtitles are for ct2-translate without bulk")
        if len(task.targets) > 1 and output not in (JSON, PARQUET):
            raise ClientError(
                f"{job.output}: several target languages need an output named .jsonl or .parquet"
            )
        if source == JSON and output == PARQUET:
            raise ClientError(
                f"{job.output}: the fields of JSON lines have no columns; name an output .jsonl"
            )
        if source == PARQUET:
            check_columns(job.source, task.args.column, task.columns if output == PARQUET else [])


def _translate(blocks: Sequence[Block], task: Task) -> None:
    """Translate the blocks that are not on disk, and show progress."""
    missing = [block for block in blocks if not block.part.exists()]
    if len(missing) < len(blocks):
        _LOG.info("%d of %d blocks are there: kept", len(blocks) - len(missing), len(blocks))
    if not missing:
        return
    total = sum(block.count for block in blocks)
    shown = _Shown(Progress(total, total - sum(block.count for block in missing)))
    with cluster(task.args.ray_address, task.args.workers):
        for row in translate(missing, task, task.args.workers):
            shown.add(row["count"])
        shown.finish()


class _Shown:
    """Show progress and rate: in one line of a terminal, else in a log line every 30 seconds.

    `finish` logs the last line.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._is_terminal = sys.stderr.isatty() and _LOG.isEnabledFor(logging.INFO)
        self._next_s = time.monotonic() + _LOG_EVERY_S

    def add(self, lines: int) -> None:
        self._progress.done += lines
        if self._is_terminal:
            print(f"\r{self} ", end="", file=sys.stderr, flush=True)
        elif self._progress.done < self._progress.total and time.monotonic() > self._next_s:
            self._next_s = time.monotonic() + _LOG_EVERY_S
            _LOG.info("%s", self)

    def finish(self) -> None:
        if self._is_terminal:
            print(file=sys.stderr)
        else:
            _LOG.info("%s", self)

    def __str__(self) -> str:
        return f"{self._progress}, {self._progress.rate():.1f} lines/s"
