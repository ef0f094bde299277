# SPDX-License-Identifier: Apache-2.0
"""What the client does while the server cannot be reached."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ct2_triton.errors import InvalidCallError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_PAUSE_S = 3600
_GROWTH = 1.6  # of the pauses, as gRPC has it
_SPREAD = 0.2  # around each, likewise


@dataclass(frozen=True)
class RetryPolicy:
    """How long, and how often, the client tries to reach a server that does not answer.

    Only *connecting* is repeated; a request is sent once, over a connection that stands. So a
    timeout, a full queue or a request that broke the connection is not repeated: each of them
    would add load, or do the damage again, where the server is already in trouble. Where every
    sentence counts more than that, as in a batch, `outage_s` says so.

    All calls of a client share one channel, and so one series of attempts: a thousand waiting
    calls do not knock a thousand times. gRPC spaces the attempts: each pause is a random value
    around the previous one times 1.6, from `initial_backoff_s` up to `max_backoff_s`.

    Attributes:
        budget_s: Seconds one call may wait for the server to be reached, and never longer than the
            call's own deadline. 0 means: fail at the first refused attempt.
        initial_backoff_s: Pause before the second attempt, in seconds.
        max_backoff_s: Longest pause, in seconds.
        outage_s: Seconds for which a sentence is sent again that the server could not take, since
            it is out of reach, busy, or was lost with its connection; with pauses of
            `max_backoff_s` at most. They count from the first such failure of any call up to the
            next answer. A sentence under which three connections broke is not sent again. 0: never.
    """

    budget_s: float = 5.0
    initial_backoff_s: float = 0.1
    max_backoff_s: float = 2.0
    outage_s: float = 0.0

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidCallError: A value is negative or no number, or the pauses are in the wrong
                order.
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
        """Give the pauses before further attempts, in seconds, without end."""
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
