# SPDX-License-Identifier: Apache-2.0
"""Queue limits, timeouts and priorities of Triton's batcher, each with its own status.

They act on what waits in Triton's queue: on requests that the backend does not take, because
max_queued_rows wait already.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.serve import TritonServer
from reliability import fuzz_grpc, observe
from reliability.cancel_storm import id_tensors
from reliability.fuzz_judge import Reply
from reliability.fuzz_request import Request
from server import configs
from server.helpers import Connection, Reference, sentences
from server.moments import in_backend
from support.endless import ALLOWS_ENDLESS, ENDLESS, endless_model
from support.metrics import scrape
from support.repository import write_model
from support.waiting import wait_until

pytestmark = pytest.mark.server

SHORT = {"beam_size": 1, "max_decoding_length": 4}
POLICIES = {
    "full": "default_queue_policy { max_queue_size: 4 }",
    "impatient": "default_queue_policy { timeout_action: REJECT allow_timeout_override: true"
    " default_timeout_microseconds: 60000000 }",
    "ranked": "priority_levels: 2 default_priority_level: 2",
}
# One row a call and one row ahead: what else comes stays with Triton.
ONE_BY_ONE = {"inter_threads": 1, "max_batch_rows": 1, "max_queued_rows": 1, **ALLOWS_ENDLESS}
SENT = 40
# Of them, one waits in the backend, and one is with the thread that hands it over.
WITH_THE_BACKEND = 2


@pytest.fixture(scope="module")
def policies(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[TritonServer]:
    from support.servers import ServerStack

    repository = tmp_path_factory.mktemp("policies")
    for name, policy in POLICIES.items():
        batching = f"max_batch_size: 1\ndynamic_batching {{ {policy} }}\n"
        config = configs.plain(batching=batching, **ONE_BY_ONE)
        write_model(repository, name, endless_model(), config)
    with ServerStack() as stack:
        yield stack.start(repository)


@pytest.fixture(scope="module")
def reference(nllb_engine_model: Path) -> Reference:
    return Reference(nllb_engine_model)


class Crowd:
    """Short requests behind an endless one, in the order in which they are answered."""

    def __init__(self, server: TritonServer, model: str, reference: Reference) -> None:
        self._server = server
        self._model = model
        self._rows = sentences(reference, SENT)
        self._truths = [reference.translate(row, prefix, **SHORT) for row, prefix in self._rows]
        self._lock = threading.Lock()
        self._channel = fuzz_grpc.open_channel(server.grpc_url)
        self._stub = fuzz_grpc.stub(self._channel)
        self.replies: list[tuple[int, Reply]] = []

    def send(
        self, waiting: int, parameters: Callable[[int], dict[str, Any]] = lambda _: {}
    ) -> list[Reply]:
        """Sends them all; gives their replies by number. `parameters(i)` are those of number i.

        The endless one is ended once so many wait in Triton's queue, or have been refused.
        """
        connection = Connection(self._server.grpc_url)
        endless = in_backend(connection, self._model, *self._rows[0], "endless", **ENDLESS)
        wait_until(
            lambda: scrape(self._server, self._model)["ct2_decoding_rows"] == 1, "the endless row"
        )
        for i in range(SENT):
            self._start(i, {**SHORT, **parameters(i)})
        wait_until(
            lambda: (
                observe.counts(self._server, self._model).pending + len(self.replies) >= waiting
            ),
            f"{waiting} requests in the queue",
        )
        endless.cancel()
        wait_until(lambda: len(self.replies) == SENT, "all answers")
        self._channel.close()
        connection.close()
        replies = dict(self.replies)
        for i, reply in replies.items():
            if reply.code == "OK":
                assert reply.outputs["OUTPUT_IDS"].tolist() == [self._truths[i]]
        return [replies[i] for i in range(SENT)]

    def _start(self, number: int, parameters: dict[str, Any]) -> None:
        tensors = id_tensors(*self._rows[number])
        request = Request(self._model, tensors, parameters, ["OUTPUT_IDS"])
        message = fuzz_grpc.to_message(request, "", typed=False)
        call = self._stub.ModelInfer.future(message, timeout=600)
        call.add_done_callback(lambda done: self._done(number, done))

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
    room = 4 + WITH_THE_BACKEND
    replies = Crowd(policies, "full", reference).send(SENT - WITH_THE_BACKEND)
    assert refused(replies, "Exceeds maximum queue size") >= SENT - room
    # Triton 2.51 counts a request that found the queue full nowhere.
    counts = observe.settled(policies, "full")
    assert counts.success == sum(reply.code == "OK" for reply in replies)
    assert counts.failed == 2  # the endless one, and what made sure that it was there


def test_a_timeout_of_the_request(policies: TritonServer, reference: Reference) -> None:
    """It may shorten the queue's own, where the queue's policy allows that."""

    def parameters(i: int) -> dict[str, Any]:
        return {"timeout": 1000} if i % 2 else {}

    replies = Crowd(policies, "impatient", reference).send(SENT - WITH_THE_BACKEND, parameters)
    with_the_backend = [r for r in replies if r.message.startswith("deadline exceeded")]
    assert len(with_the_backend) <= WITH_THE_BACKEND
    assert {reply.code for reply in with_the_backend} <= {"CANCELLED"}
    in_the_queue = [reply for reply in replies[1::2] if reply not in with_the_backend]
    assert refused(in_the_queue, "Request timeout expired") > 0
    assert refused(replies[0::2], "") == 0


def test_priorities(policies: TritonServer, reference: Reference) -> None:
    """The last to come, of the higher priority, do not wait for all who came before."""
    crowd = Crowd(policies, "ranked", reference)
    replies = crowd.send(SENT - WITH_THE_BACKEND, lambda i: {"priority": 1} if i > 35 else {})
    assert all(reply.code == "OK" for reply in replies)
    order = [number for number, _ in crowd.replies]
    # Two of the lower priority may be with the backend, and answers may overtake one another.
    assert max(order.index(i) for i in range(36, 40)) < SENT // 2
