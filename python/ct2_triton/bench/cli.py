# SPDX-License-Identifier: Apache-2.0
"""Compare ways to serve a translation model on this machine: same model, same sentences, in turn.

    ct2-bench                                  a smoke comparison on the demo model, five minutes
    ct2-bench --full                           more contenders and scenarios, a model of real size
    ct2-bench --model facebook/nllb-200-distilled-600M --contender ct2-triton-int8 ...
    ct2-bench --shape nllb-600m --contender ct2-triton-int8 ...
                                               the same sizes without a download
    ct2-bench compare A/run.json B/run.json    two runs side by side
    ct2-bench quality demo --text en.txt --reference de.txt --from en --to de
                                               verdicts and scores of translations (docs/quality.md)

Scenarios: single:CLIENTS and streams:SESSIONS (closed loops; a stream's sentences go to all
languages), streams:SESSIONS@SECONDS (sessions that speak every so many seconds), poisson:RATE
(sentences a second), bursts:SENTENCES@SECONDS.

Contenders: ct2-triton is this backend, and ct2-triton-calls is it without decode loops; -loop is
it with a decode loop on a GPU. python-... are models of Triton's Python backend, fastapi-... is a
web server. ctranslate2, transformers and marian (pip install pymarian; --shape marian-base, or an
OPUS-MT checkpoint) run the whole list without a server. Names end in the type of the weights, and
ct2-triton-int8@2 is ct2-triton-int8 on two of the cores. What is measured by default, and figures:
benchmarks/README.md.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.arguments import count, duration
from ct2_triton.bench.comparison import Plan, check_lines, compare
from ct2_triton.bench.contenders import Contender, contender_kind, cores_of, precision_of
from ct2_triton.bench.cores import cores_apart, count_cores, on_cores, usable_cores
from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.quality import add_quality_arguments, judge
from ct2_triton.bench.record import Run
from ct2_triton.bench.report import (
    brief_table,
    compare_runs,
    differences,
    make_console,
    markdown,
    rich_table,
    warnings,
)
from ct2_triton.bench.scenarios import parse_scenario
from ct2_triton.bench.setup import MODEL, Setup, find_prepared
from ct2_triton.bench.shapes import SHAPES, write_shape
from ct2_triton.bench.workload import SENTENCES, random_workload, text_workload
from ct2_triton.client.tokenization import Tokenizer
from ct2_triton.interrupts import interrupts_say
from ct2_triton.serve.machine import count_gpus

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from rich.console import Console

    from ct2_triton.bench.workload import Workload

_BASELINE = "python-transformers-float32"
_SMOKE_CONTENDERS = (
    _BASELINE,
    "fastapi-transformers-tuned-int8",
    "python-ctranslate2-int8",
    "ct2-triton-float32",
    "ct2-triton-int8",
    "ctranslate2-int8",
)
_SMOKE = ("single:1", "single:16", "single:48", "streams:4")
_GPU_CONTENDERS = (
    _BASELINE,
    "python-transformers-float16",
    "python-ctranslate2-float16",
    "ct2-triton-float32",
    "ct2-triton-float16",
    "ct2-triton-int8_float16",
    "ctranslate2-float16",
)
# Each kind in the usual precisions, without untuned FastAPI, which would take most of the time.
_FULL_CONTENDERS = (
    _BASELINE,
    "python-transformers-threads-float32",
    "fastapi-transformers-tuned-int8",
    "python-ctranslate2-float32",
    "python-ctranslate2-int8",
    "python-ctranslate2-workers-int8",
    "ct2-triton-float32",
    "ct2-triton-int8",
    "transformers-float32",
    "ctranslate2-float32",
    "ctranslate2-int8",
)
_FULL = (
    "single:1",
    "single:4",
    "single:16",
    "single:48",
    "streams:4",
    "poisson:5",
    "bursts:16@2",
)
_FULL_SHAPE = "transformer-base"
_LOG = logging.getLogger(__name__)
USUAL = ("--model", "--contender", "--scenario", "--full", "--device", "--minutes", "--output")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_what(parser)
    add_workload(parser)
    parser.add_argument(
        "--output", type=Path, metavar="FOLDER", help="folder for the results (default: a new one)"
    )
    parser.add_argument(
        "--client-processes",
        type=count,
        default=1,
        metavar="N",
        help="processes that send to a server; two or more have cores of their own, if there are "
        "four times as many (default: %(default)s)",
    )
    commands = parser.add_subparsers(dest="command", metavar="compare|quality")
    both = commands.add_parser("compare", help="print two runs side by side")
    both.add_argument("first", type=Path, help="run.json of one run")
    both.add_argument("second", type=Path, help="run.json of another")
    add_quality_arguments(
        commands.add_parser("quality", help="judge and score the translations of a text")
    )


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    console = make_console()
    if args.command == "compare":
        _show_both(Run.read(args.first), Run.read(args.second), console)
        return 0
    if args.command == "quality":
        for table in judge(args):
            console.print(rich_table(table))
        return 0
    folder = args.output or Path(f"ct2-bench-{datetime.now(timezone.utc):%Y%m%d-%H%M%S}")
    if folder.exists():
        raise BenchError(f"{folder} exists; name a new folder with --output")
    with interrupts_say("a run is written at its end only, so nothing is kept"):
        result = _measure(args, console)
    for scenario in result.scenarios:
        console.print(rich_table(brief_table(result, scenario)))
    for warning in warnings(result):
        _LOG.warning(warning)
    _write(result, folder)
    print(f"report: {folder / 'report.md'}; plots and samples (run.json) are in the same folder")
    return 0


def add_what(parser: argparse.ArgumentParser) -> None:
    """Declare what is compared, and how long."""
    model = parser.add_mutually_exclusive_group()
    model.add_argument(
        "--model", help="folder of a prepared model, or as for ct2-prepare (default: demo)"
    )
    model.add_argument(
        "--shape",
        choices=SHAPES,
        help="a model of these sizes that copies its source, made here (implies --random-ids 1)",
    )
    parser.add_argument(
        "--contender",
        action="append",
        metavar="NAME",
        help="contender to measure; repeatable; ratios are to the first (default: "
        f"{', '.join(_SMOKE_CONTENDERS)}); a wrong name lists all",
    )
    parser.add_argument(
        "--scenario",
        action="append",
        metavar="NAME",
        help=f"load, as above; repeatable (default: {', '.join(_SMOKE)})",
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help=f"more contenders and scenarios, on {_FULL_SHAPE}, in half an hour",
    )
    parser.add_argument(
        "--device",
        choices=("cpu", "gpu"),
        default="cpu",
        help="where all contenders translate (default: %(default)s)",
    )
    parser.add_argument(
        "--rounds",
        type=count,
        metavar="N",
        help="measurements of each contender in each scenario (default: 3)",
    )
    parser.add_argument(
        "--minutes",
        type=duration,
        help="about how long to measure, without set-up (default: 4, with --full 25)",
    )
    for name, value, what in (
        ("--models", 1, "serve the model under this many names, as if they were several models"),
        ("--beam-size", 1, "beam size of every translation"),
        ("--max-tokens", 256, "most tokens of a translation"),
    ):
        parser.add_argument(
            name, type=count, default=value, metavar="N", help=f"{what} (default: %(default)s)"
        )

    parser.add_argument(
        "--distinct", action="store_true", help="with --models: a copy of the files for each name"
    )


def add_workload(parser: argparse.ArgumentParser) -> None:
    """Declare what is translated."""
    text = parser.add_mutually_exclusive_group()
    text.add_argument(
        "--text",
        type=Path,
        metavar="FILE",
        help="file with one sentence per line (default: one in the package)",
    )
    text.add_argument(
        "--random-ids",
        type=int,
        metavar="SEED",
        help="random token IDs instead, in rows of log-normal length (median 18, 3 to 80)",
    )
    parser.add_argument(
        "--from",
        dest="source",
        default="en",
        metavar="LANGUAGE",
        help="language of the sentences (default: %(default)s)",
    )
    parser.add_argument(
        "--to",
        default="de,fr,es,it",
        metavar="LANGUAGES",
        help="target languages, comma-separated: all for a stream, the first for other "
        "scenarios (default: %(default)s)",
    )


def _measure(args: argparse.Namespace, console: Console) -> Run:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    contenders = _contenders(args)
    plan = Plan(
        contenders=contenders,
        scenarios=tuple(map(parse_scenario, args.scenario or (_FULL if args.full else _SMOKE))),
        rounds=args.rounds or 3,
        seconds=60 * (args.minutes or (25 if args.full else 4)),
        client_processes=args.client_processes,
        client_cores=_client_cores(contenders, args),
    )
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        on_cores(usable_cores() - set(plan.client_cores)),
        tempfile.TemporaryDirectory(prefix="ct2-bench-") as folder,
        Progress(*columns, TimeElapsedColumn(), console=console) as progress,
    ):
        task = progress.add_task("preparing the model", total=plan.turns)

        def report(what: str, turns: int) -> None:
            progress.update(task, description=what, advance=turns)
            if not console.is_terminal:
                console.print(what)

        for name in contenders:  # report a mistake before a model is prepared
            cores_of(name, count_cores())
        lines = read_lines(args)
        if lines is not None:
            check_lines(lines, (args.text or SENTENCES).name, plan.scenarios)
        setup = make_setup(args, Path(folder))
        workload = make_workload(args, lines, setup, plan.contenders)
        return asyncio.run(compare(setup, workload, plan, report))


def _client_cores(contenders: Sequence[str], args: argparse.Namespace) -> tuple[int, ...]:
    """Return the cores of the load generator; none without a server to send to."""
    kinds = [contender_kind(name, args.device) for name in contenders]
    if all(kind.client is Contender.client for kind in kinds):
        return ()
    return cores_apart(usable_cores(), args.client_processes)


def make_setup(args: argparse.Namespace, folder: Path) -> Setup:
    """Return the model to measure; its files are written into this folder."""
    several = tuple(f"model{i + 1}" for i in range(args.models))
    shape = _shape(args)
    given = find_prepared(args.model) if args.model else None
    model = given.source.id if given else args.model or "demo"
    return Setup(
        str(write_shape(shape, folder)) if shape else model,
        folder,
        several if args.models > 1 else (MODEL,),
        distinct=args.distinct,
        beam_size=args.beam_size,
        max_decoding_length=args.max_tokens,
        device=args.device,
        given=given,
    )


def _shape(args: argparse.Namespace) -> str | None:
    """Return the shape to measure; None for a given model and for the demo model."""
    return args.shape or (_FULL_SHAPE if args.full and not args.model else None)


def _contenders(args: argparse.Namespace) -> tuple[str, ...]:
    usual = _FULL_CONTENDERS if args.full else _SMOKE_CONTENDERS
    names = args.contender or (_GPU_CONTENDERS if args.device == "gpu" else usual)
    for name in names:
        contender_kind(name, args.device)  # report a mistake before a model is prepared
    if args.device == "gpu" and count_gpus() == 0:
        raise BenchError("--device gpu needs an NVIDIA GPU and its driver; there is none here")
    return tuple(dict.fromkeys(names))


def read_lines(args: argparse.Namespace) -> list[str] | None:
    """Read the lines to translate, before a model is prepared; None for random IDs."""
    if args.random_ids is not None or (_shape(args) and not args.text):
        return None
    file: Path = args.text or SENTENCES
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BenchError(f"cannot read {file}: {error.strerror}") from error


def make_workload(
    args: argparse.Namespace, text: list[str] | None, setup: Setup, contenders: Sequence[str]
) -> Workload:
    """Make the sentences from lines, or from random IDs if there are no lines."""
    precisions = [precision_of(name) for name in contenders]
    prepared = setup.prepared("int8" if "int8" in precisions else precisions[0])
    tokenizer = Tokenizer(prepared.tokenizer_folder)
    languages = (args.source or None, [code for code in args.to.split(",") if code])
    if text is None:
        seed = 1 if args.random_ids is None else args.random_ids
        return random_workload(2000, seed, setup, tokenizer, *languages)
    return text_workload(text, (args.text or SENTENCES).name, setup, tokenizer, *languages)


def _write(result: Run, folder: Path) -> None:
    from ct2_triton.bench.report import write_plots

    folder.mkdir(parents=True)
    result.write(folder / "run.json")
    plots = write_plots(result, folder)
    (folder / "report.md").write_text(markdown(result, plots), encoding="utf-8")


def _show_both(first: Run, second: Run, console: Console) -> None:
    tables = compare_runs(first, second)
    if not any(table.rows for table in tables):
        raise BenchError("the two runs have no scenario with a contender in common")
    for table in tables:
        console.print(rich_table(table))
    for line in differences(first, second):
        console.print(f"differs: {line}", markup=False)
