# SPDX-License-Identifier: Apache-2.0
"""Queries of a starting server over HTTP, without a client library."""

from __future__ import annotations

import http.client
import json
import socket
from dataclasses import dataclass
from typing import Any

_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class ModelState:
    """One model version in the server's index.

    Attributes:
        name: The model.
        version: Its version; empty if none was tried.
        state: READY, UNAVAILABLE, LOADING, ...; empty if never loaded.
        reason: Why it is not ready.
    """

    name: str
    version: str
    state: str
    reason: str


@dataclass(frozen=True)
class HttpProbe:
    """Queries of one server.

    Attributes:
        host: Address to connect to.
        port: The server's HTTP port.
    """

    host: str
    port: int

    def answers(self) -> bool:
        """Return whether a process listens on the port."""
        try:
            with socket.create_connection((self.host, self.port), timeout=_TIMEOUT_S):
                return True
        except OSError:
            return False

    def server_id(self) -> str | None:
        """Return the server's name from --id; None while nothing answers."""
        answer = self._ask("GET", "/v2")
        return None if answer is None else str(answer.get("name"))

    def server_version(self) -> str:
        """Return the version of tritonserver, such as 2.51.0; empty while nothing answers."""
        answer = self._ask("GET", "/v2")
        return "" if answer is None else str(answer.get("version"))

    def is_ready(self) -> bool:
        """Return whether the server and, by default, all its models are ready."""
        return self._ask("GET", "/v2/health/ready") is not None

    def model_states(self) -> list[ModelState]:
        """Return the index of models, an entry per version; empty while nothing answers."""
        entries = self._ask("POST", "/v2/repository/index")
        return [
            ModelState(*(str(entry.get(key, "")) for key in ("name", "version", "state", "reason")))
            for entry in entries or []
        ]

    def _ask(self, method: str, path: str) -> Any:  # noqa: ANN401 - whatever the JSON holds
        connection = http.client.HTTPConnection(self.host, self.port, timeout=_TIMEOUT_S)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            body = response.read()
            if response.status != http.client.OK:
                return None
            return json.loads(body) if body else {}
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()
