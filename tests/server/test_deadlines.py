# SPDX-License-Identifier: Apache-2.0
"""Time limits of requests: rows end at the deadline, wherever they are, and others run on."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tritonclient.utils import InferenceServerException

from ct2_triton.serve import TritonServer
from server.helpers import Connection, Pending, json_inputs, post
from server.stream_client import StreamError, Streams
from server.text_client import send_text, translated
from support.endless import ALLOWS_ENDLESS, ENDLESS, ROOMY
from support.metrics import fresh, scrape
from support.prepared import prepare_tiny
from support.servers import ServerStack
from support.waiting import wait_until

pytestmark = pytest.mark.server

LATE = "deadline exceeded: there was no answer within timeout, {} microseconds"
SHORT = 300_000  # microseconds
HOUR = 3_600_000_000
SENT: dict[str, Any] = {"targets": ["deu_Latn"], "source": "eng_Latn"}
GOOD: dict[str, Any] = {**SENT, "beam_size": 1, "max_decoding_length": 6}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    """A model in decode loops, and one with one call at a time."""
    repository = tmp_path_factory.mktemp("repository")
    settings = {name: str(value) for name, value in ALLOWS_ENDLESS.items()}
    for name, more in (
        ("loop", {}),
        ("calls", {"decoding": "calls", "inter_threads": "1"}),
    ):
        prepare_tiny("nllb", repository, name, ROOMY, settings=settings | more, io="stream")
    with ServerStack() as stack:
        yield stack.start(repository)


def _late(pending: Pending) -> str:
    with pytest.raises(InferenceServerException) as raised:
        pending.get_result()
    assert raised.value.status() == "StatusCode.CANCELLED"
    return str(raised.value.message())


def _gate_is_shut(server: TritonServer) -> bool:
    """What was published before may be of an earlier row."""
    return fresh(server, "calls-text")["ct2_decoding_rows"] == 1


def _is_idle(server: TritonServer, model: str) -> bool:
    state = scrape(server, model)
    return state["ct2_decoding_rows"] == state["ct2_waiting_rows"] == 0


def _runs_on(server: TritonServer, connection: Connection, model: str) -> bool:
    """Nothing of the late request is left, and a good one is answered."""
    wait_until(lambda: _is_idle(server, model))
    texts = translated(connection, "a river", model=model, timeout=HOUR, **GOOD)
    return texts == translated(connection, "a river", model=model, **GOOD)


@pytest.mark.parametrize("model", ["loop", "calls"])
def test_running_rows_end_between_two_steps(
    server: TritonServer, connection: Connection, model: str
) -> None:
    text = f"{model}-text"
    late = send_text(connection, "a river", model=text, timeout=SHORT, **SENT, **ENDLESS)
    assert _late(late) == LATE.format(SHORT)
    assert _runs_on(server, connection, text)


def test_a_time_limit_that_is_over_at_once_names_no_rows_that_wait(
    server: TritonServer, connection: Connection
) -> None:
    late = send_text(connection, "a river", model="loop-text", timeout=1, **SENT, **ENDLESS)
    assert _late(late) == LATE.format(1)
    assert _runs_on(server, connection, "loop-text")


def test_rows_of_ids_have_deadlines_too(server: TritonServer, connection: Connection) -> None:
    row, prefix = [[9, 50, 60, 2]], [[9]]
    late = connection.start("loop", row, prefix, timeout=SHORT, **ENDLESS)
    assert _late(late) == LATE.format(SHORT)
    wait_until(lambda: _is_idle(server, "loop"))
    short = {"beam_size": 1, "max_decoding_length": 6}
    wanted = connection.translate("loop", row[0], prefix[0], **short)
    assert connection.translate("loop", row[0], prefix[0], timeout=HOUR, **short) == wanted


def _generate(**more: Any) -> dict[str, Any]:
    languages = {"source_language": "eng_Latn", "target_languages": "deu_Latn"}
    return {"text_input": "a river", **languages, **more}


def _infer(**more: Any) -> dict[str, Any]:
    values = {
        "text_input": ["a river"],
        "source_language": ["eng_Latn"],
        "target_languages": ["deu_Latn"],
    }
    return {"inputs": json_inputs("BYTES", values), "parameters": more}


@pytest.mark.parametrize(("route", "body"), [("generate", _generate), ("infer", _infer)])
def test_over_http(server: TritonServer, connection: Connection, route: str, body: Any) -> None:
    status, sent = post(server, f"loop-text/{route}", body(timeout=SHORT, **ENDLESS))
    assert status in {400, 499}
    assert json.loads(sent)["error"] == LATE.format(SHORT)
    assert _runs_on(server, connection, "loop-text")


def test_a_stream_ends_behind_its_parts(server: TritonServer, connection: Connection) -> None:
    streams = Streams(server.grpc_url)
    opened = streams.open(
        "a river", ["deu_Latn"], "eng_Latn", "loop-stream", timeout=SHORT, **ENDLESS
    )
    with pytest.raises(StreamError, match=LATE.format(SHORT)):
        list(opened)
    streams.close()
    assert _runs_on(server, connection, "loop-text")


@contextmanager
def _nothing_moves(server: TritonServer, connection: Connection) -> Iterator[None]:
    """The only worker of calls-text runs an endless row, which another ends after the block."""
    key = {"model": "calls-text", "supersede_key": "gate"}
    gate = send_text(connection, "a river", **key, **SENT, **ENDLESS)
    wait_until(lambda: _gate_is_shut(server))
    yield
    assert not gate.has_ended()
    assert translated(connection, "a river", **key, **GOOD)
    assert "superseded" in _late(gate)


def test_waiting_rows_are_answered_though_nothing_moves(
    server: TritonServer, connection: Connection
) -> None:
    """They wait behind a call that ends only when a newer request takes its place."""
    with _nothing_moves(server, connection):
        late = [
            send_text(connection, f"river {i}", model="calls-text", timeout=SHORT, **GOOD)
            for i in range(20)
        ]
        assert {_late(pending) for pending in late} == {LATE.format(SHORT)}
        wait_until(lambda: scrape(server, "calls-text")["ct2_waiting_rows"] == 0)
    assert _runs_on(server, connection, "calls-text")


def test_an_equal_row_without_a_deadline_is_answered(
    server: TritonServer, connection: Connection
) -> None:
    """One run serves both; the late one leaves it."""
    with _nothing_moves(server, connection):
        patient = send_text(connection, "two rivers", model="calls-text", **GOOD)
        late = send_text(connection, "two rivers", model="calls-text", timeout=SHORT, **GOOD)
        assert _late(late) == LATE.format(SHORT)
    assert patient.get_result().as_numpy("text_output") is not None
    assert _runs_on(server, connection, "calls-text")


def _time_of_200_rows(connection: Connection) -> int:
    """Has rows answered of which most wait, so that their rate is known; in microseconds."""
    slow = {**SENT, "beam_size": 1, "min_decoding_length": 400, "max_decoding_length": 400}
    began = time.monotonic()
    for pending in [
        send_text(connection, f"river {i}", model="calls-text", **slow) for i in range(200)
    ]:
        pending.get_result()
    return int(1e6 * (time.monotonic() - began))


def test_under_overload_what_cannot_be_met_is_answered_at_once(
    server: TritonServer, connection: Connection
) -> None:
    """The rate is known of rows that were answered while others waited; then nothing moves."""
    taken = _time_of_200_rows(connection)
    with _nothing_moves(server, connection):
        rows = [send_text(connection, f"lake {i}", model="calls-text", **GOOD) for i in range(400)]
        wait_until(lambda: scrape(server, "calls-text")["ct2_waiting_rows"] == 400)
        answers = [
            _late(send_text(connection, "a river", model="calls-text", timeout=limit, **GOOD))
            for limit in (taken // 2, taken // 8, taken // 32)
        ]
    refused = r"deadline exceeded: at least [1-9]\d* rows are before it, which takes about [1-9]"
    assert any(re.search(refused, one) for one in answers)
    for pending in rows:
        pending.get_result()
    assert _runs_on(server, connection, "calls-text")


def test_no_request_is_refused_for_rows_that_it_overtakes(
    server: TritonServer, connection: Connection
) -> None:
    """Rows of one long text wait, which alternate with those of later requests."""
    taken = _time_of_200_rows(connection)
    with _nothing_moves(server, connection):
        text = " ".join(f"Lake {i} is deep." for i in range(400))
        long = send_text(connection, text, model="calls-text", **GOOD)
        wait_until(lambda: scrape(server, "calls-text")["ct2_waiting_rows"] >= 200)
        soon = send_text(connection, "a river", model="calls-text", timeout=taken // 2, **GOOD)
    soon.get_result()
    long.get_result()
    assert _runs_on(server, connection, "calls-text")


@pytest.mark.parametrize("value", [-1, "soon", True, 10**16])
def test_a_timeout_that_is_none_is_refused(
    server: TritonServer, connection: Connection, value: Any
) -> None:
    """By the backend, as a member of /generate; Triton itself reads it elsewhere."""
    status, sent = post(server, "loop-text/generate", _generate(timeout=value, beam_size=1))
    assert status == 400
    assert "timeout" in json.loads(sent)["error"]
    assert _runs_on(server, connection, "loop-text")


def test_no_limit_and_a_far_one(server: TritonServer) -> None:
    short = {"beam_size": 1, "max_decoding_length": 6}
    for timeout in (0, HOUR, 10**15):
        for route, body in (("generate", _generate), ("infer", _infer)):
            assert post(server, f"loop-text/{route}", body(timeout=timeout, **short))[0] == 200
