# SPDX-License-Identifier: Apache-2.0
"""Fixtures of all tests: tiny models, and real servers, stopped at the end, with their logs."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from ct2_triton.serve import TritonServer
from support import durations, forked, processor, servers, shares, workers
from support.repository import write_model
from support.servers import EXPLICIT, MakeServer, ServerStack
from support.tiers import LONGEST_S, is_long
from support.tiny import tiny_engine_model

_SHOWN_LOG_LINES = 60
_servers_of_workers: list[int] = []

# Before torch or CTranslate2 load their OpenMP: threads that spin while they wait make a machine
# that others use as well a hundred times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

processor.use_exact_int8()

# They need the backend, which is built together with the core.
collect_ignore = [] if processor.missing_core() is None else list(processor.FOLDERS)

# A shell that runs the tests in its background makes them, and all they start, ignore interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples at each run, whatever the machine does meanwhile. HYPOTHESIS_PROFILE=default
# tries others.
settings.register_profile(
    "fixed",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_collection_finish() -> None:
    """Conftest files have set their variables, and no test has begun."""
    forked.use_environment()


@pytest.fixture(autouse=True)
def _same_environment() -> Iterator[None]:
    """Takes back the variables that a command of the project sets when a test calls it."""
    before = dict(os.environ)
    yield
    before.pop("PYTEST_CURRENT_TEST", None)  # pytest's own
    for name in os.environ.keys() - before.keys() - {"PYTEST_CURRENT_TEST"}:
        del os.environ[name]
    os.environ.update(before)


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
            server_arguments=EXPLICIT,
        )


@pytest.fixture(scope="session", autouse=True)
def loop_proofs() -> Iterator[None]:
    """Most tests that prepare a model prepare the demo: its loops are proved once."""
    from support.prepared import loops_proved_once

    with loops_proved_once():
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options: a share of the cases, and the kernels that must be among those tested."""
    parser.addoption(
        "--share", type=int, default=1, metavar="N",
        help="of each test function run one case in N, and at least one",
    )  # fmt: skip
    parser.addoption(
        "--require-kernels", default="", metavar="NAMES",
        help="comma-separated: end with an error on a processor that does not run these kernels",
    )  # fmt: skip

    parser.addoption(
        "--deadline", type=float, default=float("inf"), metavar="SECONDS",
        help="skip the tests that have not begun by then, in seconds since 1970",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a processor that does not run what was asked for."""
    processor.require(config.getoption("--require-kernels").split(","))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the kernels that the tests covered, and write how long the tests of a folder took."""
    names = ", ".join(processor.kernels()) or "none, since the core is not built"
    terminalreporter.write_line(f"kernels tested: {names}")
    terminalreporter.write_line(f"servers started: {sum(_servers_of_workers) + servers.started}")
    durations.write(terminalreporter.stats)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Wait for servers that end; a worker process of pytest-xdist reports how many it started."""
    servers.wait_until_stopped()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["servers"] = servers.started


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the servers of a worker process."""
    _servers_of_workers.append(getattr(node, "workeroutput", {}).get("servers", 0))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    """Skip the files that need the compiled core where it is not built, as on arm64."""
    report = yield
    processor.skip_what_needs_the_core(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Keep the garbage collector from going through thousands of tests, now and in each of them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what `make test` leaves to `make test-long`, and put groups of many minutes first."""
    for item in items:
        if is_long(item.nodeid):
            item.add_marker("long")
            item.add_marker(pytest.mark.timeout(LONGEST_S))
    items.sort(key=lambda item: workers.order(item.nodeid))
    shares.deselect(config, items)
    processor.skip_without_core(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Most tests wait for servers: a process more than there are cores, and memory for each."""
    return min(len(os.sched_getaffinity(0)), 7) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests that share what is dear to make stay together."""
    return workers.scheduler(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin no test after the deadline."""
    if time.time() > item.config.getoption("--deadline"):
        pytest.skip("the time of this run is over")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """A server that crashes fails the test that ran, and not those after it."""
    yield
    if crashed := servers.revive():
        pytest.fail("\n".join(["a server has crashed:", *crashed]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Show the end of the log of each server with a test that failed.

    Python 3.11 may refuse to parse a source while other threads use its parser (SystemError).
    """
    try:
        report = yield
    except SystemError:
        report = pytest.TestReport.from_item_and_call(item, call)
    if report.failed:
        for server in servers.running:
            if server.was_started():
                lines = server.log_text().splitlines(keepends=True)
                title = f"log of tritonserver {server.process.pid}"
                report.sections.append((title, "".join(lines[-_SHOWN_LOG_LINES:])))
    return report
