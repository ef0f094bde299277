# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the package's web servers: pages, ports, and the end by a signal."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from importlib.resources import files
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from ct2_triton.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
_POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'; img-src data:"
# What bytes that are no HTTP, or not what their header says, raise: no fault of this program.
BODY_ERRORS = (HttpProcessingError, web.RequestPayloadError)


def page(
    package: str, name: str, frame_ancestors: str, *, own_style: bool = False
) -> Callable[..., Awaitable[web.Response]]:
    """Make a handler that gives a file of a package's `pages`; they load nothing from elsewhere.

    `own_style` allows a style sheet of the program that shows the page, as OBS adds one.
    """
    styles = "'self' 'unsafe-inline'" if own_style else "'self'"
    headers = {
        "Content-Security-Policy": f"{_POLICY}; style-src {styles}; frame-ancestors "
        + frame_ancestors,
        "X-Content-Type-Options": "nosniff",
    }
    content_type = _TYPES[name.rpartition(".")[2]]
    text = (files(package) / "pages" / name).read_text(encoding="utf-8")

    async def give(_: web.Request) -> web.Response:
        return web.Response(text=text, content_type=content_type, headers=headers)

    return give


async def listen(
    runner: web.AppRunner,
    host: str,
    port: int,
    *,
    reuse_port: bool | None = None,
    options: str = "--host and --port",
) -> int:
    """Listen at an address and give the port, which may be 0 for any.

    The options are those that choose another address, for the message. With `reuse_port` other
    processes may listen there, too.
    """
    try:
        await web.TCPSite(runner, host, port, reuse_port=reuse_port).start()
    except OSError as error:
        raise cannot_listen(host, port, error, options) from error
    return int(runner.addresses[0][1])


def cannot_listen(
    host: str, port: int, error: OSError, options: str = "--host and --port"
) -> ClientError:
    """Return an error that names the address, the reason, and how to choose another."""
    reason = error.strerror  # of a port it holds the address once more
    if error.errno is not None and not isinstance(error, socket.gaierror):
        reason = os.strerror(error.errno)
    return ClientError(
        f"cannot listen at {host}, port {port}: {reason}; choose others with {options}"
    )


def server_log() -> logging.Logger:
    """Return the log of aiohttp's server, without tracebacks for invalid requests."""
    log = logging.getLogger(__name__)
    log.addFilter(_is_own_fault)
    return log


def _is_own_fault(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, BODY_ERRORS)


async def stopped() -> None:
    """Wait for an interrupt or SIGTERM."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, event.set)
    await event.wait()
