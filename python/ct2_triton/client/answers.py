# SPDX-License-Identifier: Apache-2.0
"""Wait for answers without cancelling calls on a server that a cancellation can crash.

Triton before 2.57 may crash when a gRPC call is cancelled, or reaches its deadline, just as its
answer is sent (pull requests 7840 and 8078). On such a server the call continues until the server
ends it at the request's own time limit, and its answer is dropped.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Answer = TypeVar("Answer")

# After the time limit, for the answer that reports it; then gRPC ends the call.
LATE_S = 5.0
_CLOSE_S = 1.0
_SURVIVES = (2, 57)


class Answers:
    """Those of one connection."""

    def __init__(self, ask_server: Callable[[], Awaitable[Any]]) -> None:
        """Ask nothing yet; `ask_server` sends a ServerMetadataRequest and gives the response."""
        self._ask_server = ask_server
        self._question: asyncio.Task[bool] | None = None
        self._dropped: set[asyncio.Future[Any]] = set()

    async def learn(self, timeout_s: float | None) -> None:
        """Ask the server once for its name and version, and wait this long for the answer."""
        if self._question is None:
            self._question = asyncio.create_task(self._survives_cancelling())
        if not self._question.done():
            await asyncio.wait({self._question}, timeout=timeout_s)

    def forget(self) -> None:
        """Ask again next time, because another server may answer after a lost connection."""
        if self._question is not None:
            self._question.cancel()
            self._question = None

    async def of(self, call: Awaitable[Answer], timeout_s: float | None) -> Answer:
        """Wait for the answer of a call.

        Raises:
            asyncio.TimeoutError: It has not come within `timeout_s` seconds.
            grpc.RpcError: The call has failed.
        """
        answer = asyncio.ensure_future(call)
        try:
            done, _ = await asyncio.wait({answer}, timeout=timeout_s)
        except asyncio.CancelledError:
            self._drop(answer)
            raise
        if done:
            return answer.result()
        self._drop(answer)
        raise asyncio.TimeoutError

    def close(self) -> float | None:
        """Stop; return the seconds that running calls need to end, or None if there are none."""
        grace_s = None if self._may_cancel() else _CLOSE_S
        self.forget()
        return grace_s

    def _may_cancel(self) -> bool:
        question = self._question
        if question is None or not question.done() or question.cancelled():
            return False
        return question.result()

    def _drop(self, answer: asyncio.Future[Any]) -> None:
        if self._may_cancel():
            answer.cancel()
            return
        self._dropped.add(answer)
        answer.add_done_callback(self._end)

    def _end(self, answer: asyncio.Future[Any]) -> None:
        self._dropped.discard(answer)
        if not answer.cancelled():
            answer.exception()  # read, so that asyncio does not report it

    async def _survives_cancelling(self) -> bool:
        try:
            server = await self._ask_server()
        except grpc.RpcError as error:
            return error.code() is grpc.StatusCode.UNIMPLEMENTED  # not a Triton server
        numbers = [part for part in server.version.split(".")[:2] if part.isdigit()]
        return tuple(map(int, numbers)) >= _SURVIVES
