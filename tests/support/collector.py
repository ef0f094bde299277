# SPDX-License-Identifier: Apache-2.0
"""A collector of traces: takes OTLP over HTTP as JSON and keeps the spans."""

from __future__ import annotations

import json
import threading
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
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(json.loads(body))
                self.send_response(200)
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

    def trace(self, trace_id: str) -> list[dict[str, Any]]:
        """Waits for the last span of a trace, Triton's own of the request, and gives all."""

        def spans() -> list[dict[str, Any]]:
            return [span for span in list(self.spans) if span["traceId"] == trace_id]

        wait_until(lambda: "InferRequest" in [span["name"] for span in spans()])
        return spans()

    def take(self, message: dict[str, Any]) -> None:
        """Keeps what one export holds."""
        for resource in message["resourceSpans"]:
            for attribute in resource["resource"]["attributes"]:
                if attribute["key"] == "service.name":
                    self.services.add(attribute["value"]["stringValue"])
            for scope in resource["scopeSpans"]:
                self.spans += scope["spans"]
