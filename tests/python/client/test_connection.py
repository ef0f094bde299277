# SPDX-License-Identifier: Apache-2.0
"""Reaching a server, and what its refusals become; against real sockets."""

from __future__ import annotations

import asyncio
import gc
import itertools
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from ct2_triton import errors
from ct2_triton.client.connection import Connection
from ct2_triton.client.retry import Deadline, RetryPolicy
from support.fault_server import (
    FaultServer,
    Wire,
    abort,
    alive,
    echo,
    hang,
    request,
    serving,
)
from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

AT_ONCE = RetryPolicy(budget_s=0)
PATIENT = RetryPolicy(budget_s=60, initial_backoff_s=0.05, max_backoff_s=0.1)


def late() -> Deadline:
    """A deadline that nothing here reaches, counted from now."""
    return Deadline(60)


async def answered(connection: Connection) -> None:
    """Sends a request; on a busy machine a question may take longer than its second."""
    deadline = Deadline(30)
    while True:
        try:
            await connection.infer(request(), deadline)
        except errors.ServerUnreachableError:
            if deadline.remaining_s() == 0:
                raise
        else:
            return


@asynccontextmanager
async def connected(url: str, retry: RetryPolicy = PATIENT) -> AsyncIterator[Connection]:
    connection = Connection(url, retry)
    try:
        yield connection
    finally:
        await connection.close()


async def test_an_answer_comes_back() -> None:
    async with serving(FaultServer()) as url, connected(url) as connection:
        response = await connection.infer(request(), late())
    assert response.raw_output_contents == [b"\1\0\0\0"]


async def test_refused_connection_is_unreachable_with_the_cause() -> None:
    url = f"127.0.0.1:{free_port()}"
    async with connected(url, AT_ONCE) as connection:
        with pytest.raises(errors.ServerUnreachableError, match=url) as caught:
            await connection.infer(request(), late())
    assert isinstance(caught.value.__cause__, grpc.RpcError)
    assert "refused" in str(caught.value)


async def test_unknown_host_is_unreachable() -> None:
    async with connected("nowhere.invalid:8001", AT_ONCE) as connection:
        with pytest.raises(errors.ServerUnreachableError, match=r"nowhere\.invalid"):
            await connection.infer(request(), late())


async def test_a_server_that_comes_up_late_gets_the_request_once() -> None:
    server, port = FaultServer(), free_port()
    async with connected(f"127.0.0.1:{port}") as connection:
        call = asyncio.create_task(connection.infer(request(), late()))
        await asyncio.sleep(0.3)  # several attempts are refused
        assert not call.done()
        async with serving(server, port):
            await call
    assert server.calls == 1


async def test_the_budget_ends_before_the_deadline() -> None:
    retry = RetryPolicy(budget_s=0.2, initial_backoff_s=0.05, max_backoff_s=0.05)
    async with connected(f"127.0.0.1:{free_port()}", retry) as connection:
        with pytest.raises(errors.ServerUnreachableError):
            await connection.infer(request(), Deadline(None))


async def test_the_deadline_ends_before_the_budget() -> None:
    async with connected(f"127.0.0.1:{free_port()}") as connection:
        with pytest.raises(errors.ServerUnreachableError):
            await connection.infer(request(), Deadline(0.2))


async def test_many_waiting_calls_share_one_series_of_attempts() -> None:
    wire = Wire(None)
    retry = RetryPolicy(budget_s=2, initial_backoff_s=0.2, max_backoff_s=0.2)
    async with wire.open() as url, connected(url, retry) as connection:
        calls = [connection.infer(request(), late()) for _ in range(100)]
        results = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(result) for result in results} == {errors.ServerUnreachableError}
    assert 1 < wire.accepted < 20


@pytest.mark.parametrize("text", ["Exceeds maximum queue size", ""])
async def test_a_full_queue_is_not_asked_again(text: str) -> None:
    server = FaultServer(abort(grpc.StatusCode.UNAVAILABLE, text))
    async with serving(server) as url, connected(url) as connection:
        with pytest.raises(errors.ServerBusyError) as caught:
            await connection.infer(request(), late())
    assert (text or "without a text") in str(caught.value)
    assert server.calls == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, errors.RequestRejectedError),
        (grpc.StatusCode.NOT_FOUND, errors.ModelNotFoundError),
        (grpc.StatusCode.INTERNAL, errors.ServerFailedError),
        (grpc.StatusCode.UNKNOWN, errors.ServerFailedError),
        (grpc.StatusCode.CANCELLED, errors.ServerFailedError),
    ],
)
async def test_what_the_server_says_is_kept(
    status: grpc.StatusCode, kind: type[errors.ClientError]
) -> None:
    server = FaultServer(abort(status, "the server's own words"))
    async with serving(server) as url, connected(url) as connection:
        with pytest.raises(kind, match="the server's own words") as caught:
            await connection.infer(request(), late())
    assert isinstance(caught.value.__cause__, grpc.RpcError)
    assert server.calls == 1


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (grpc.StatusCode.NOT_FOUND, "'m' is not found", errors.ModelNotFoundError),
        (grpc.StatusCode.NOT_FOUND, "'m' version 7 is not found", errors.ModelNotFoundError),
        (grpc.StatusCode.NOT_FOUND, "'m' has no available versions", errors.ServerBusyError),
        (grpc.StatusCode.UNAVAILABLE, "'m' is not at ready state", errors.ServerBusyError),
    ],
)
async def test_a_model_that_is_not_ready_is_told_from_one_that_is_not_there(
    status: grpc.StatusCode, text: str, kind: type[errors.ClientError]
) -> None:
    server = FaultServer(abort(status, f"Request for unknown model: {text}"))
    async with serving(server) as url, connected(url) as connection:
        with pytest.raises(errors.ClientError, match=text) as caught:
            await connection.infer(request(), late())
    assert type(caught.value) is kind
    assert ("the server is ending" in str(caught.value)) is (kind is errors.ServerBusyError)


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("INPUT_IDS, row 0: it has 9 ids", "the sentence: it has 9 ids"),
        ("TARGET_PREFIX, row 0: it is empty", "the prefix: it is empty"),
        ("draft, row 0, value 1: it is", "the draft: it is"),
        ("text_input, row 0, the sentence at byte 7: no", "the text, the sentence at byte 7: no"),
        ("it needs a target language in target_languages; it has de", "it needs a target language; "
         "it has de"),
        ("the word INPUT_IDS, row 0: in a text", "the word INPUT_IDS, row 0: in a text"),
    ],
)  # fmt: skip
async def test_what_the_caller_gave_is_named_and_not_its_tensor(said: str, read: str) -> None:
    server = FaultServer(abort(grpc.StatusCode.INVALID_ARGUMENT, said))
    async with serving(server) as url, connected(url) as connection:
        with pytest.raises(errors.RequestRejectedError) as caught:
            await connection.infer(request(), late())
    assert str(caught.value) == read


async def test_a_timeout_is_sent_once_and_reaches_the_server() -> None:
    server = FaultServer(hang)
    async with serving(server) as url, connected(url) as connection:
        await connection.prove_reachable(late())  # no part of the time goes into connecting
        with pytest.raises(errors.DeadlineExceededError, match="1 s"):
            await connection.infer(request(), Deadline(1))
        await asyncio.wait_for(server.cancelled.wait(), 600)
    assert server.calls == 1


async def test_cancelling_the_task_reaches_the_server() -> None:
    server = FaultServer(hang)
    async with serving(server) as url, connected(url) as connection:
        call = asyncio.create_task(connection.infer(request(), late()))
        await asyncio.wait_for(server.started.wait(), 600)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(server.cancelled.wait(), 600)


async def test_a_broken_connection_is_not_repeated_but_the_next_call_reconnects() -> None:
    server = FaultServer(hang)
    async with serving(server) as url:
        wire = Wire(url)
        async with wire.open() as relayed, connected(relayed) as connection:
            call = asyncio.create_task(connection.infer(request(), late()))
            await asyncio.wait_for(server.started.wait(), 600)
            wire.cut()
            with pytest.raises(errors.ConnectionLostError, match="not sent again"):
                await call
            assert server.calls == 1
            server.behaviour = FaultServer().behaviour
            await connection.infer(request(), late())
    assert wire.accepted == 2


async def test_a_broken_connection_is_no_busy_server_for_any_of_its_calls() -> None:
    """The first of them end before the state of gRPC's channel says that it is gone."""
    calls, all_here = 100, asyncio.Event()

    async def gather(server: FaultServer, wanted: Any, context: Any) -> Any:
        if server.calls % calls == 0:
            all_here.set()
        return await hang(server, wanted, context)

    async with serving(FaultServer(gather)) as url:
        for _ in range(5):
            all_here.clear()
            wire = Wire(url)
            async with wire.open() as relayed, connected(relayed) as connection:
                waiting = [
                    asyncio.create_task(connection.infer(request(), late())) for _ in range(calls)
                ]
                await asyncio.wait_for(all_here.wait(), 600)
                wire.cut()
                results = await asyncio.gather(*waiting, return_exceptions=True)
            assert {type(result) for result in results} == {errors.ConnectionLostError}


async def test_after_a_loss_nothing_is_sent_before_the_server_has_answered() -> None:
    """Such texts come for a while from a connection that gRPC has given up and calls ready."""
    lost = abort(grpc.StatusCode.UNAVAILABLE, "Stream removed (Delayed close)")
    questions = 0

    async def mended_later(server: FaultServer, wanted: Any, context: Any) -> Any:
        nonlocal questions
        questions += 1
        if questions < 4:
            return await lost(server, wanted, context)
        server.behaviour = echo
        return await alive(server, wanted, context)

    server = FaultServer(lost)
    server.life = mended_later
    async with serving(server) as url, connected(url) as connection:
        with pytest.raises(errors.ConnectionLostError, match="Delayed close"):
            await connection.infer(request(), late())
        await connection.infer(request(), late())
    assert (server.calls, questions) == (2, 4)


REFUSALS = [
    (grpc.StatusCode.UNAVAILABLE, "This protocol is restricted"),
    (grpc.StatusCode.UNIMPLEMENTED, ""),
]


@pytest.mark.parametrize("retry", [AT_ONCE, PATIENT])
@pytest.mark.parametrize("refusal", REFUSALS)
async def test_a_refused_question_ends_the_doubt(
    refusal: tuple[grpc.StatusCode, str], retry: RetryPolicy
) -> None:
    """Where questions are refused and requests are not, the server is there all the same."""
    server = FaultServer(abort(grpc.StatusCode.UNAVAILABLE, "Stream removed"))
    server.life = abort(*refusal)
    async with serving(server) as url, connected(url, retry) as connection:
        await connection.watch()
        with pytest.raises(errors.ConnectionLostError):
            await connection.infer(request(), late())
        server.behaviour = echo
        await answered(connection)
    assert server.calls == 2


async def test_questions_after_a_loss_keep_the_pauses_of_the_policy() -> None:
    """A proxy in front of a server that is away would get them from all clients for long."""
    questions = 0

    async def count(server: FaultServer, wanted: Any, context: Any) -> Any:
        nonlocal questions
        questions += 1
        return await server.behaviour(server, wanted, context)

    server = FaultServer(abort(grpc.StatusCode.UNAVAILABLE, "Stream removed"))
    server.life = count
    retry = RetryPolicy(budget_s=1, initial_backoff_s=3600, max_backoff_s=3600)
    async with serving(server) as url, connected(url, retry) as connection:
        await connection.watch()
        with pytest.raises(errors.ConnectionLostError):
            await connection.infer(request(), late())
        with pytest.raises(errors.ServerUnreachableError):
            await connection.infer(request(), late())
        assert questions <= 2  # in the time of the budget, and at its end
        server.behaviour, server.life = echo, alive
        await answered(connection)  # by the question at the end of the time


async def test_an_answer_to_another_question_ends_the_pause() -> None:
    asked, lost = asyncio.Event(), abort(grpc.StatusCode.UNAVAILABLE, "Stream removed")

    async def away(server: FaultServer, wanted: Any, context: Any) -> Any:
        asked.set()
        return await lost(server, wanted, context)

    server = FaultServer(lost)
    server.life = away
    retry = RetryPolicy(budget_s=60, initial_backoff_s=3600, max_backoff_s=3600)
    async with serving(server) as url, connected(url, retry) as connection:
        with pytest.raises(errors.ConnectionLostError):
            await connection.infer(request(), late())
        call = asyncio.create_task(connection.infer(request(), late()))
        await asyncio.wait_for(asked.wait(), 600)
        server.behaviour, server.life = echo, alive
        await connection.prove_reachable(late())
        await call
    assert server.calls == 2


async def test_the_question_whether_the_server_lives_has_the_headers_of_a_call() -> None:
    """A proxy that asks for a token answers it, too."""
    asked = asyncio.Queue[dict[str, Any]]()

    async def heard(server: FaultServer, wanted: Any, context: Any) -> Any:
        asked.put_nowait(dict(context.invocation_metadata()))
        return await alive(server, wanted, context)

    server = FaultServer()
    server.life = heard
    async with serving(server) as url:
        connection = Connection(url, PATIENT, metadata={"authorization": "Bearer a"})
        await connection.prove_reachable(late())
        assert (await asked.get())["authorization"] == "Bearer a"
        await connection.infer(request(), late())
        await connection.close()


async def test_an_answer_to_a_question_before_a_loss_does_not_end_the_doubt() -> None:
    answers, lose = asyncio.Queue[asyncio.Event](), asyncio.Event()
    server = FaultServer(abort(grpc.StatusCode.UNAVAILABLE, "Stream removed"))
    lost = server.behaviour

    async def lost_later(server: FaultServer, wanted: Any, context: Any) -> Any:
        server.started.set()
        await lose.wait()
        return await lost(server, wanted, context)

    async def alive_later(server: FaultServer, wanted: Any, context: Any) -> Any:
        may_answer = asyncio.Event()
        answers.put_nowait(may_answer)
        await may_answer.wait()
        return await alive(server, wanted, context)

    server.life = alive_later
    async with serving(server) as url, connected(url) as connection:
        server.behaviour = lost_later
        second = asyncio.create_task(connection.infer(request(), late()))
        await server.started.wait()
        server.behaviour = lost
        with pytest.raises(errors.ConnectionLostError):
            await connection.infer(request(), late())
        server.behaviour = echo
        third = asyncio.create_task(connection.infer(request(), late()))
        first_answer = await answers.get()
        lose.set()
        with pytest.raises(errors.ConnectionLostError):
            await second
        first_answer.set()
        (await asyncio.wait_for(answers.get(), 600)).set()
        await third


@pytest.mark.parametrize("is_lost", [False, True])
async def test_a_call_that_waits_for_the_server_ends_with_its_client(*, is_lost: bool) -> None:
    """Also the question that it asks at the end of its time; and nothing is left behind."""
    reports: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report))
    server = FaultServer(abort(grpc.StatusCode.UNAVAILABLE, "Stream removed"))
    server.life = hang
    async with serving(server) as url:
        connection = Connection(url if is_lost else f"127.0.0.1:{free_port()}", PATIENT)
        if is_lost:
            with pytest.raises(errors.ConnectionLostError):
                await connection.infer(request(), late())
        call = asyncio.create_task(connection.infer(request(), late()))
        await (server.started.wait() if is_lost else asyncio.sleep(0.05))
        await connection.close()
        with pytest.raises(errors.InvalidCallError, match="closed"):
            await call
        with pytest.raises(errors.InvalidCallError, match="closed"):
            await connection.infer(request(), late())
    del connection, call
    gc.collect()
    await asyncio.sleep(0)
    assert reports == []


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a task does not tell that it is cancelled")
async def test_a_cancelled_call_stays_cancelled_when_its_client_ends() -> None:
    server = FaultServer(hang)
    async with serving(server) as url, connected(url) as connection:
        call = asyncio.create_task(connection.infer(request(), late()))
        await asyncio.wait_for(server.started.wait(), 600)
        call.cancel()
        await connection.close()
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_one_connection_serves_all_calls() -> None:
    server = FaultServer()
    async with serving(server) as url:
        wire = Wire(url)
        async with wire.open() as relayed, connected(relayed) as connection:
            await asyncio.gather(*(connection.infer(request(), late()) for _ in range(50)))
    assert (server.calls, wire.accepted) == (50, 1)


async def test_metadata_goes_with_every_request() -> None:
    server = FaultServer()
    async with serving(server) as url:
        connection = Connection(url, PATIENT, metadata={"Authorization": "Bearer x"})
        await connection.infer(request(), late())
        await connection.close()
    assert ("authorization", "Bearer x") in server.metadata


@pytest.mark.parametrize("timeout_s", [0, -2, float("nan")])
def test_a_timeout_must_be_positive(timeout_s: float) -> None:
    with pytest.raises(errors.InvalidCallError, match="above 0"):
        Deadline(timeout_s)


@pytest.mark.parametrize("timeout_s", [float("inf"), 1e300, None])
async def test_a_timeout_without_end_is_none(timeout_s: float | None) -> None:
    async with serving(FaultServer()) as url, connected(url) as connection:
        await connection.infer(request(), Deadline(timeout_s))
    assert Deadline(timeout_s).remaining_s() is None


@pytest.mark.parametrize(
    "values",
    [
        {"budget_s": -1},
        {"budget_s": float("nan")},
        {"outage_s": -1},
        {"initial_backoff_s": 0},
        {"initial_backoff_s": 3},
        {"initial_backoff_s": float("nan")},
        {"max_backoff_s": float("inf")},
    ],
)
def test_a_policy_checks_its_values(values: dict[str, float]) -> None:
    with pytest.raises(errors.InvalidCallError, match=next(iter(values))):
        RetryPolicy(**values)


def test_the_pauses_of_a_policy_grow_and_are_drawn() -> None:
    policy = RetryPolicy(initial_backoff_s=0.1, max_backoff_s=2)
    series = [list(itertools.islice(policy.pauses(), 12)) for _ in range(100)]
    for number, drawn in enumerate(zip(*series, strict=True)):
        middle = min(0.1 * 1.6**number, 2)
        assert all(0.8 * middle <= pause <= min(1.2 * middle, 2) for pause in drawn)
        assert len(set(drawn)) > 10


async def test_a_budget_may_be_without_end() -> None:
    policy = RetryPolicy(budget_s=float("inf"))
    async with serving(FaultServer()) as url, connected(url, policy) as connection:
        response = await connection.infer(request(), late())
    assert response.raw_output_contents == [b"\1\0\0\0"]
