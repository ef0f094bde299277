# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics of a web server, at their own port.

Processes that share a port share their metrics, too, in files of a folder (prometheus_client's
multiprocess mode): each of them answers for all.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector

from ct2_triton.logs import SHARED_METRICS
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
