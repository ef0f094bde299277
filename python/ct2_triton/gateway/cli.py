# SPDX-License-Identifier: Apache-2.0
"""Serve LibreTranslate's HTTP API with text models.

Programs that speak that API (Weblate, plug-ins of LibreOffice and browsers, subtitle tools) then
use this server. The models are those that ct2-prepare --io text or --io both writes:

    ct2-serve demo &
    ct2-gateway --model demo-text --retry-for 60
"""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from ct2_triton.arguments import (
    chosen,
    count,
    host_name,
    is_loopback,
    public_address,
)
from ct2_triton.connection_arguments import (
    add_connection_arguments,
    add_request_arguments,
    add_tokenizer_arguments,
    add_web_arguments,
    make_client,
    names,
)
from ct2_triton.errors import ClientError
from ct2_triton.gateway.catalog import read_catalog
from ct2_triton.gateway.detection import detector_of
from ct2_triton.gateway.files import own_folder
from ct2_triton.gateway.processes import serve_in, spare_collector
from ct2_triton.gateway.translation import Translator
from ct2_triton.logs import SHARED_METRICS
from ct2_triton.prepared_model import TEXT_SUFFIX
from ct2_triton.terms.arguments import add_patterns_argument, named_file, read_glossary
from ct2_triton.terms.finding import Terms
from ct2_triton.translate.line_errors import check_request

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from ct2_triton.gateway.admission import Limits
    from ct2_triton.gateway.processes import Place

_SHUTDOWN_S = 5.0
_ANY_HOST = "*"
USUAL = (
    *("--model", "--host", "--port", "--processes", "--api-key", "--allow-origin", "--glossary"),
    *("--url", "--retry-for"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    add(
        "--model",
        dest="models",
        required=True,
        type=names,
        metavar="NAMES",
        help="names of models on the server, comma-separated; the first that has a pair of "
        "languages translates it",
    )
    pages = "another origin whose pages may read answers, such as https://www.example.com"
    add_web_arguments(parser, port=5000, pages=pages)
    add(
        "--processes",
        type=count,
        default=1,
        metavar="N",
        help="processes that share the port; each uses at most one core (default: %(default)s)",
    )
    add(
        "--api-key",
        dest="keys",
        action="append",
        default=[],
        metavar="KEY",
        help="key that requests must carry; repeatable (default: none; visible in lists of "
        "processes: prefer the variable)",
    )
    _add_names(parser)
    add(
        "--disable-files-translation",
        action="store_true",
        help="refuse requests to translate files",
    )
    _add_glossaries(parser)
    _add_limits(parser)
    add_tokenizer_arguments(parser)
    add_connection_arguments(parser, outage_s=0.0)  # HTTP clients get an error at once


def _add_names(parser: argparse.ArgumentParser) -> None:
    """Declare the names of the gateway."""
    add = parser.add_argument
    add(
        "--public-address",
        dest="address",
        type=public_address,
        metavar="URL",
        help="public address of the gateway, such as that of a proxy, for translatedFileUrl "
        "(default: that of the request)",
    )
    add(
        "--allowed-host",
        action="append",
        type=host_name,
        default=[],
        metavar="NAME",
        help="name of the gateway in requests (Host), such as that of a proxy; "
        "repeatable; *: any (default: where only this machine reaches --host, localhost and names "
        "without a dot; else any)",
    )


def _add_glossaries(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--glossary",
        dest="glossaries",
        type=_glossary,
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="a glossary that requests may name; each line is a phrase, a tab (in a .csv file a "
        "comma) and its translation; a phrase alone is kept; repeatable",
    )
    add_patterns_argument(parser)


def _glossary(text: str) -> tuple[str, Path]:
    name, path = named_file(text)
    if not name:
        raise ArgumentTypeError(f"{text!r} is not of the form NAME=FILE")
    return name, path


def _read_glossaries(args: argparse.Namespace) -> dict[str, Terms]:
    """Read the glossaries; files with the same name are merged."""
    files: dict[str, list[Path]] = {}
    for name, path in args.glossaries:
        files.setdefault(name, []).append(path)
    return {
        name: Terms(glossary=read_glossary(paths), patterns=args.keep_patterns)
        for name, paths in files.items()
    }


def _add_limits(parser: argparse.ArgumentParser) -> None:
    for what, most, said in (
        ("chars", 100_000, "characters of a text or a file"),
        ("texts", 1000, "texts of a request"),
        ("alternatives", 5, "alternatives of a translation"),
        ("requests", 256, "requests that are translated at a time; more are refused"),
        ("connections", 500, "connections at a time, in each process; more are refused"),
    ):
        parser.add_argument(
            f"--max-{what}",
            type=count,
            default=most,
            metavar="N",
            help=f"most {said} (default: %(default)s)",
        )
    add_request_arguments(parser, "limit for receiving a request, and again for translating it")


def run(args: argparse.Namespace) -> int:
    """Serve until an interrupt or SIGTERM."""
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # gRPC logs each lost connection on stderr
    try:
        import aiohttp  # noqa: F401
        import py3langid  # noqa: F401
    except ImportError as error:
        raise ClientError(
            "the extra is not installed: pip install 'ct2-triton-client[gateway]'"
        ) from error

    def ready(port: int) -> None:
        print(f"ct2-gateway: http://{args.host}:{port}/", flush=True)

    with own_folder() as folder:
        if args.processes > 1 and args.metrics_port is not None:
            os.environ[SHARED_METRICS] = str(folder)  # prometheus_client reads it when imported
        files = None if args.disable_files_translation else folder
        serve = partial(_serve, args, files)
        serve_in(args.processes, args.host, args.port, serve, ready)
    return 0


async def _serve(args: argparse.Namespace, files: Path | None, place: Place) -> None:
    """Serve at a place until it ends."""
    from ct2_triton.gateway.server import Gateway
    from ct2_triton.web import listen
    from ct2_triton.web_metrics import WebMetrics

    glossaries, options = _read_glossaries(args), dict(args.option)
    catalog = read_catalog(args.models, args.model_repository, args.tokenizer)
    detector = detector_of(catalog)
    async with AsyncExitStack() as stack:
        clients = {
            model: await stack.enter_async_context(
                make_client(args, model, tokenizer=None, join_texts=True)
            )
            for model in args.models
        }
        for model, client in clients.items():
            await client.wait_until_ready(max(args.retry_for or 0.0, 1.0))
            if not client.takes_text:
                raise ClientError(
                    f"model {model!r} takes token ids; name one that takes text, as ct2-prepare "
                    f"--io both writes it: {model}{TEXT_SUFFIX}"
                )
            if route := catalog.routes.get(model):
                await check_request(client, route.source, route.target, options)
        terms = Terms(patterns=args.keep_patterns)
        translator = Translator(
            catalog, detector, clients, glossaries=glossaries, terms=terms, options=options
        )
        gateway = Gateway(translator, _limits(args), files)
        metrics = WebMetrics("ct2_gateway")
        runner = gateway.runner(_SHUTDOWN_S, metrics)
        await runner.setup()
        try:
            port = await listen(runner, place.host, place.port, reuse_port=place.is_shared or None)
            async with metrics.served(args, runner.connections):
                spare_collector()
                place.ready(port)
                await place.ended()
        finally:
            await runner.cleanup()


def _limits(args: argparse.Namespace) -> Limits:
    from ct2_triton.gateway.admission import Limits

    hosts = _hosts(args.host, args.allowed_host)
    return chosen(Limits, args, timeout_s=args.timeout, hosts=hosts)


def _hosts(host: str, allowed: Sequence[str]) -> Sequence[str] | None:
    """Return the allowed names of the gateway in requests; None for any."""
    is_any = _ANY_HOST in allowed or not (allowed or is_loopback(host))
    return None if is_any else [host, *allowed]
