# SPDX-License-Identifier: Apache-2.0
"""Fixtures of all tests: tiny models, and real servers that are stopped and whose logs are shown."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.repository import write_model
from support.tiny import tiny_engine_model

from ct2_triton.serve import ServerOptions, TritonServer

_SHOWN_LOG_LINES = 60
_running: list[TritonServer] = []

MakeServer = Callable[..., TritonServer]


class ServerStack(ExitStack):
    """Starts servers on free ports and stops them all at the end."""

    def start(
        self, *repositories: Path, timeout_s: float = 120.0, **options: object
    ) -> TritonServer:
        """Start a server on these repositories; `options` are those of ServerOptions."""
        server = TritonServer(ServerOptions(list(repositories), **options))
        _running.append(server)
        self.callback(_running.remove, server)
        self.callback(server.stop)
        server.start(timeout_s)
        return server


@pytest.fixture
def make_server() -> Iterator[MakeServer]:
    """A function that starts a fresh server for one test: for crashes, configs and shutdown.

    `make_server(repository, server_arguments=[...], environment={...}, ...)`.
    """
    with ServerStack() as stack:
        yield stack.start


@pytest.fixture(scope="session")
def nllb_engine_model() -> Path:
    """A tiny NLLB model in CTranslate2's format, float32. Read it, do not change it."""
    return tiny_engine_model("nllb")


@pytest.fixture(scope="session")
def server_repository(tmp_path_factory: pytest.TempPathFactory, nllb_engine_model: Path) -> Path:
    """The repository of `server`. Tests may add models to it, under names of their own."""
    repository = tmp_path_factory.mktemp("repository")
    write_model(repository, "nllb", nllb_engine_model)
    return repository


@pytest.fixture(scope="session")
def server(server_repository: Path) -> Iterator[TritonServer]:
    """One server for the whole session, with the model `nllb`.

    Model control is explicit: a test that adds a model loads it, and unloads it at its end.
    """
    with ServerStack() as stack:
        yield stack.start(
            server_repository,
            server_arguments=["--model-control-mode=explicit", "--load-model=*"],
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Show the end of the log of each running server with a test that failed."""
    report = yield
    if report.failed:
        for server in _running:
            if server.is_alive() or report.when != "setup":
                report.sections.append((f"log of tritonserver {server.process.pid}", _end(server)))
    return report


def _end(server: TritonServer) -> str:
    lines = io.StringIO(server.log_text()).readlines()
    return "".join(lines[-_SHOWN_LOG_LINES:])
