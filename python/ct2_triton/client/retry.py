# SPDX-License-Identifier: Apache-2.0
"""Time limits, reconnection, and repetition after an outage."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, TypeVar

from ct2_triton.errors import (
    ClientError,
    ConnectionLostError,
    DeadlineExceededError,
    InvalidCallError,
    ModelNotFoundError,
    ServerBusyError,
    ServerUnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

Result = TypeVar("Result")
_LOG = logging.getLogger(__name__)
_LONGEST_S = 1e9  # 30 years; more does not fit into the microseconds of gRPC and Triton
_LONGEST_PAUSE_S = 3600
_GROWTH = 1.6  # growth of the pauses, as in gRPC
_SPREAD = 0.2  # jitter of each pause, as in gRPC
_MOST_LOST = 3
_PAUSE_S = 0.5
_LONGEST_QUESTION_S = 10.0
# Errors that pass by themselves while a server starts and loads its models.
_PASSING = (
    ServerUnreachableError,
    ConnectionLostError,
    ServerBusyError,
    ModelNotFoundError,
    DeadlineExceededError,
)


class Deadline:
    """The time by which a call must be answered; None for no limit."""

    def __init__(self, timeout_s: float | None) -> None:
        """Start the clock; None or infinity for no limit, else it must be above 0."""
        if timeout_s is not None and not (isinstance(timeout_s, Real) and timeout_s > 0):
            raise InvalidCallError(
                f"timeout_s is {timeout_s!r}; it must be a number above 0, or None"
            )
        if timeout_s is not None and timeout_s > _LONGEST_S:
            timeout_s = None
        self.timeout_s = timeout_s
        self._end = None if timeout_s is None else time.monotonic() + timeout_s

    def remaining_s(self) -> float | None:
        """Return the seconds left, at least 0, or None."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def expired_error(self) -> DeadlineExceededError:
        """Return the error for a call that this deadline ended."""
        return DeadlineExceededError(f"no answer within {self.timeout_s:g} s")


@dataclass(frozen=True)
class RetryPolicy:
    """How long and how often the client tries to reach a server.

    Only *connecting* is repeated; a request is sent once, over an open connection. After a timeout,
    a full queue or a broken connection it is not repeated, because that would add load to a server
    in trouble, or break it again. If every sentence must be translated, as in a batch, set
    `outage_s`.

    All calls of a client share one channel and one series of attempts. gRPC spaces the attempts:
    each pause is a random value around 1.6 times the previous one, from `initial_backoff_s` up to
    `max_backoff_s`.

    Attributes:
        budget_s: Time that a call waits for a connection, in seconds, within its own time limit. 0:
            fail at the first refused attempt.
        initial_backoff_s: Pause before the second attempt, in seconds.
        max_backoff_s: Longest pause, in seconds.
        outage_s: How long to keep retrying a sentence when the server is unreachable or busy, or
            the connection broke, in seconds, with pauses of at most `max_backoff_s`. The time
            starts at the first such failure of any call and ends with the next answer. A sentence
            in progress on three broken connections is not sent again. 0: never.
    """

    budget_s: float = 5.0
    initial_backoff_s: float = 0.1
    max_backoff_s: float = 2.0
    outage_s: float = 0.0

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidCallError: A value is negative or not a number, or `max_backoff_s` is below
                `initial_backoff_s`.
        """
        for name in ("budget_s", "outage_s"):
            if not getattr(self, name) >= 0:
                raise InvalidCallError(f"{name} is {getattr(self, name)}; it must be 0 or more")
        if not 0 < self.initial_backoff_s <= self.max_backoff_s <= _LONGEST_PAUSE_S:
            raise InvalidCallError(
                f"initial_backoff_s is {self.initial_backoff_s} and max_backoff_s is "
                f"{self.max_backoff_s}; the first must be above 0 and not above the second, and "
                f"neither above {_LONGEST_PAUSE_S}"
            )

    def pauses(self) -> Iterator[float]:
        """Yield the pauses before further attempts, in seconds, endlessly."""
        pause_s = self.initial_backoff_s
        while True:
            yield min(random.uniform(1 - _SPREAD, 1 + _SPREAD) * pause_s, self.max_backoff_s)  # noqa: S311
            pause_s = min(_GROWTH * pause_s, self.max_backoff_s)

    def channel_options(self) -> list[tuple[str, int]]:
        """Return the options of a gRPC channel that follows this policy."""
        initial_ms = max(1, round(1000 * self.initial_backoff_s))
        return [
            ("grpc.initial_reconnect_backoff_ms", initial_ms),
            ("grpc.max_reconnect_backoff_ms", max(1, round(1000 * self.max_backoff_s))),
        ]


class Outage:
    """The outage of a server, shared by all calls of a client in one event loop.

    A request that was in progress when a connection broke may be the cause. It is then sent only
    while no other such request is in progress, so that the cause is found and others are answered.
    """

    def __init__(self, policy: RetryPolicy, also: tuple[type[ClientError], ...] = ()) -> None:
        """Start without an outage.

        `also` lists further errors that an outage can cause, besides those of an unreachable or
        busy server or a lost connection.
        """
        self._policy = policy
        self._passing: tuple[type[ClientError], ...] = (
            ServerBusyError,
            ServerUnreachableError,
            *also,
        )
        self._since: float | None = None
        self._suspects = asyncio.Lock()

    async def outlast(
        self,
        send: Callable[[Deadline], Awaitable[Result]],
        start_clock: Callable[[], Deadline],
    ) -> Result:
        """Send a request until the server accepts it or the time of the policy is over.

        Each attempt has a deadline of its own; the error of the last one is raised.
        """
        lost = 0
        for pause_s in self._policy.pauses():
            try:
                result = await self._attempt(send, start_clock, is_suspect=lost > 0)
            except ConnectionLostError as error:
                lost += 1
                if lost == _MOST_LOST:
                    raise ConnectionLostError(
                        f"{lost} connections broke while this request was under way, the last two "
                        f"when no other request could be the cause; it may be the cause: {error}"
                    ) from error
                self._check(error, start_clock())
            except self._passing as error:
                self._check(error, start_clock())
            else:
                self._end()
                return result
            await asyncio.sleep(pause_s)
        raise AssertionError  # pauses are endless

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
        """Raise the error if the time for this outage, or for this call, is over."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
            if self._policy.outage_s > 0:
                reason = str(error).partition(";")[0]  # the rest is advice, for the last error only
                _LOG.warning("waiting up to %g s for the server: %s", self._policy.outage_s, reason)
        if now - self._since >= self._policy.outage_s or deadline.remaining_s() == 0:
            raise error


async def wait_until_ready(
    ask: Callable[[Deadline], Awaitable[object]], timeout_s: float | None
) -> None:
    """Repeat a request until it is answered or the time is over; None for no limit.

    Errors that do not pass by themselves are raised at once.
    """
    deadline = Deadline(timeout_s)
    while True:
        left_s = deadline.remaining_s()
        question_s = _LONGEST_QUESTION_S if left_s is None else min(_LONGEST_QUESTION_S, left_s)
        try:
            await ask(Deadline(max(question_s, 0.001)))
        except _PASSING as error:
            left_s = deadline.remaining_s()
            if left_s is not None and left_s <= _PAUSE_S:
                raise type(error)(f"not ready within {timeout_s:g} s: {error}") from error
        else:
            return
        await asyncio.sleep(_PAUSE_S)


def closed_error() -> InvalidCallError:
    """Return the error for a call whose client was closed."""
    return InvalidCallError("the client was closed during the call")
