# SPDX-License-Identifier: Apache-2.0
"""Waiting until a server can do what a client is made for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ct2_triton import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ct2_triton.client.connection import Deadline

_PAUSE_S = 0.5
_LONGEST_QUESTION_S = 10.0
# What passes by itself while a server starts and loads its models.
_PASSING = (
    errors.ServerUnreachableError,
    errors.ConnectionLostError,
    errors.ServerBusyError,
    errors.ModelNotFoundError,
    errors.DeadlineExceededError,
)


async def wait_until_ready(
    ask: Callable[[Deadline], Awaitable[object]], timeout_s: float | None
) -> None:
    """Ask again and again until there is an answer.

    Args:
        ask: Asks the server once for the model.
        timeout_s: Seconds to wait; None for no limit.

    Raises:
        ClientError: What the last question met, when the time is over; or at once, what does not
            pass by itself.
    """
    from ct2_triton.client.connection import Deadline

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
