# SPDX-License-Identifier: Apache-2.0
"""The connections of a web server, which are limited, and the log of its requests."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, cast

from aiohttp import web
from aiohttp.abc import AbstractAccessLogger

from ct2_triton.logs import ACCESS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ct2_triton.web_metrics import WebMetrics

RETRY_AFTER_S = 1
_BODY = b'{"error": "Slowdown: there are as many connections as may be"}'
_FULL = b"".join(
    [
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json; charset=utf-8\r\n",
        b"Retry-After: %d\r\nConnection: close\r\n" % RETRY_AFTER_S,
        b"Content-Length: %d\r\n\r\n" % len(_BODY),
        _BODY,
    ]
)


class _AccessLog(AbstractAccessLogger):
    """Log each request without its query, which may have a key; its path as it was sent."""

    def log(self, request: web.BaseRequest, response: web.StreamResponse, time: float) -> None:
        fields = {
            "remote": request.remote,
            "method": request.method,
            "path": request.rel_url.raw_path,  # a decoded one may have line breaks
            "status": response.status,
            "bytes": response.body_length,
            "milliseconds": round(1000 * time, 1),
        }
        text = " ".join(str(value) for value in fields.values())
        self.logger.info("%s", text, extra={"fields": fields})

    @property
    def enabled(self) -> bool:
        """Whether anybody wants them."""
        return self.logger.isEnabledFor(logging.INFO)


class BoundedRunner(web.AppRunner):
    """Runs an application with a limited number of connections; further ones get 503 at once."""

    def __init__(
        self,
        app: web.Application,
        most: int,
        metrics: WebMetrics,
        **settings: Any,  # noqa: ANN401
    ) -> None:
        """Prepare it."""
        app.middlewares.insert(0, metrics.count)
        super().__init__(
            app, access_log=logging.getLogger(ACCESS), access_log_class=_AccessLog, **settings
        )
        self._most = most
        self._metrics = metrics

    def connections(self) -> int:
        """Count them."""
        real = super().server
        return 0 if real is None else len(real.connections)

    @property
    def server(self) -> Callable[[], asyncio.Protocol] | None:  # type: ignore[override]
        """What makes the protocol of each connection."""
        real = super().server
        return None if real is None else lambda: self._protocol(real)

    def _protocol(self, server: web.Server) -> asyncio.Protocol:
        return _Door(server, self._most, self._metrics)


class _Door(asyncio.Protocol):
    """Accepts a connection, or answers 503 at once, without waiting for a request.

    The check is made with the connection: many are accepted before the first of them is made.
    """

    def __init__(self, server: web.Server, most: int, metrics: WebMetrics) -> None:
        self._server = server
        self._metrics = metrics
        self._most = most

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)
        if len(self._server.connections) < self._most:
            inside = self._server()
            transport.set_protocol(inside)
            inside.connection_made(transport)
        else:
            self._metrics.connections_refused.inc()
            transport.write(_FULL)
            transport.close()
