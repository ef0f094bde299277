# SPDX-License-Identifier: Apache-2.0
"""A collector of traces: takes OTLP over HTTP as JSON and keeps the spans."""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from support.waiting import wait_until

if TYPE_CHECKING:
    from typing_extensions import Self


class Collector:
    """Listens on a free port while its block runs.

    Attributes:
        spans: What arrived, in order.
        services: The names of the services that sent it.
    """

    def __init__(self) -> None:
        """Opens the port."""
        self.spans: list[dict[str, Any]] = []
        self.services: set[str] = set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # connections stay open

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(json.loads(body))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Self:
        """Starts to listen."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._server.server_port}"

    def spans_of(self, send: Callable[[str], object]) -> list[dict[str, Any]]:
        """Sends requests of new traces until all spans of one are there, and gives these.

        The exporter of tritonserver 2.51 loses some: of 40 traces, 2 to 5 never came.
        """
        for _ in range(20):
            trace_id = secrets.token_hex(16)
            send(trace_id)
            if self._arrived(trace_id):
                return self._of(trace_id)
        raise AssertionError("of 20 traces none arrived")

    def _of(self, trace_id: str) -> list[dict[str, Any]]:
        return [span for span in list(self.spans) if span["traceId"] == trace_id]

    def _arrived(self, trace_id: str) -> bool:
        """Waits for the last span of a trace, Triton's own of the request."""

        def arrived() -> bool:
            return "InferRequest" in [span["name"] for span in self._of(trace_id)]

        with contextlib.suppress(AssertionError):
            wait_until(arrived, "a trace", limit_s=3)
        return arrived()

    def take(self, message: dict[str, Any]) -> None:
        """Keeps what one export holds."""
        for resource in message["resourceSpans"]:
            for attribute in resource["resource"]["attributes"]:
                if attribute["key"] == "service.name":
                    self.services.add(attribute["value"]["stringValue"])
            for scope in resource["scopeSpans"]:
                self.spans += scope["spans"]
