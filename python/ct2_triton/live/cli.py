# SPDX-License-Identifier: Apache-2.0
"""Translate a speech recognizer's growing text live, for viewers in several languages.

Speakers push updates over a WebSocket, viewers follow captions in a browser, over a WebSocket or
as Server-Sent Events; or updates and captions are JSON lines on stdin and stdout:

    ct2-live --model demo --from en --to de,fr
    ct2-live --model demo --from en --to de,fr --stdio < updates.jsonl
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from codecs import BOM_UTF8
from contextlib import AsyncExitStack, aclosing, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.arguments import chosen, count, duration, secret
from ct2_triton.client.retry import RetryPolicy
from ct2_triton.client.tasks import iterate_in_thread, read_byte_lines, run_all
from ct2_triton.client.tokenization import NamedLanguages
from ct2_triton.connection_arguments import (
    add_connection_arguments,
    add_request_arguments,
    add_tokenizer_arguments,
    add_web_arguments,
    make_client,
    names,
    outage_s,
)
from ct2_triton.errors import ClientError
from ct2_triton.interrupts import interrupts_say
from ct2_triton.live.archive import Archive
from ct2_triton.live.cues import CueLimits
from ct2_triton.live.hub import ONLY_LANGUAGE, Hub
from ct2_triton.live.options import MODES, LiveOptions
from ct2_triton.live.speakers import Speakers
from ct2_triton.live.translator import LiveTranslator
from ct2_triton.live.updates import LiveInputError, SegmentUpdate
from ct2_triton.terms.arguments import add_term_arguments, read_terms
from ct2_triton.translate.line_errors import check_request

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ct2_triton.client.client import TranslationClient
    from ct2_triton.live.archive import Past
    from ct2_triton.live.server import Access
    from ct2_triton.terms.finding import Terms

_OTHER_CONNECTIONS = 200  # for pages, subtitles and questions
_SHUTDOWN_S = 5.0
_HELP = {
    "to": "target languages, comma-separated",
    "title": "title of the event, which the pages show",
    "mode": "final: translate whole segments only; steady: show words before, and commit those "
    "that two translations agree on; append: never change a shown word (default: %(default)s)",
    "mask": "words at the end of an interim translation that mode steady does not show (default: "
    "%(default)s)",
    "words": "new words to wait for before the next translation (default: %(default)s)",
    "interval": "least time between two translations of a segment, in ms (default: %(default)s)",
    "captions": "captions kept for late viewers, one per segment and language; the oldest are "
    "dropped, but the files of --subtitles have them (default: %(default)s)",
    "longest": "cut a segment after this many words if no sentence ends (default: %(default)s)",
    "subtitles": "at the end, write LANGUAGE.vtt and .srt; files that exist are kept and new ones "
    "numbered",
    "new": "begin a new event where a crash cut off the last one in the folder of --subtitles, "
    "and write its subtitles; without it, that event continues",
    "line_chars": "subtitles: most characters of a line; wide ones count twice (default: "
    "%(default)s)",
    "lines": "subtitles: most lines of a cue (default: %(default)s)",
    "chars_per_s": "subtitles: characters that are read in a second, at most (default: "
    "%(default)g)",
    "connections": "most connections at a time; more are refused (default: one for each speaker "
    f"and viewer, and {_OTHER_CONNECTIONS} more)",
    "grace": "time in which a disconnected speaker may continue its segments; then they end "
    "(default: %(default)g)",
    "origin": "another origin whose pages may speak and read, that of a proxy or another site, "
    "such as https://talks.example.com",
    "quality": "have the server judge translations: flagged interim captions are not committed, "
    "flagged finals are marked in JSON, and a sentence is shown at most twice in a row "
    "(docs/quality.md)",
    "newest": "translate all of an update, not only the text that two updates agree on",
}
USUAL = (
    *("--model", "--from", "--to", "--title", "--mode", "--stdio", "--subtitles", "--host"),
    *("--port", "--keep", "--glossary", "--url"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    add("--model", required=True, help="name of the model on the server")
    add("--from", dest="source", metavar="LANGUAGE", help="language that is spoken")
    add("--to", dest="targets", metavar="LANGUAGES", type=names, help=_HELP["to"])
    add("--title", default="", help=_HELP["title"])
    add("--mode", choices=tuple(MODES), default=LiveOptions.mode, help=_HELP["mode"])
    add("--min-words", type=count, default=1, metavar="N", help=_HELP["words"])
    add("--min-interval-ms", type=_from(0), default=300, metavar="MS", help=_HELP["interval"])
    add("--mask-words", type=_from(0), default=6, metavar="N", help=_HELP["mask"])
    add("--max-words", type=_from(2), default=60, metavar="N", help=_HELP["longest"])
    add("--newest", action="store_true", help=_HELP["newest"])
    add("--quality", action="store_true", help=_HELP["quality"])
    add("--stdio", action="store_true", help="JSON lines on stdin and stdout, no web server")
    add("--subtitles", type=Path, metavar="FOLDER", help=_HELP["subtitles"])
    add("--new-event", action="store_true", help=_HELP["new"])
    for flag, name, reads in (
        ("--cue-line-chars", "line_chars", _from(10)),
        ("--cue-lines", "lines", count),
        ("--cue-chars-per-second", "chars_per_s", duration),
    ):
        default = getattr(CueLimits, name)
        add(flag, dest=name, type=reads, default=default, metavar="N", help=_HELP[name])
    add_web_arguments(parser, port=8090, pages=_HELP["origin"])
    for who in ("speaker", "viewer"):
        add(
            f"--{who}-password-file",
            dest=f"{who}_key",
            type=secret,
            metavar="FILE",
            help=f"file with the password that {who}s must send (default: they send none)",
        )
    add("--max-captions", type=count, default=20_000, metavar="N", help=_HELP["captions"])
    for who, most in (("speakers", 32), ("viewers", 1000)):
        said = f"most {who} at a time; more are refused (default: %(default)s)"
        add(f"--max-{who}", type=count, default=most, metavar="N", help=said)
    add("--speaker-grace", type=duration, default=30.0, metavar="SECONDS", help=_HELP["grace"])
    add("--max-connections", type=count, metavar="N", help=_HELP["connections"])
    add_term_arguments(parser, loss="a warning names a final caption that loses a term")
    add_tokenizer_arguments(parser)
    add_request_arguments(parser, "limit for one translation; a final is then sent again")
    add_connection_arguments(parser)


def _from(least: int) -> Callable[[str], int]:
    return partial(count, least=least)


def run(args: argparse.Namespace) -> int:
    """Run until the input ends (--stdio), or until an interrupt or SIGTERM.

    Returns 1 if an update on standard input was refused.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # gRPC logs each lost connection on stderr
    if not args.stdio:
        return asyncio.run(_serve(args))
    kept = f"the next run with {args.subtitles} writes the subtitles of the finals so far"
    with nullcontext() if args.subtitles is None else interrupts_say(kept):
        return asyncio.run(_stdio(args))


def _client(args: argparse.Namespace) -> TranslationClient:
    """Make the client, which repeats nothing after an outage: the live translation does."""
    return make_client(args, args.model, retry=RetryPolicy())


def _translator(
    args: argparse.Namespace,
    client: TranslationClient,
    terms: Mapping[str | None, Terms],
    targets: Sequence[str | None] = (),
) -> LiveTranslator:
    """Make a live translation into these languages, or into all that the arguments name."""
    source = "newest" if args.newest else "agreement"
    options = chosen(LiveOptions, args, source=source, outage_s=outage_s(args))
    wanted = [target for target in targets if target is not None] or args.targets
    languages = {"source": args.source, "targets": wanted}
    return LiveTranslator(client, **languages, options=options, terms=terms, **dict(args.option))


async def _stdio(args: argparse.Namespace) -> int:
    """Write captions of the updates on stdin to stdout, and a line for each refused update."""
    hub, refused, start = Hub(args.max_captions), 0, time.monotonic()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(_client(args))
        if isinstance(client.languages, NamedLanguages):
            await client.connect()
        await check_request(client, args.source, args.targets, dict(args.option))
        terms = read_terms(args, client, args.targets)
        live = await stack.enter_async_context(_translator(args, client, terms))

        async def feed() -> None:
            nonlocal refused
            number = 0
            async for line in iterate_in_thread(read_byte_lines(sys.stdin.fileno())):
                number += 1
                text = line.removeprefix(BOM_UTF8) if number == 1 else line
                try:
                    await live.push(SegmentUpdate.from_json(text))
                except LiveInputError as error:
                    refused += 1
                    _print(json.dumps({"line": number, "refused": str(error)}))
            await live.finish()

        async def show() -> None:
            async with aclosing(live.captions()) as captions:
                async for caption in captions:
                    _print(caption.to_json())
                    now = round(time.monotonic() - start, 3)
                    hub.put(caption, now if caption.time is None else caption.time)

        stack.enter_context(_archived(args, hub, is_new=True))
        await run_all([feed(), show()])
    return 1 if refused else 0


async def _serve(args: argparse.Namespace) -> int:
    """Serve until a signal; then end open segments and translate them.

    Raises:
        ClientError: Translations are missing at the end, or the server cannot start.
    """
    try:
        from ct2_triton.live.server import CaptionServer
        from ct2_triton.web import listen, stopped
        from ct2_triton.web_metrics import WebMetrics
    except ImportError as error:
        raise ClientError(
            "the extra is not installed: pip install 'ct2-triton-client[live]'"
        ) from error
    hub = Hub(args.max_captions)
    async with AsyncExitStack() as stack:
        past = stack.enter_context(_archived(args, hub, is_new=args.new_event))
        client = await stack.enter_async_context(_client(args))
        await client.wait_until_ready(max(args.retry_for or 0.0, 1.0))
        await check_request(client, args.source, args.targets, dict(args.option))
        terms = read_terms(args, client, args.targets)
        make: Callable[..., LiveTranslator] = partial(_translator, args, client, terms)
        make()  # checks the arguments now
        languages = _names(client, args.targets)
        codes = list(dict.fromkeys(languages.values()))
        speakers = Speakers(hub, make, codes, args.max_speakers, args.speaker_grace)
        if past is not None:
            speakers.resume(past.began, past.entries)
        server = CaptionServer(hub, speakers, languages, _access(args), args.title)
        metrics = WebMetrics("ct2_live")
        metrics.count_captions(hub)
        runner = server.runner(_SHUTDOWN_S, metrics)
        await runner.setup()
        try:
            port = await listen(runner, args.host, args.port)
            await stack.enter_async_context(metrics.served(args, runner.connections))
            print(f"ct2-live: http://{args.host}:{port}/ in {', '.join(languages)}", flush=True)
            await stopped()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(speakers.end(), _SHUTDOWN_S)
        finally:
            missing = await speakers.close()
            await runner.cleanup()
        if missing:  # an error keeps the journal
            raise ClientError(_missing(missing, args.subtitles))
    return 0


def _missing(translations: int, folder: Path | None) -> str:
    said = f"{translations} translations are missing, which the lines above name"
    again = f"; the next start with --subtitles {folder} translates them"
    return said if folder is None else said + again


def _access(args: argparse.Namespace) -> Access:
    from ct2_triton.live.server import Access

    usual = args.max_viewers + args.max_speakers + _OTHER_CONNECTIONS
    most = args.max_connections or usual
    return chosen(Access, args, max_connections=most, cue_limits=chosen(CueLimits, args))


def _names(client: TranslationClient, targets: list[str] | None) -> dict[str, str]:
    """Return the language code for each name that viewers may use."""
    found = client.languages.targets(targets)
    codes = [ONLY_LANGUAGE if language is None else language.code for language in found]
    return dict(zip(targets or codes, codes, strict=True))


@contextmanager
def _archived(args: argparse.Namespace, hub: Hub, *, is_new: bool) -> Iterator[Past | None]:
    """Write the event's finals to the folder of subtitles, if there is one.

    Yields the journal of the event if it continues after a crash.
    """
    if args.subtitles is None:
        yield None
        return
    archive = Archive(args.subtitles, chosen(CueLimits, args))
    try:
        yield archive.begin(hub, is_new=is_new)
        archive.end(hub)
    finally:
        archive.close()


def _print(line: str) -> None:
    print(line, flush=True)
