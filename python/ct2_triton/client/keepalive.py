# SPDX-License-Identifier: Apache-2.0
"""How a silent server is noticed without offending one that is only busy.

A peer may fall silent without ending its connection: power goes, or a router forgets it. gRPC finds
out with pings. But a server with gRPC's own rules ends the connection of a client that pings it
often while it sends nothing itself (`too_many_pings`). A call that takes long is such a time.
gRPC's client knows the rule: after two pings it is quiet for a minute, and notices nothing in it.

So the client asks a small question (`ServerLive`) while calls are under way and nothing comes back.
The answer is data of the server's own: gRPC puts its next ping off, and the server starts to count
anew. A healthy server sees no ping. One that does not answer gets a ping, and is given up when it
does not answer that one either.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A question follows at most twice this time of silence, and so comes before the ping.
QUESTION_AFTER_S = 2.0
# Together the time after which a call to a silent server fails.
PING_AFTER_S = 5.0
PING_TIMEOUT_S = 5.0
CONNECT_TIMEOUT_S = 5.0


def channel_options() -> list[tuple[str, int]]:
    """Return the options of a gRPC channel that gives a silent server up."""
    return [
        ("grpc.keepalive_time_ms", round(1000 * PING_AFTER_S)),
        ("grpc.keepalive_timeout_ms", round(1000 * PING_TIMEOUT_S)),
        ("grpc.http2.ping_timeout_ms", round(1000 * PING_TIMEOUT_S)),
        ("grpc.min_reconnect_backoff_ms", round(1000 * CONNECT_TIMEOUT_S)),  # of each attempt
    ]


class Pulse:
    """Ask a question whenever calls are under way and the server has been silent for a while.

    It costs nothing while answers come, and holds no task while there are no calls.
    """

    def __init__(self, ask: Callable[[], object], interval_s: float) -> None:
        """Start nothing yet; `ask` starts a question after so much silence, without waiting."""
        self._ask = ask
        self._interval_s = interval_s
        self._under_way = 0
        self._heard = False
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def during_call(self) -> Iterator[None]:
        """Watch as long as the block runs; its good end is a sign of life."""
        self._under_way += 1
        if self._timer is None:
            self._start()
        try:
            yield
            self._heard = True
        finally:
            self._under_way -= 1

    def stop(self) -> None:
        """Ask no more."""
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
