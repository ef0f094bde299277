# SPDX-License-Identifier: Apache-2.0
"""What the web servers of this package share: pages of their own, a port, an end by a signal."""

from __future__ import annotations

import asyncio
import signal
from importlib.resources import files
from typing import TYPE_CHECKING

from aiohttp import web

from ct2_triton.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:"
)


def page(package: str, name: str, frame_ancestors: str) -> Callable[..., Awaitable[web.Response]]:
    """Make a handler that gives a file of a package's pages; they load nothing from elsewhere.

    Args:
        package: The package, whose folder `pages` holds the file.
        name: The file's name.
        frame_ancestors: Who may show the page in a frame, as in a Content-Security-Policy.

    Returns:
        The handler.
    """
    headers = {
        "Content-Security-Policy": f"{_POLICY}; frame-ancestors {frame_ancestors}",
        "X-Content-Type-Options": "nosniff",
    }
    content_type = _TYPES[name.rpartition(".")[2]]
    text = (files(package) / "pages" / name).read_text(encoding="utf-8")

    async def give(_: web.Request) -> web.Response:
        return web.Response(text=text, content_type=content_type, headers=headers)

    return give


async def listen(
    runner: web.AppRunner, host: str, port: int, *, reuse_port: bool | None = None
) -> int:
    """Listen at an address.

    Args:
        runner: The application's runner, set up.
        host: The address.
        port: The port; 0 for any.
        reuse_port: Whether other processes may listen there, too.

    Returns:
        The port.

    Raises:
        ClientError: It cannot be had.
    """
    try:
        await web.TCPSite(runner, host, port, reuse_port=reuse_port).start()
    except OSError as error:
        raise ClientError(f"cannot listen: {error.strerror}") from error
    return int(runner.addresses[0][1])


async def stopped() -> None:
    """Wait for an interrupt or SIGTERM."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, event.set)
    await event.wait()
