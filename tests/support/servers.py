# SPDX-License-Identifier: Apache-2.0
"""Real servers for tests: started on free ports, stopped at the end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ct2_triton.serve import ServerOptions, TritonServer

MakeServer = Callable[..., TritonServer]

# Those whose log is shown with a test that fails.
running: list[TritonServer] = []


class ServerStack(ExitStack):
    """Starts servers and stops them all at the end."""

    def start(self, *repositories: Path, timeout_s: float = 120.0, **options: Any) -> TritonServer:
        """Start a server on these repositories; `options` are those of ServerOptions."""
        server = TritonServer(ServerOptions(list(repositories), **options))
        running.append(server)
        self.callback(running.remove, server)
        self.callback(server.stop)
        server.start(timeout_s)
        return server
