# SPDX-License-Identifier: Apache-2.0
"""The options for the connection to a server, and the client made from them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.arguments import duration, origin, port_number
from ct2_triton.client.calls import read_headers
from ct2_triton.client.client import TranslationClient
from ct2_triton.client.model_client import DEFAULT_TIMEOUT_S
from ct2_triton.client.retry import RetryPolicy
from ct2_triton.client.servers import DEFAULT_PORT, DEFAULT_URL
from ct2_triton.errors import InvalidCallError
from ct2_triton.logs import add_access_log_argument, add_metrics_arguments
from ct2_triton.prepared_model import DEFAULT_TEXT

if TYPE_CHECKING:
    import grpc


def add_connection_arguments(parser: argparse.ArgumentParser, outage_s: float = 300.0) -> None:
    """Declare the connection options, in an argument group.

    `outage_s` is how long an outage may last by default, once a server has answered.
    """
    group = parser.add_argument_group("server")
    group.add_argument(
        "--url",
        default=[DEFAULT_URL],
        type=names,
        metavar="URL",
        help="grpc://host:port, grpcs://host:port (TLS) or host:port; several, comma-separated, "
        f"share the load (default: {DEFAULT_URL}; default port: {DEFAULT_PORT})",
    )
    group.add_argument(
        "--load-balancing",
        choices=["round_robin"],
        help="balance the load over all servers that the URL's name resolves to",
    )
    add_access_arguments(group)
    group.add_argument(
        "--retry-for",
        type=_seconds,
        metavar="SECONDS",
        help="how long to wait for an unreachable server, at the start and later; lost requests "
        f"are sent again (default: 0 at the start, {outage_s:g} later)",
    )
    group.add_argument(
        "--model-versions",
        type=version_weights,
        metavar="1=0.9,2=0.1",
        help="split streams between versions of the model by these weights (default: the server's "
        "choice, its newest)",
    )
    parser.set_defaults(default_outage_s=outage_s)


def add_access_arguments(group: argparse._ActionsContainer) -> None:
    """Declare the options for headers and certificates."""
    group.add_argument(
        "--header",
        action="append",
        default=[],
        type=header,
        metavar="'NAME: VALUE'",
        help="send this with every request, such as a secret that the server asks for; repeatable "
        "(visible in lists of processes: prefer the variable)",
    )
    for flag, text in (
        ("ca", "certificates (PEM) of the authorities to trust (default: the usual ones)"),
        ("cert", "this client's certificate (PEM), for a server that asks for one"),
        ("key", "the private key (PEM) of --tls-cert"),
    ):
        group.add_argument(f"--tls-{flag}", type=Path, metavar="FILE", help=f"{text}; turns TLS on")


def add_request_arguments(parser: argparse.ArgumentParser, limit: str) -> None:
    """Declare the options of each request: decoding options and the time limit."""
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=_option,
        metavar="NAME=VALUE",
        help="a decoding option (docs/parameters.md); repeatable",
    )
    parser.add_argument(
        "--timeout",
        type=duration,
        default=DEFAULT_TIMEOUT_S,
        metavar="SECONDS",
        help=f"{limit} (default: %(default)g)",
    )


def add_web_arguments(parser: argparse.ArgumentParser, port: int, pages: str) -> None:
    """Declare the options of a web server: addresses, access and logs."""
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen at (default: %(default)s)")
    said = "port to listen at; 0: any (default: %(default)s)"
    add("--port", type=port_number, default=port, help=said)
    add(
        "--allow-origin",
        dest="allow_origins",
        action="append",
        type=origin,
        default=[],
        metavar="ORIGIN",
        help=f"{pages}; *: all; repeatable",
    )
    add(
        "--idle-timeout",
        dest="idle_s",
        type=duration,
        default=75.0,
        metavar="SECONDS",
        help="time until the header of a connection's next request has arrived (default: "
        "%(default)g)",
    )
    add_access_log_argument(parser)
    add_metrics_arguments(parser)


def outage_s(args: argparse.Namespace) -> float:
    """Return the longest outage in seconds: `--retry-for`, else the command's default."""
    return float(args.default_outage_s if args.retry_for is None else args.retry_for)


def add_tokenizer_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for the place of the tokenizer, of which at most one may be given."""
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--model-repository",
        type=Path,
        metavar="FOLDER",
        help=f"folder of prepared models, for the tokenizer ({DEFAULT_TEXT})",
    )
    place.add_argument(
        "--tokenizer", type=Path, metavar="FOLDER", help="a prepared model's tokenizer folder"
    )


def make_client(
    args: argparse.Namespace,
    model: str,
    **settings: Any,  # noqa: ANN401
) -> TranslationClient:
    """Make the client that a command's arguments describe; it has not connected yet.

    `settings` override the arguments.
    """
    return TranslationClient(args.url, model, **(client_settings(args) | settings))


def client_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of that client."""
    return {
        "load_balancing": args.load_balancing,
        "repository": args.model_repository,
        "tokenizer": args.tokenizer,
        "timeout_s": args.timeout,
        "retry": RetryPolicy(outage_s=outage_s(args)),
        "credentials": credentials(args),
        "metadata": dict(args.header),
        "versions": args.model_versions,
    }


def credentials(args: argparse.Namespace) -> grpc.ChannelCredentials | None:
    """Make credentials from `--tls-ca`, `--tls-cert` and `--tls-key`; None without files."""
    import grpc

    if (args.tls_cert is None) != (args.tls_key is None):
        raise InvalidCallError("--tls-cert and --tls-key belong together: name both")
    if args.tls_ca is None and args.tls_cert is None:
        return None
    ca, key, cert = (_read(path) for path in (args.tls_ca, args.tls_key, args.tls_cert))
    return grpc.ssl_channel_credentials(ca, key, cert)


# Other keyword arguments of the client's calls.
_NO_OPTIONS = {"text", "source", "targets", "timeout_s", "supersede", "session", "options"}
_NO_OPTIONS |= {"prefix", "draft", "metadata"}


def _option(text: str) -> tuple[str, Any]:
    """Read NAME=VALUE; a value that is valid JSON (4, 0.5, true, ["a"]) is parsed."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    if name in _NO_OPTIONS:
        raise argparse.ArgumentTypeError(f"{name!r} is not a decoding option")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def _seconds(text: str) -> float:
    """Read a number of seconds, at least 0."""
    return 0.0 if text.strip() in {"0", "0.0"} else duration(text)


def names(text: str) -> list[str]:
    """Read a comma-separated list."""
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise argparse.ArgumentTypeError("name at least one")
    return found


def version_weights(text: str) -> dict[str, float]:
    """Read `1=0.9,2=0.1`; no version may be named twice."""
    pairs = [pair.partition("=") for pair in names(text)]
    try:
        weights = {version.strip(): float(weight) for version, _, weight in pairs}
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not of the form VERSION=WEIGHT,VERSION=WEIGHT, as in 1=0.9,2=0.1"
        ) from error
    if len(weights) < len(pairs):
        raise argparse.ArgumentTypeError(f"{text!r} names a version twice; give each one weight")
    return weights


def header(text: str) -> tuple[str, str]:
    """Read `NAME: VALUE`."""
    name, colon, value = text.partition(":")
    try:
        [found] = read_headers({name.strip(): value.strip()} if colon else {"": ""})
    except InvalidCallError:  # do not repeat its text, which has the value: it may be a secret
        raise argparse.ArgumentTypeError(
            "a header is 'NAME: VALUE': a name of letters, digits, '-', '_' and '.', which neither "
            "begins with 'grpc-' nor ends with '-bin', and a value of printable ASCII"
        ) from None
    return found


def _read(path: Path | None) -> bytes | None:
    try:
        return None if path is None else path.read_bytes()
    except OSError as error:
        raise InvalidCallError(f"cannot read {path}: {error.strerror}") from error
