# SPDX-License-Identifier: Apache-2.0
"""The short form of the overload; the long one is `python tests/reliability/chaos.py overload`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ct2_triton.serve import TritonServer
from reliability import observe
from reliability.overload import (
    CLIENTS_FOR_ALL,
    MOST_WAITING,
    UNLIMITED,
    Load,
    LoadReport,
    distinct_rows,
    limited_config,
    write_overload_repository,
)
from server.helpers import Connection, Ids, Reference
from server.moments import in_backend
from support.endless import ALLOWS_ENDLESS, ENDLESS, endless_model
from support.repository import write_model
from support.servers import ServerStack

pytestmark = pytest.mark.server

HELD = "held"
SECONDS = 1.5
MOST_MIB = 150.0

Rows = list[tuple[Ids, Ids, Ids]]


@pytest.fixture(scope="module", params=["loop", "calls"])
def overloaded(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    nllb_engine_model: Path,
) -> Iterator[TritonServer]:
    repository = tmp_path_factory.mktemp("overloaded")
    write_overload_repository(repository, nllb_engine_model, request.param)
    held = limited_config(
        inter_threads=1, max_batch_rows=1, decoding=request.param, **ALLOWS_ENDLESS
    )
    write_model(repository, HELD, endless_model(), held)
    with ServerStack() as stack:
        yield stack.start(repository)


@pytest.fixture(scope="module")
def rows(nllb_engine_model: Path) -> Rows:
    return distinct_rows(Reference(nllb_engine_model), 450)


def all_is_well(server: TritonServer, model: str, report: LoadReport) -> None:
    """Each request had one right answer or a refusal; the server counted them all, and is idle."""
    assert not report.wrong, report.wrong[:3]
    assert sum(report.answered.values()) == report.offered
    counts = observe.settled(server, model)
    assert counts.success == report.answered["OK"]
    assert counts.pending == 0
    assert report.peak_mib < report.start_mib + MOST_MIB


def test_ten_times_the_clients(overloaded: TritonServer, rows: Rows) -> None:
    """A closed loop: each client waits for its answer, so nothing needs to be refused."""
    report = Load(overloaded, UNLIMITED, rows).closed_loop(10 * CLIENTS_FOR_ALL, SECONDS)
    assert report.most_in_flight == 10 * CLIENTS_FOR_ALL
    assert set(report.answered) == {"OK"}
    all_is_well(overloaded, UNLIMITED, report)


def test_more_than_may_wait_is_refused(overloaded: TritonServer, rows: Rows) -> None:
    """The worker is held meanwhile. What does not fit into the queues is refused, at once."""
    connection = Connection(overloaded.grpc_url)
    row, prefix, _ = rows[0]
    endless = in_backend(connection, HELD, row, prefix, "endless", **ENDLESS)
    # Of Triton's queue, a batch is with the thread that hands it over, and another in the backend.
    most = 4 * MOST_WAITING
    report = Load(overloaded, HELD, rows).burst(2 * most, most, then=endless.cancel)
    assert report.answered["UNAVAILABLE"] >= most
    assert report.answered["OK"] >= MOST_WAITING
    all_is_well(overloaded, HELD, report)
    connection.close()
