# SPDX-License-Identifier: Apache-2.0
"""Queue limits, timeouts and priorities of Triton's batcher, each with its own status.

They act on what waits in Triton's queue: on requests that the backend does not take, because
max_queued_rows wait already (or, with wait_for_batch, because a batch runs).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from ct2_triton.serve import TritonServer
from reliability import fuzz_grpc, observe
from reliability.cancel_storm import id_tensors
from reliability.fuzz_judge import Reply
from reliability.fuzz_request import Request
from server import configs
from server.helpers import Connection, Reference, sentences
from support.repository import write_model

pytestmark = pytest.mark.server

LONG = {"beam_size": 8, "max_decoding_length": 500, "min_decoding_length": 500}
SHORT = {"max_decoding_length": 4}
POLICIES = {
    "full": "default_queue_policy { max_queue_size: 4 }",
    "impatient": "default_queue_policy { timeout_action: REJECT allow_timeout_override: true"
    " default_timeout_microseconds: 60000000 }",
    "ranked": "priority_levels: 2 default_priority_level: 2",
}
# One row a call and one row ahead: what else comes stays with Triton.
ONE_BY_ONE = {"inter_threads": 1, "max_batch_rows": 1, "max_queued_rows": 1}


@pytest.fixture(scope="module")
def policies(
    tmp_path_factory: pytest.TempPathFactory, nllb_engine_model: Path
) -> Iterator[TritonServer]:
    from support.servers import ServerStack

    repository = tmp_path_factory.mktemp("policies")
    for name, policy in POLICIES.items():
        batching = f"max_batch_size: 1\ndynamic_batching {{ {policy} }}\n"
        config = configs.plain(batching=batching, **ONE_BY_ONE)
        write_model(repository, name, nllb_engine_model, config)
    with ServerStack() as stack:
        yield stack.start(repository)


@pytest.fixture(scope="module")
def reference(nllb_engine_model: Path) -> Reference:
    return Reference(nllb_engine_model)


class Crowd:
    """Short requests behind a long one, in the order in which they are answered."""

    def __init__(self, server: TritonServer, model: str, reference: Reference) -> None:
        self._server = server
        self._model = model
        self._rows = sentences(reference, 41)
        self._truths = [reference.translate(row, prefix, **SHORT) for row, prefix in self._rows]
        self._lock = threading.Lock()
        self._channel = fuzz_grpc.open_channel(server.grpc_url)
        self._stub = fuzz_grpc.stub(self._channel)
        self.replies: list[tuple[int, Reply]] = []

    def send(self, parameters: Callable[[int], dict[str, Any]] = lambda _: {}) -> list[Reply]:
        """Sends them all; gives their replies by number. `parameters(i)` are those of number i."""
        calls = [self._start(0, LONG)]
        # The refusal comes from the backend: it has the long request as well by then.
        bad = Request(self._model, id_tensors([-1], [9]), {}, None)
        assert self._stub.ModelInfer.future(fuzz_grpc.to_message(bad, "", typed=False)).code() == (
            grpc.StatusCode.INVALID_ARGUMENT
        )
        calls += [self._start(i, {**SHORT, **parameters(i)}) for i in range(1, len(self._rows))]
        observe.wait_until(lambda: len(self.replies) == len(calls), "all answers")
        self._channel.close()
        replies = dict(self.replies)
        assert replies[0].code == "OK"
        for i, reply in replies.items():
            if i and reply.code == "OK":
                assert reply.outputs["OUTPUT_IDS"].tolist() == [self._truths[i]]
        return [replies[i] for i in range(1, len(calls))]

    def _start(self, number: int, parameters: dict[str, Any]) -> grpc.Future:
        tensors = id_tensors(*self._rows[number])
        request = Request(self._model, tensors, parameters, ["OUTPUT_IDS"])
        message = fuzz_grpc.to_message(request, "", typed=False)
        call = self._stub.ModelInfer.future(message, timeout=120)
        call.add_done_callback(lambda done: self._done(number, done))
        return call

    def _done(self, number: int, call: Any) -> None:
        with self._lock:
            self.replies.append((number, fuzz_grpc.reply_of(call)))


def refused(replies: list[Reply], text: str) -> int:
    """How many were refused, each as UNAVAILABLE and in these words."""
    others = [reply for reply in replies if reply.code != "OK"]
    assert {reply.code for reply in others} <= {"UNAVAILABLE"}
    assert all(text in reply.message for reply in others), others
    return len(others)


@pytest.fixture(autouse=True)
def the_server_answers_afterwards(policies: TritonServer, reference: Reference) -> Iterator[None]:
    yield
    (row, prefix), *_ = sentences(reference, 1)
    connection = Connection(policies.grpc_url)
    expected = reference.translate(row, prefix, **SHORT)
    assert connection.translate("ranked", row, prefix, **SHORT) == expected
    connection.close()


def test_a_full_queue(policies: TritonServer, reference: Reference) -> None:
    replies = Crowd(policies, "full", reference).send()
    assert refused(replies, "Exceeds maximum queue size") > 0
    # Triton 2.51 counts a request that found the queue full nowhere.
    counts = observe.settled(policies, "full")
    assert counts.success == 1 + sum(reply.code == "OK" for reply in replies)
    assert counts.failed == 1  # the bad one


def test_a_timeout_of_the_request(policies: TritonServer, reference: Reference) -> None:
    """It may shorten the queue's own, where the queue's policy allows that."""

    def parameters(i: int) -> dict[str, Any]:
        return {"timeout": 1000} if i % 2 else {}

    replies = Crowd(policies, "impatient", reference).send(parameters)
    assert refused(replies[0::2], "Request timeout expired") > 0
    assert refused(replies[1::2], "") == 0


def test_priorities(policies: TritonServer, reference: Reference) -> None:
    """The last to come, of the higher priority, do not wait for all who came before."""
    crowd = Crowd(policies, "ranked", reference)
    replies = crowd.send(lambda i: {"priority": 1} if i > 35 else {})
    assert all(reply.code == "OK" for reply in replies)
    order = [number for number, _ in crowd.replies]
    assert max(order.index(i) for i in range(36, 41)) < order.index(35)
