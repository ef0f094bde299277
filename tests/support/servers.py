# SPDX-License-Identifier: Apache-2.0
"""Real servers for tests: started on free ports, stopped at the end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ct2_triton.serve import ServerOptions, TritonServer
from support.ports import free_ports
from support.waiting import wait_until

MakeServer = Callable[..., TritonServer]

# Arguments of a server that loads all models and lets clients load and unload.
EXPLICIT = ["--model-control-mode=explicit", "--load-model=*"]

# The run-time library of a sanitizer that the plugin was built with; see CONTRIBUTING.md.
_PRELOAD = os.environ.get("CT2_TRITON_SERVER_PRELOAD")
_PRELOADED = {"LD_PRELOAD": _PRELOAD} if _PRELOAD else {}

_CRASHES = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGFPE, -signal.SIGILL}

# Those whose log is shown with a test that fails.
running: list[TritonServer] = []

# How many this process has started.
started = 0

_stopping: list[threading.Thread] = []


def wait_until_stopped() -> None:
    """Wait for the servers that were asked to end."""
    while _stopping:
        _stopping.pop().join()


def revive() -> list[str]:
    """Start servers again that several tests share and that have crashed; give why they ended."""
    said = []
    for server in running:
        if server.was_started() and server.process.exit_code in _CRASHES:
            said.append(server.failure_text())
            try:
                server.restart(600)
            except Exception as error:  # each test of this server fails by itself
                running.remove(server)
                said.append(f"it does not start again: {error}")
    return said


class ServerStack(ExitStack):
    """Starts servers, and at the end stops them all: tritonserver takes two seconds for its end,
    which no test waits for.
    """

    def start(self, *repositories: Path, timeout_s: float = 600.0, **options: Any) -> TritonServer:
        """Start a server on these repositories; `options` are those of ServerOptions."""
        global started
        started += 1
        environment = {**_PRELOADED, **options.pop("environment", {})}
        options.setdefault("ports", free_ports())
        server = TritonServer(ServerOptions(list(repositories), environment=environment, **options))
        running.append(server)
        self.callback(lambda: server in running and running.remove(server))
        self.callback(_stop_meanwhile, server)
        server.start(timeout_s)
        return server


@contextmanager
def suspended(*servers: TritonServer) -> Iterator[None]:
    """Servers that answer nothing, and go on at the end unless they were killed.

    One thread takes the signal, and until it runs, which a busy machine delays, the others answer.
    So this waits until the kernel has stopped all of them.
    """
    try:
        for server in servers:
            server.process.send_signal(signal.SIGSTOP)
        for server in servers:
            wait_until(lambda pid=server.process.pid: _has_stopped(pid), "SIGSTOP", limit_s=60)
        yield
    finally:
        for server in servers:
            server.process.send_signal(signal.SIGCONT)


def _has_stopped(pid: int) -> bool:
    """Whether a child has stopped since this was last true."""
    return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG) is not None


def _stop_meanwhile(server: TritonServer) -> None:
    thread = threading.Thread(target=server.stop)
    thread.start()
    _stopping.append(thread)
