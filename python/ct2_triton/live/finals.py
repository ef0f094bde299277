# SPDX-License-Identifier: Apache-2.0
"""Finals are sent again until the server has answered: a server that ends loses none."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import TYPE_CHECKING

from ct2_triton.errors import (
    ConnectionLostError,
    DeadlineExceededError,
    ServerBusyError,
    ServerUnreachableError,
    SupersededError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ct2_triton.client.results import Translation

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
_MOST_LOST = 3


class Finals:
    """Send finals of one live translation, each until it is answered."""

    def __init__(self, outage_s: float) -> None:
        """Start.

        Args:
            outage_s: Seconds for which a final is sent again.
        """
        self._outage_s = outage_s
        self._suspects = asyncio.Lock()

    async def settle(self, send: Callable[[], Awaitable[Translation]]) -> Translation:
        """Send a final until it is answered.

        One under which a connection broke may be the reason; from then on it is sent only while no
        other such final is under way. After the third time it is given up.

        Args:
            send: Sends it once.

        Returns:
            The answer.

        Raises:
            ClientError: The server refuses it, or the time is over.
        """
        end, lost, pause_s = time.monotonic() + self._outage_s, 0, _FIRST_PAUSE_S
        while True:
            try:
                if lost == 0:
                    return await send()
                async with self._suspects:
                    return await send()
            except SupersededError:
                pass  # an older request of the segment came to the server after this one
            except ConnectionLostError:
                lost += 1
                if lost == _MOST_LOST or time.monotonic() >= end:
                    raise
            except (ServerUnreachableError, ServerBusyError, DeadlineExceededError) as error:
                if time.monotonic() >= end:
                    raise
                _LOG.warning("a final waits for the server: %s", error)
            await asyncio.sleep(random.uniform(0.5, 1.0) * pause_s)  # noqa: S311
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
