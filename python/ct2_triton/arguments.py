# SPDX-License-Identifier: Apache-2.0
"""Parsers of command-line values for argparse's `type`, whose errors say what is wrong.

Options of a command are a dataclass; `chosen` makes it from the parsed arguments.
"""

from __future__ import annotations

import argparse
import ipaddress
import math
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Options = TypeVar("Options", bound=DataclassInstance)

ANY_ORIGIN = "*"
_NO_ORIGIN = "null"  # sent by a page from a file or in a sandboxed frame
_LAST_PORT = 65_535
_PORTS = {"http": 80, "https": 443}


def chosen(
    kind: type[Options],
    args: argparse.Namespace,
    **more: Any,  # noqa: ANN401 - attributes of the dataclass
) -> Options:
    """Make a dataclass of options from the arguments named as its attributes, and from `more`."""
    names = {one.name for one in fields(kind)}
    given = {name: value for name, value in vars(args).items() if name in names}
    return kind(**(given | more))


def count(text: str, least: int = 1) -> int:
    """Read a whole number."""
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of {least} or more")
    return value


def port_number(text: str, least: int = 0) -> int:
    """Read the number of a port, 0 for any."""
    value = (
        int(text)
        if text.isascii() and text.isdecimal() and len(text) <= len(str(_LAST_PORT))
        else -1
    )
    if not least <= value <= _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from {least} to {_LAST_PORT}")
    return value


def duration(text: str) -> float:
    """Read a finite number above 0, in seconds or minutes."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def secret(path: str) -> str:
    """Read a file whose content is a password; white space at its ends is ignored."""
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"cannot read {path}: {error}") from error
    if not text:
        raise argparse.ArgumentTypeError(f"{path} is empty; write the password into it")
    return text


def origin(text: str) -> str:
    """Read an origin as browsers send it, for argparse's `type`.

    It is `*`, `null`, or a scheme and a host, with a port if it is not the default one.
    """
    if text in {ANY_ORIGIN, _NO_ORIGIN} or host_and_port(text) is not None:
        return text.lower()
    raise argparse.ArgumentTypeError(
        f"{text!r} is not an origin; give * for all, null, or an address without a path, such as "
        "https://talks.example.com"
    )


def host_name(text: str) -> str:
    """Read a name as in the header `Host`, for argparse's `type`: `*`, a name or an address."""
    found = host_and_port(f"http://{text}")
    name = text.lower().strip("[]").rstrip(".")
    if text == ANY_ORIGIN or (found and found[0].rstrip(".") == name):
        return name
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a host name; give * for all, or a name without scheme and port, such "
        "as translate.example.com"
    )


def public_address(text: str) -> str:
    """Read a server's public address, for argparse's `type`: an origin, with an optional path."""
    parts = urlsplit(text)
    is_web = parts.scheme in {"http", "https"} and not (parts.query or parts.fragment)
    if is_web and host_and_port(f"{parts.scheme}://{parts.netloc}") is not None:
        return text.rstrip("/")
    raise argparse.ArgumentTypeError(
        f"{text!r} is not an address; give one such as https://www.example.com/translate"
    )


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only; False for unknown names."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def host_and_port(origin: str) -> tuple[str, int] | None:
    """Return the host and the port of an origin; None if it has no port, or has anything else."""
    try:
        parts = urlsplit(origin.lower())
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    whole = f"{parts.scheme}://{parts.netloc}" == origin.lower()
    if not (whole and parts.hostname and port and "@" not in parts.netloc):
        return None
    return parts.hostname, port
