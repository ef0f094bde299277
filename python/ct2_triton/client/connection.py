# SPDX-License-Identifier: Apache-2.0
"""One gRPC channel to a server: connect, send requests, and map its refusals to our errors.

Built on the stubs of tritonclient, not on its client class, which hides the channel. Only the state
of the channel tells "the server could not be reached" from "the server refused": both are
UNAVAILABLE and differ only in their wording.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

from ct2_triton import errors
from ct2_triton.client.answers import LATE_S, Answers
from ct2_triton.client.calls import join_headers, read_headers
from ct2_triton.client.messages import error_of_message
from ct2_triton.client.retry import closed_error
from ct2_triton.client.tasks import in_time, is_cancelled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence

    from google.protobuf.message import Message

    from ct2_triton.client.calls import Headers
    from ct2_triton.client.retry import Deadline, RetryPolicy

_LOG = logging.getLogger(__name__)
_MAX_MESSAGE_BYTES = 2**31 - 1
_READY = grpc.ChannelConnectivity.READY
QUESTION_S = 1.0  # time for an answer to ServerLive, after all other waiting
_STATE_LAG_S = 0.25
_RESTRICTED = "This protocol is restricted"  # of a missing secret header
# Messages of gRPC when the connection between a proxy and its server broke.
_BROKE_BEHIND = re.compile(r"Stream removed|RST_STREAM|http2 header with status: 502")

_ERROR_OF_STATUS: dict[grpc.StatusCode, type[errors.ClientError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: errors.RequestRejectedError,
    grpc.StatusCode.OUT_OF_RANGE: errors.RequestRejectedError,
    grpc.StatusCode.NOT_FOUND: errors.ModelNotFoundError,
    grpc.StatusCode.UNAVAILABLE: errors.ServerBusyError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.ServerBusyError,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.DeadlineExceededError,
    grpc.StatusCode.UNAUTHENTICATED: errors.AccessDeniedError,
    grpc.StatusCode.PERMISSION_DENIED: errors.AccessDeniedError,
}


def _is_of_the_connection(error: grpc.RpcError) -> bool:
    """Return whether a request failed in transit or without an answer, and was not refused."""
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        return not (error.details() or "").startswith(_RESTRICTED)
    return error.code() in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNKNOWN)


# The open ones of this process, and those of the process that it was forked from. gRPC's threads
# are not forked: channels beside an inherited one crash or never answer. It is kept, never freed.
_open: weakref.WeakSet[Connection] = weakref.WeakSet()
_inherited: list[Connection] = []
if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=lambda: _inherited.extend(_open))


class Connection:
    """A channel that is opened once and shared by any number of tasks."""

    def __init__(
        self,
        url: str,
        retry: RetryPolicy,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        metadata: Mapping[str, str] | None = None,
        options: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Open the channel; nothing is sent yet. Must be called in the event loop that uses it.

        Args:
            url: Host and port of the server's gRPC endpoint, such as `localhost:8001`.
            retry: What to do while the server cannot be reached.
            credentials: For TLS; None: no encryption.
            metadata: Headers for every request, such as an authorization.
            options: Further options of the gRPC channel.

        Raises:
            InvalidCallError: A process was forked while it had connections, and this is the child.
        """
        if _inherited:
            raise errors.InvalidCallError(
                f"process {os.getpid()} was forked while its parent had a client in use, and gRPC "
                "cannot connect in it; close clients before the fork, or start the process anew "
                '(multiprocessing: "spawn")'
            )
        settings = [
            ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
            ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
            *retry.channel_options(),
            *channel_options(),
            *options,
        ]
        _LOG.debug("connects to %s%s", url, "" if credentials is None else " with TLS")
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(url, options=settings)
        else:
            self._channel = grpc.aio.secure_channel(url, credentials, options=settings)
        self._stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)
        self._url = url
        self._retry = retry
        self._headers = read_headers(metadata)
        self._closed = False
        self._calls = 0
        self._watch: asyncio.Task[None] | None = None
        self._losses = 0
        self._settled = 0  # number of losses before the last answered request
        self._has_answered = asyncio.Event()  # the newest of those questions
        self._break: asyncio.Task[None] | None = None
        self._pulse = Pulse(self._ask_for_life, QUESTION_AFTER_S)
        self._question: grpc.aio.UnaryUnaryCall | None = None
        self._answers = Answers(self._ask_which_server)
        _open.add(self)

    async def close(self) -> None:
        """Close the channel; calls in progress end with InvalidCallError.

        On a server that a cancellation can crash, they first have a second to end by themselves.
        """
        self._closed = True
        self._pulse.stop()
        for task in (self._watch, self._break):
            if task is not None:
                task.cancel()
        await self._channel.close(self._answers.close())
        _open.discard(self)

    async def infer(
        self, request: service_pb2.ModelInferRequest, deadline: Deadline, headers: Headers = ()
    ) -> service_pb2.ModelInferResponse:
        """Send one ModelInferRequest, once, and return the ModelInferResponse.

        Cancelling the awaiting task, and the deadline, cancel the call, except on a server that
        this can crash, which ends the request at its own time limit, if it has one. A ClientError
        has gRPC's error as its cause.
        """
        with self._call():
            await self._reach(deadline)
            await self._answers.learn(deadline.remaining_s())
            left_s = deadline.remaining_s()
            call = self._stub.ModelInfer(
                request,
                timeout=None if left_s is None else left_s + LATE_S,
                metadata=join_headers(self._headers, headers),
            )
            try:
                with self._pulse.during_call():
                    return await self._answers.of(call, left_s)
            except grpc.RpcError as error:
                raise await self._wrapped(error, deadline) from error
            except asyncio.TimeoutError as error:
                raise deadline.expired_error() from error

    async def stream(
        self, request: service_pb2.ModelInferRequest, deadline: Deadline, headers: Headers = ()
    ) -> AsyncGenerator[service_pb2.ModelStreamInferResponse, None]:
        """Send one ModelInferRequest of a decoupled model and yield each response to it.

        The deadline is for reaching the server. The stream itself has no limit, because ending it
        would cancel it, which can crash Triton 2.51. An error of the model is a response.
        """
        with self._call():
            await self._reach(deadline)
            try:
                with self._pulse.during_call():
                    async for response in self._stub.ModelStreamInfer(
                        [request], metadata=join_headers(self._headers, headers)
                    ):
                        yield response
            except grpc.RpcError as error:
                raise await self._wrapped(error, deadline) from error

    async def model_metadata(
        self, model: str, version: str, deadline: Deadline
    ) -> service_pb2.ModelMetadataResponse:
        """Ask for the tensors of a model and return the ModelMetadataResponse."""
        request = service_pb2.ModelMetadataRequest(name=model, version=version)
        return await self._ask(self._stub.ModelMetadata, request, deadline)

    async def ready_models(self, deadline: Deadline) -> dict[str, list[str]]:
        """List the models that are ready, with the versions of each.

        Raises:
            ClientError: One of its subclasses, with gRPC's error as the cause.
        """
        request = service_pb2.RepositoryIndexRequest(ready=True)
        index = await self._ask(self._stub.RepositoryIndex, request, deadline)
        models: dict[str, list[str]] = {}
        for entry in index.models:
            models.setdefault(entry.name, []).append(entry.version)
        return models

    async def _ask(
        self, method: grpc.aio.UnaryUnaryMultiCallable, request: Message, deadline: Deadline
    ) -> Message:
        with self._call():
            await self._reach(deadline)
            try:
                with self._pulse.during_call():
                    left_s = deadline.remaining_s()
                    return await method(request, timeout=left_s, metadata=self._headers or None)
            except grpc.RpcError as error:
                raise await self._wrapped(error, deadline) from error

    @contextmanager
    def _call(self) -> Iterator[None]:
        """Count a call, and report the end of the client, when gRPC cancels or refuses the call."""
        self._calls += 1
        try:
            yield
        except grpc.aio.UsageError:  # it was sent as the channel closed
            if self._closed:
                raise closed_error() from None
            raise
        except asyncio.CancelledError:
            if self._closed and not is_cancelled():
                raise closed_error() from None
            raise
        finally:
            self._calls -= 1

    async def _reach(self, deadline: Deadline) -> None:
        """Wait until the channel is connected, as long as the policy and the deadline allow."""
        if self._closed:
            raise closed_error()
        if self.is_ready():
            return
        left_s, budget_s = deadline.remaining_s(), self._retry.budget_s
        patience_s = budget_s if left_s is None else min(budget_s, left_s)
        if patience_s > 0:
            done, _ = await asyncio.wait({self.watch()}, timeout=patience_s)
            if self._closed:
                raise closed_error()
            if done:
                return
        await self.prove_reachable(deadline)

    @property
    def _is_in_doubt(self) -> bool:
        """Whether a call was lost and the server has not answered since."""
        return self._settled < self._losses

    def is_ready(self) -> bool:
        """Return whether the channel is connected; if not, start to connect."""
        if self._is_in_doubt:
            self.watch()
            return False
        return self._channel.get_state(try_to_connect=True) is _READY

    def watch(self) -> asyncio.Task[None]:
        """Return the task, shared by all callers, that ends when the channel is connected."""
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._stand())
        return self._watch

    async def _stand(self) -> None:
        """Wait until the channel is connected and, after a loss, the server has answered over it.

        gRPC reports a channel as ready while a connection that it has given up still writes,
        although each call over it fails.
        """
        pauses = self._retry.pauses()
        await self._channel.channel_ready()
        while self._is_in_doubt:
            if await self._silence(CONNECT_TIMEOUT_S) is not None:
                with suppress(asyncio.TimeoutError):  # another task may have received an answer
                    await in_time(self._has_answered.wait(), next(pauses))
                await self._channel.channel_ready()

    async def _silence(self, timeout_s: float) -> grpc.RpcError | None:
        """Send ServerLive; return why it was not answered, or None. A refusal is an answer."""
        losses = self._losses
        try:
            await self._is_alive(timeout_s)
        except grpc.RpcError as error:
            if _is_of_the_connection(error):
                return error
        self._settled = max(self._settled, losses)
        if not self._is_in_doubt:
            self._has_answered.set()
        return None

    @property
    def calls(self) -> int:
        """Number of calls in progress or waiting."""
        return self._calls

    async def prove_reachable(self, deadline: Deadline) -> None:
        """Make gRPC report why the server is unreachable; return if it is reachable again."""
        if self._closed:
            raise closed_error()
        timeout_s = deadline.remaining_s()
        timeout_s = QUESTION_S if timeout_s is None else max(0.001, min(QUESTION_S, timeout_s))
        with self._call():
            error = await self._silence(timeout_s)
        if error is not None:
            reason = error.details() or error.code().name
            raise errors.ServerUnreachableError(
                f"no connection to {self._url}: {reason}; check the URL (the gRPC port, usually "
                "8001), whether it has TLS (grpcs://), and that the server runs"
            ) from error

    def _is_alive(self, timeout_s: float) -> grpc.aio.UnaryUnaryCall:
        return self._stub.ServerLive(
            service_pb2.ServerLiveRequest(), timeout=timeout_s, metadata=self._headers or None
        )

    def _ask_which_server(self) -> grpc.aio.UnaryUnaryCall:
        return self._stub.ServerMetadata(
            service_pb2.ServerMetadataRequest(),
            timeout=CONNECT_TIMEOUT_S,
            metadata=self._headers or None,
        )

    def _ask_for_life(self) -> None:
        """Send a request whose answer is not read, unless the previous one is still unanswered."""
        if self._question is None or self._question.done():
            self._question = self._is_alive(PING_AFTER_S + PING_TIMEOUT_S)

    async def _is_broken(self) -> bool:
        """Say, after an UNAVAILABLE, whether the connection broke or the server sent it.

        gRPC ends the calls of a broken connection shortly before the channel changes its state.
        """
        if self._channel.get_state() is not _READY:
            return True
        if self._break is None or self._break.done():
            self._break = asyncio.create_task(self._channel.wait_for_state_change(_READY))
        done, _ = await asyncio.wait({self._break}, timeout=_STATE_LAG_S)
        return bool(done) or self._channel.get_state() is not _READY

    async def _was_lost(self, status: grpc.StatusCode, details: str) -> bool:
        """Return whether a request was lost with this connection or with that of a proxy."""
        if status is grpc.StatusCode.UNAVAILABLE:
            return _BROKE_BEHIND.search(details) is not None or await self._is_broken()
        return status is grpc.StatusCode.UNKNOWN and _BROKE_BEHIND.search(details) is not None

    async def _wrapped(self, error: grpc.aio.AioRpcError, deadline: Deadline) -> errors.ClientError:
        """Map an error of gRPC to one of ours."""
        status, details = error.code(), error.details()
        if status is grpc.StatusCode.DEADLINE_EXCEEDED and deadline.timeout_s is not None:
            return deadline.expired_error()
        if (details or "").startswith(_RESTRICTED):  # Triton says UNAVAILABLE
            return errors.AccessDeniedError(f"{details}; give it as a header of every request")
        if await self._was_lost(status, details or ""):
            self._losses += 1
            self._has_answered.clear()
            self._answers.forget()
            return errors.ConnectionLostError(
                f"the connection to {self._url} broke while a request was under way: {details}; "
                "it was not sent again, because the request itself may be the cause"
            )
        kind = _ERROR_OF_STATUS.get(status, errors.ServerFailedError)
        return error_of_message(
            details or f"the server answered {status.name} without a text", otherwise=kind
        )


# ServerLive is sent after at most twice this silence, so before the ping.
QUESTION_AFTER_S = 2.0
# Their sum is the time after which a call to a silent server fails.
PING_AFTER_S = 5.0
PING_TIMEOUT_S = 5.0
CONNECT_TIMEOUT_S = 5.0


def channel_options() -> list[tuple[str, int]]:
    """Return the options of a gRPC channel that disconnects from a silent server."""
    return [
        ("grpc.keepalive_time_ms", round(1000 * PING_AFTER_S)),
        ("grpc.keepalive_timeout_ms", round(1000 * PING_TIMEOUT_S)),
        ("grpc.http2.ping_timeout_ms", round(1000 * PING_TIMEOUT_S)),
        ("grpc.min_reconnect_backoff_ms", round(1000 * CONNECT_TIMEOUT_S)),  # of each attempt
    ]


class Pulse:
    """Send ServerLive when calls are in progress and the server has been silent for a while.

    A peer can fall silent without ending its connection, because it lost power or a router dropped
    the connection. gRPC detects this with pings. But by default, a server ends the connection of a
    client that pings it often while the server sends nothing (`too_many_pings`), as during a long
    call. gRPC's client follows this rule: after two pings it sends none for a minute.

    Therefore the client sends a small request (`ServerLive`) while nothing is received. The answer
    is data from the server, so gRPC postpones its next ping and the server's count restarts. A
    healthy server gets no ping. A server that does not answer gets one, and is disconnected if it
    does not answer that either.

    Nothing is sent while answers arrive, and no task runs while there are no calls.
    """

    def __init__(self, ask: Callable[[], object], interval_s: float) -> None:
        """Prepare; `ask` starts a request after this much silence, without waiting."""
        self._ask = ask
        self._interval_s = interval_s
        self._under_way = 0
        self._heard = False
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def during_call(self) -> Iterator[None]:
        """Watch while the block runs; if it ends without an error, the server is alive."""
        self._under_way += 1
        if self._timer is None:
            self._start()
        try:
            yield
            self._heard = True
        finally:
            self._under_way -= 1

    def stop(self) -> None:
        """Stop asking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self) -> None:
        self._heard = False
        self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._beat)

    def _beat(self) -> None:
        self._timer = None
        if self._under_way:
            if not self._heard:
                self._ask()
            self._start()
