# SPDX-License-Identifier: Apache-2.0
"""Tenants, named by a header that the server forwards, or by a request parameter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tritonclient.utils import InferenceServerException

from ct2_triton.serve import TritonServer
from server.helpers import Connection, Pending, json_inputs, post, tensor
from server.text_client import send_text, strings, translated
from support.endless import ALLOWS_ENDLESS, ENDLESS, ROOMY
from support.metrics import fresh, scrape
from support.prepared import prepare_tiny
from support.servers import ServerStack
from support.waiting import wait_until

pytestmark = pytest.mark.server

HEADER = "x-tenant"
PLACES = 8  # in the queue, and as many before it
DEADLINES = "deadlines"
ROOMY_PLACES = 32  # of this model
SENT: dict[str, Any] = {"targets": ["deu_Latn"], "source": "eng_Latn"}
GOOD: dict[str, Any] = {**SENT, "beam_size": 1, "max_decoding_length": 6}
VALUES = {
    "text_input": "a river",
    "source_language": "eng_Latn",
    "target_languages": "deu_Latn",
}
# Rows whose answers are so far apart that they come here in their order.
LASTING: dict[str, Any] = {**GOOD, "min_decoding_length": 400, "max_decoding_length": 400}
FULL = (
    "the queue is full, and of the requests that wait to enter it this tenant has the most; "
    "send it again later"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    """Models that run one row at a time; one of them tells tenants apart."""
    repository = tmp_path_factory.mktemp("repository")
    settings = {name: str(value) for name, value in ALLOWS_ENDLESS.items()} | {
        "inter_threads": "1",
        "max_batch_rows": "1",
        "max_queued_rows": str(PLACES),
    }
    for name, more in (
        ("tenants", {"tenant_header": HEADER, "decoding": "calls"}),
        ("loop", {"tenant_header": HEADER}),
        ("alike", {"decoding": "calls"}),
        (
            DEADLINES,
            {
                "tenant_header": HEADER,
                "decoding": "calls",
                "max_queued_rows": str(ROOMY_PLACES),
            },
        ),
    ):
        prepare_tiny("nllb", repository, name, ROOMY, settings=settings | more, io="text")
    with ServerStack() as stack:
        yield stack.start(repository)


class _Busy:
    """The only worker runs an endless row of one tenant, until it is cancelled."""

    def __init__(self, server: TritonServer, connection: Connection, model: str) -> None:
        self._connection = connection
        self._server = server
        self._model = model

    def __enter__(self) -> None:
        options = {"model": self._model, HEADER: "gate", **SENT, **ENDLESS}
        self._endless = send_text(self._connection, "a river", **options)
        # What was published before may be of an earlier row.
        wait_until(lambda: fresh(self._server, self._model)["ct2_decoding_rows"] == 1)

    def __exit__(self, *_: object) -> None:
        self._endless.cancel()


def _flood(
    connection: Connection, tenant: str, count: int, model: str = "tenants"
) -> list[Pending]:
    return [
        send_text(connection, f"{tenant} {i}", model=model, **LASTING, **{HEADER: tenant})
        for i in range(count)
    ]


def _refused(pending: list[Pending]) -> int:
    return sum(one.has_ended() for one in pending)


def _outcomes(pending: list[Pending]) -> tuple[list[Pending], list[str]]:
    """Those that were answered in the order of their answers, and what the others were told."""
    answered, refusals = [], []
    for one in pending:
        try:
            one.get_result()
            answered.append(one)
        except InferenceServerException as error:
            refusals.append(f"{error.status()}: {error.message()}")
    return sorted(answered, key=lambda one: one.answered_s), refusals


@pytest.mark.parametrize("model", ["tenants", "loop"])
def test_a_flood_of_one_tenant_costs_no_other_one_its_place(
    server: TritonServer, connection: Connection, model: str
) -> None:
    """It fills the queue and what waits before it; the newest of its requests are refused."""
    with _Busy(server, connection, model):
        flood = _flood(connection, "a", 100, model)
        wait_until(lambda: scrape(server, model)["ct2_waiting_rows"] == PLACES)
        wait_until(lambda: _refused(flood) == 100 - (2 * PLACES - 1))
        others = _flood(connection, "b", 3, model) + _flood(connection, "c", 1, model)
        wait_until(lambda: _refused(flood) == 100 - (2 * PLACES - 1) + len(others))
    answered, refusals = _outcomes(others)
    assert (len(answered), refusals) == (4, [])
    answered, refusals = _outcomes(flood)
    assert len(answered) == 2 * PLACES - 1 - len(others)
    assert set(refusals) == {f"StatusCode.UNAVAILABLE: {FULL}"}
    # They took turns: one of a place's occupants ran first, and the flood's last ones ran last.
    assert max(one.answered_s for one in others) < answered[-2].answered_s
    assert translated(connection, "a 0", model=model, **GOOD, **{HEADER: "a"})


def test_equal_shares_of_two_floods(server: TritonServer, connection: Connection) -> None:
    with _Busy(server, connection, "tenants"):
        first = _flood(connection, "a", 100)
        wait_until(lambda: _refused(first) == 100 - (2 * PLACES - 1))
        second = _flood(connection, "b", 100)
        wait_until(lambda: _refused(first + second) == 200 - (2 * PLACES - 1))
    answered = [len(_outcomes(flood)[0]) for flood in (first, second)]
    # The queue itself was full of the first one's rows; the places before it are shared.
    assert sum(answered) == 2 * PLACES - 1
    assert answered[1] in {3, 4}
    assert translated(connection, "a 0", model="tenants", **GOOD)


def test_without_tenants_requests_wait_in_tritons_queue(
    server: TritonServer, connection: Connection
) -> None:
    with _Busy(server, connection, "alike"):
        flood = _flood(connection, "a", 60, "alike")
        wait_until(lambda: scrape(server, "alike")["ct2_waiting_rows"] == PLACES)
    assert len(_outcomes(flood)[0]) == 60


def _post(server: TritonServer, headers: dict[str, str], **parameters: Any) -> tuple[int, str]:
    body = {
        "inputs": json_inputs("BYTES", {name: [value] for name, value in VALUES.items()}),
        "parameters": {"beam_size": 1, "max_decoding_length": 6, **parameters},
    }
    return post(server, "tenants/infer", body, headers.items())


def test_headers_name_the_tenant(server: TritonServer, connection: Connection) -> None:
    """While the flood of `a` waits, a request with its header is refused, and another is not."""
    inputs = [tensor(name, strings([[value]])) for name, value in VALUES.items()]
    with _Busy(server, connection, "tenants"):
        flood = _flood(connection, "a", 100)
        wait_until(lambda: _refused(flood) == 100 - (2 * PLACES - 1))
        status, said = _post(server, {"X-Tenant": "a"})
        assert (status, json.loads(said)["error"]) == (503, FULL)
        with pytest.raises(InferenceServerException) as raised:
            connection.raw.infer("tenants", inputs, headers={HEADER: "a"})
        assert raised.value.message() == FULL
        other = send_text(connection, "b", model="tenants", **GOOD, **{"X-TENANT": "b"})
        wait_until(lambda: _refused(flood) == 100 - (2 * PLACES - 1) + 1)
    assert other.get_result() is not None
    _outcomes(flood)


@pytest.mark.parametrize("name", ["", "a b", "\u00e4\u65e5", "a" * 256, "..", '"', "0", 7, True])
def test_any_short_name_is_a_tenants(connection: Connection, name: Any) -> None:
    wanted = translated(connection, "a river", model="tenants", **GOOD)
    assert translated(connection, "a river", model="tenants", **GOOD, **{HEADER: name}) == wanted


@pytest.mark.parametrize(
    ("headers", "parameters", "said"),
    [
        ({}, {HEADER: "a" * 257}, "x-tenant: a tenant's name of 257 bytes; give one of up to 256"),
        ({"X-Tenant": "a"}, {HEADER: "b"}, 'x-tenant names two tenants, "'),
    ],
)
def test_a_name_that_is_none_is_refused(
    server: TritonServer, headers: dict[str, str], parameters: dict[str, Any], said: str
) -> None:
    status, answered = _post(server, headers, **parameters)
    assert status == 400
    assert json.loads(answered)["error"].startswith(said)
    assert _post(server, {"X-Tenant": "a"})[0] == 200


def test_a_deadline_counts_the_rows_that_run_before_it(
    server: TritonServer, connection: Connection
) -> None:
    """Two: not the 32 of a flood that it goes past. A row may take six times as long as others."""
    rows_s = 0.0
    for _ in range(8):
        ends = [one.answered_s for one in _outcomes(_flood(connection, "slow", 9, DEADLINES))[0]]
        rows_s += ends[-1] - ends[0]
    with _Busy(server, connection, DEADLINES):
        flood = _flood(connection, "a", 100, DEADLINES)
        wait_until(lambda: _refused(flood) == 100 - (2 * ROOMY_PLACES - 1))
        twelve_rows_us = int(12 * rows_s / (8 * 8) * 1e6)
        late = send_text(
            connection, "late", model=DEADLINES, timeout=twelve_rows_us, **GOOD, **{HEADER: "b"}
        )
        with pytest.raises(InferenceServerException, match="no answer within timeout"):
            late.get_result()
    _outcomes(flood)
