# SPDX-License-Identifier: Apache-2.0
"""Connections of a web server, which are limited, and its Prometheus metrics at their own port.

Processes that share a port share their metrics, too, in files of a folder (prometheus_client's
multiprocess mode): each of them answers for all.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from aiohttp import web
from aiohttp.abc import AbstractAccessLogger
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector

from ct2_triton.logs import ACCESS, SHARED_METRICS
from ct2_triton.web import listen

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Awaitable, Callable

    from ct2_triton.live.hub import Hub
    from ct2_triton.live.updates import Caption

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_OTHER_ROUTE = "other"  # an address that the server does not have
_GONE = 499  # the client went away before the answer, as nginx counts it
_COUNT_AGAIN_S = 1.0


class WebMetrics:
    """The metrics of one web server."""

    def __init__(self, command: str) -> None:
        """Start at 0."""
        self._registry = CollectorRegistry()
        given: dict[str, Any] = {"registry": self._registry}
        self._requests = Counter(
            f"{command}_requests", "Requests answered.", ("route", "status"), **given
        )
        self._seconds = Histogram(
            f"{command}_request_seconds",
            "Time from a request's header to its answer, without connections that stay open.",
            ("route",),
            buckets=_SECONDS,
            **given,
        )
        given["multiprocess_mode"] = "livesum"
        self._open = Gauge(
            f"{command}_requests_in_progress", "Requests under way.", ("route",), **given
        )
        self._connections = Gauge(f"{command}_connections", "Open connections.", **given)
        self.connections_refused = Counter(
            f"{command}_connections_refused",
            "Connections beyond --max-connections, which got 503.",
            registry=self._registry,
        )

    def count_captions(self, hub: Hub) -> None:
        """Count the captions that an event's hub is given."""
        labels = ("language", "kind")
        captions = Counter("ct2_live_captions", "Captions.", labels, registry=self._registry)

        def count(caption: Caption) -> None:
            kind = "tail" if not caption.final else "final" if caption.error is None else "error"
            captions.labels(caption.target, kind).inc()

        hub.on_caption = count

    @web.middleware
    async def count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Count a request: the outermost middleware."""
        resource = request.match_info.route.resource
        route = _OTHER_ROUTE if resource is None else resource.canonical
        status, start = _GONE, time.perf_counter()
        with self._open.labels(route).track_inprogress():
            try:
                response = await handler(request)
                status = response.status
            except web.HTTPException as error:
                status = error.status
                raise
            except Exception:
                status = web.HTTPInternalServerError.status_code
                raise
            else:
                if isinstance(response, web.Response):
                    self._seconds.labels(route).observe(time.perf_counter() - start)
                return response
            finally:
                self._requests.labels(route, status).inc()

    @asynccontextmanager
    async def served(
        self, args: argparse.Namespace, connections: Callable[[], int]
    ) -> AsyncIterator[None]:
        """Serve the metrics on their own port, if one is given, and count connections."""
        if args.metrics_port is None:
            yield
            return
        app = web.Application()
        app.router.add_get("/metrics", self._answer)
        own = web.AppRunner(app, access_log=None)
        await own.setup()
        counting = asyncio.create_task(self._count_connections(connections))
        options = "--metrics-host and --metrics-port"
        try:
            place = args.metrics_host, args.metrics_port
            await listen(own, *place, reuse_port=_is_shared() or None, options=options)
            yield
        finally:
            counting.cancel()
            await own.cleanup()

    async def _count_connections(self, connections: Callable[[], int]) -> None:
        """Count them again and again: another process may be the one that is asked."""
        while True:
            self._connections.set(connections())
            await asyncio.sleep(_COUNT_AGAIN_S)

    async def _answer(self, _: web.Request) -> web.Response:
        registry = self._registry
        if _is_shared():
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return web.Response(
            body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )


def _is_shared() -> bool:
    return SHARED_METRICS in os.environ


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
