# SPDX-License-Identifier: Apache-2.0
"""Translate lines of text with a model that Triton serves.

Each line is one sentence, and is translated when it arrives. Results come in the order of the
lines, with their language where there are several. Files are translated with -i and -o:

    echo "Good morning." | ct2-translate --model nllb --from eng_Latn --to deu_Latn,fra_Latn
    deu_Latn  Guten Morgen.
    fra_Latn  Bonjour.
    ct2-translate --model nllb --from en --to de --stream < book.txt
    ct2-translate --model nllb --from en --to de -i film.srt -o film.de.srt

Large files, over several servers: ct2-translate bulk --help
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import aclosing, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.arguments import count
from ct2_triton.client.calls import code_of
from ct2_triton.client.servers import stream_model
from ct2_triton.client.tasks import iterate_in_thread
from ct2_triton.client.tokenization import NamedLanguages
from ct2_triton.connection_arguments import (
    add_connection_arguments,
    add_request_arguments,
    add_tokenizer_arguments,
    make_client,
    names,
)
from ct2_triton.errors import ClientError, RequestRejectedError, UnexpectedResponseError
from ct2_triton.interrupts import GOES_ON, interrupts_say
from ct2_triton.subtitles import is_subtitles, read_subtitles, write_subtitles
from ct2_triton.terms.arguments import add_term_arguments, read_terms
from ct2_triton.terms.translation import stream_terms
from ct2_triton.translate.files import (
    Job,
    Progress,
    count_lines,
    partial_file,
    plan,
    remove_partial,
)
from ct2_triton.translate.formats import (
    as_json,
    check_choices,
    print_parts,
    report_flags,
    text_of,
    write_json,
)
from ct2_triton.translate.inputs import Line, check_file, judged, read_inputs
from ct2_triton.translate.line_errors import WORD, check_word, concerns_one_line
from ct2_triton.translate.records import (
    check_unchanged,
    describe,
    finished,
    held,
    model_checksum,
    tokenizer_checksum,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence

    from ct2_triton.client.client import TranslationClient
    from ct2_triton.client.stream import StreamItem

_LOG = logging.getLogger(__name__)
USUAL = (
    *("--input", "--output", "--json", "--stream", "--model", "--from", "--to", "--keep"),
    *("--glossary", "--url", "--retry-for"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    _add_text_arguments(parser)
    add_translation_arguments(parser)


def add_translation_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the model, the languages, the options and the server of a translation."""
    parser.add_argument("--model", required=True, help="name of the model on the server")
    parser.add_argument("--from", dest="source", metavar="LANGUAGE", help="language of the text")
    parser.add_argument(
        "--to",
        dest="targets",
        metavar="LANGUAGES",
        type=names,
        help="target languages, comma-separated",
    )
    add_tokenizer_arguments(parser)
    parser.add_argument("--beam-size", type=int, metavar="N", help="short for --option beam_size=N")
    parser.add_argument(
        "--quality",
        action="store_true",
        help="have the server judge each translation: --json shows the verdict, else what is "
        "flagged is named in the log (docs/quality.md)",
    )
    add_request_arguments(parser, "limit for one line")
    parser.add_argument(
        "--max-in-flight",
        type=count,
        default=64,
        metavar="N",
        help="most lines sent and not yet answered (default: %(default)s)",
    )
    add_connection_arguments(parser)


def _add_text_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the input and output options."""
    parser.add_argument("files", nargs="*", type=Path, help="read these files (default: stdin)")
    parser.add_argument(
        "-i",
        "--input",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="read this file, too; repeatable",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write the translation to this file, or those of several files into this folder, with "
        "one line for each input line; the same command again continues an interrupted run and "
        "translates lines that failed",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object for each line")
    parser.add_argument(
        "--stream",
        action="store_true",
        help="print each translation while it is generated, by the model NAME-stream, which "
        "ct2-prepare --io stream writes; one target language",
    )
    add_term_arguments(parser, loss="a warning names lines that lose a term")
    parser.add_argument(
        "--json-input",
        action="store_true",
        help="standard input is JSON lines: strings, or objects with a 'text' (a file of JSON "
        "lines is named *.jsonl)",
    )


def run(args: argparse.Namespace) -> int:
    """Translate all lines; return 1 if a line was refused or not answered in time."""
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # gRPC logs each lost connection on stderr
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        with nullcontext() if args.output is None else interrupts_say(GOES_ON):
            return asyncio.run(_translate(args))
    except BrokenPipeError:  # the reader has ended, as with "| head"
        return 1


def decoding_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the decoding options that `add_translation_arguments` declares."""
    options = dict(args.option)
    if args.beam_size is not None:
        options["beam_size"] = args.beam_size
    if args.quality:
        options["quality"] = True
    return options


async def _translate(args: argparse.Namespace) -> int:
    """Translate the input, and print each line when all its languages are translated."""
    options = decoding_options(args)
    client = make_client(args, args.model)
    files = [*args.files, *args.input]
    jobs = [] if args.output is None else plan(files, args.output)
    for job in jobs:
        check_file(job.source)
    if jobs and len(client.languages.targets(args.targets)) > 1 and not args.json:
        raise ClientError(
            "--output with several target languages needs --json, which writes one object per line"
        )
    _check_subtitles(jobs, as_json=args.json)
    if args.stream:
        wanted = len(client.languages.targets(args.targets))
        check_choices(targets=wanted, as_json=args.json, has_output=args.output is not None)
    terms = read_terms(args, client, args.targets)
    if terms and args.stream:
        raise ClientError("--stream cannot keep terms, which are found in whole translations only")
    stream = partial(
        partial(stream_terms, client, terms) if terms else client.stream,
        source=args.source,
        targets=args.targets,
        max_in_flight=args.max_in_flight,
        on_error="yield",
        **options,
    )
    async with client:
        await _prepare(client, args)
        targets = client.languages.targets(args.targets)
        if args.stream:
            grow = partial(client.stream_text, source=args.source, targets=args.targets, **options)
            lines = read_inputs(files, as_json=args.json_input)
            return 1 if await print_parts(grow, lines, partial(_write, end="")) else 0
        order = [code_of(target) for target in targets]
        if args.output is None:
            printer = _Printer(order, _write, as_json=args.json)
            lines = read_inputs(files, as_json=args.json_input)
            return 1 if await _print_all(stream, lines, printer) else 0
        settings = {
            **made_of(args, await client.connect(), order),
            "json": args.json,
            "keep": args.keep,
            "glossary": {str(code): dict(one.glossary) for code, one in terms.items()},
            "keep_patterns": args.keep_patterns,
        }
        failed = 0
        for job in jobs:
            failed += await _translate_file(stream, job, settings)
    return 1 if failed else 0


def made_of(
    args: argparse.Namespace, versions: Sequence[str], targets: Sequence[str | None]
) -> dict[str, Any]:
    """Return the settings that translations depend on."""
    return {
        "model": args.model,
        "versions": list(versions),
        "model_checksum": model_checksum(args.model, args.model_repository),
        "tokenizer": tokenizer_checksum(args.tokenizer),
        "model_versions": args.model_versions,
        "source": args.source,
        "targets": list(targets),
        "options": decoding_options(args),
    }


async def _prepare(client: TranslationClient, args: argparse.Namespace) -> None:
    """Wait for the model if requested; else ask what it takes if that matters."""
    patience_s = max(args.retry_for or 0.0, 1.0)
    if args.stream and args.retry_for:
        async with make_client(args, stream_model(args.model)) as streams:
            with suppress(UnexpectedResponseError):  # ready; only streams use it
                await streams.wait_until_ready(patience_s)
    elif args.retry_for:
        await client.wait_until_ready(patience_s)
    elif isinstance(client.languages, NamedLanguages) and not args.stream:
        await client.connect()


async def _translate_file(
    stream: Callable[..., AsyncGenerator[StreamItem, None]], job: Job, settings: dict[str, Any]
) -> int:
    """Translate the remaining lines; return the number of failed lines."""
    with held([job.output]):
        made_of = describe(job.source, settings)
        earlier = finished(job.output, made_of)
        if earlier is not None and not earlier.failed:
            _LOG.info("%s is complete: nothing to do", job.output)
            remove_partial(job.output, made_of)
            return 0
        with partial_file(job, made_of, earlier) as output:
            printer = _Printer(
                settings["targets"],
                output.write,
                as_json=settings["json"],
                progress=output.progress(_count(job.source)),
            )
            lines = output.wanted(read_inputs([job.source], as_json=False))
            begun = output.done
            try:
                await _print_all(stream, lines, printer)
            except RequestRejectedError:
                if begun == 0:  # nothing is lost, and the next run may have other settings
                    remove_partial(job.output, made_of)
                raise
            check_unchanged(job.source, job.output, made_of)
            output.finish(partial(_as_subtitles, job) if is_subtitles(job.output) else None)
        return len(output.failed)


def _check_subtitles(jobs: list[Job], *, as_json: bool) -> None:
    for job in jobs:
        if is_subtitles(job.output) and (as_json or not is_subtitles(job.source)):
            what = "--json writes no subtitles" if as_json else f"{job.source} has no times"
            raise ClientError(f"{what}: give {job.output} another name")


def _count(source: Path) -> int:
    """Count the output lines of a source."""
    return len(read_subtitles(source)) if is_subtitles(source) else count_lines(source)


def _as_subtitles(job: Job, lines: Path, output: Path) -> None:
    """Write the translated lines as subtitles with the times of the source."""
    texts = lines.read_text(encoding="utf-8").split("\n")[:-1]
    write_subtitles(job.source, texts, output, job.output.suffix)


async def _print_all(
    stream: Callable[..., AsyncGenerator[StreamItem, None]],
    lines: Iterator[Line],
    printer: _Printer,
) -> int:
    """Translate lines and print them; return the number of failed lines."""
    is_right = False  # whether the server takes what the lines have in common
    async with aclosing(stream(iterate_in_thread(lines))) as items:
        async for raw in items:
            item = judged(raw)
            if not is_right and isinstance(item.outcome, RequestRejectedError):
                await check_word(_translate_word(stream), f"not translated from {item.sentence} on")
                is_right = True
            elif not isinstance(item.outcome, ClientError):
                is_right |= bool(item.sentence.text.strip())  # empty lines are not sent
            printer.add(item)
    printer.finish()
    return printer.failed


async def _translate_word(stream: Callable[..., AsyncGenerator[StreamItem, None]]) -> None:
    async def word() -> AsyncIterator[Line]:
        yield Line(WORD, number=1)

    async with aclosing(stream(word())) as probes:
        async for probe in probes:
            if isinstance(probe.outcome, RequestRejectedError):
                raise probe.outcome


class _Printer:
    """Collect the languages of a line, print it when it is complete, and show progress."""

    def __init__(
        self,
        order: list[str | None],
        write: Callable[..., None],
        *,
        as_json: bool,
        progress: Progress | None = None,
    ) -> None:
        self.failed = 0
        self._write = write
        self._progress = progress
        self._order = order
        self._as_json = as_json
        self._lines: dict[int, list[StreamItem]] = {}
        self._done = 0
        is_free = progress is not None or not sys.stdout.isatty()
        is_wanted = _LOG.isEnabledFor(logging.INFO)
        self._shows_progress = sys.stderr.isatty() and is_free and is_wanted

    def add(self, item: StreamItem) -> None:
        """Take one item; the stream keeps the order of the lines in each language."""
        if isinstance(item.outcome, ClientError):
            self._report(item, item.outcome)
        elif item.outcome.verdict is not None and not self._as_json:
            report_flags(item.sentence, item.outcome.verdict)
        line = self._lines.setdefault(item.position, [])
        line.append(item)
        if len(line) == len(self._order):
            self._print(sorted(self._lines.pop(item.position), key=self._rank))

    def finish(self) -> None:
        """End the progress line."""
        if self._shows_progress:
            print(file=sys.stderr)

    def _rank(self, item: StreamItem) -> int:
        return self._order.index(item.target)

    def _report(self, item: StreamItem, error: ClientError) -> None:
        if not concerns_one_line(error, item.sentence.text):
            untranslated = f"not translated from {item.sentence} on"
            raise type(error)(f"{untranslated}: {error}") from error
        self.failed += 1
        where = str(item.sentence) + (f", {item.target}" if item.target else "")
        _LOG.error("%s: %s", where, error)

    def _print(self, items: list[StreamItem]) -> None:
        if self._as_json:
            text = write_json(as_json(items))
        elif len(items) == 1:
            text = text_of(items[0])
        else:
            text = "\n".join(f"{item.target}  {text_of(item)}" for item in items)
        self._write(text, failed=any(isinstance(item.outcome, ClientError) for item in items))
        self._done += 1
        if self._progress is not None:
            self._progress.done += 1
        if self._shows_progress:
            # The new text may be shorter than the old one.
            text = f"{self._done} lines" if self._progress is None else f"{self._progress} "
            print(f"\r{text}", end="", file=sys.stderr, flush=True)


def _write(text: str, end: str = "\n", *, failed: bool = False) -> None:
    """Print a line; a failed one is logged."""
    try:
        print(text, end=end, flush=True)
    except OSError as error:
        # Python would try again at exit to write the remaining output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise ClientError(f"cannot write the translations: {error.strerror}") from error
