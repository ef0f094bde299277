# SPDX-License-Identifier: Apache-2.0
"""Sending again what a server could not take, where the caller's policy says so."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import TYPE_CHECKING, TypeVar

from ct2_triton.errors import (
    ClientError,
    ConnectionLostError,
    ServerBusyError,
    ServerUnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ct2_triton.client.connection import Deadline
    from ct2_triton.client.retry import RetryPolicy

Result = TypeVar("Result")
_LOG = logging.getLogger(__name__)
_MOST_LOST = 3


class Outage:
    """The state in which a server takes nothing, as all calls of a client in one loop see it.

    A request under which a connection broke may be the reason. From then on it is sent only while
    no other such request is under way, so that the guilty one is found and the others are answered.
    """

    def __init__(self, policy: RetryPolicy) -> None:
        """Start without an outage.

        Args:
            policy: How long to go on.
        """
        self._policy = policy
        self._since: float | None = None
        self._suspects = asyncio.Lock()

    async def outlast(
        self,
        send: Callable[[Deadline], Awaitable[Result]],
        start_clock: Callable[[], Deadline],
    ) -> Result:
        """Send a request until the server has taken it or the policy says that it is enough.

        Args:
            send: Sends the request once.
            start_clock: Gives the deadline of each attempt.

        Returns:
            What `send` returns.

        Raises:
            ClientError: What the last attempt raised.
        """
        lost = 0
        while True:
            try:
                result = await self._attempt(send, start_clock, is_suspect=lost > 0)
            except ConnectionLostError as error:
                lost += 1
                if lost == _MOST_LOST:
                    raise ConnectionLostError(
                        f"{lost} connections broke while this request was under way, the last two "
                        f"with no other suspect; it may be the reason: {error}"
                    ) from error
                self._check(error, start_clock())
            except (ServerBusyError, ServerUnreachableError) as error:
                self._check(error, start_clock())
            else:
                self._end()
                return result
            pause_s = self._policy.max_backoff_s
            await asyncio.sleep(random.uniform(0.5 * pause_s, pause_s))  # noqa: S311

    async def _attempt(
        self,
        send: Callable[[Deadline], Awaitable[Result]],
        start_clock: Callable[[], Deadline],
        *,
        is_suspect: bool,
    ) -> Result:
        if not is_suspect:
            return await send(start_clock())
        async with self._suspects:
            return await send(start_clock())

    def _end(self) -> None:
        if self._since is not None and self._policy.outage_s > 0:
            _LOG.info("the server answers again after %.0f s", time.monotonic() - self._since)
        self._since = None

    def _check(self, error: ClientError, deadline: Deadline) -> None:
        """Raise the error where the time for this outage, or for this call, is over."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
            if self._policy.outage_s > 0:
                reason = str(error).partition(";")[0]  # the rest is advice for whoever gives up
                _LOG.warning("waiting up to %g s for the server: %s", self._policy.outage_s, reason)
        if now - self._since >= self._policy.outage_s or deadline.remaining_s() == 0:
            raise error
