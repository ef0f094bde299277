# SPDX-License-Identifier: Apache-2.0
"""Which errors concern one line of a command's input, and which end the command."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from ct2_triton.client.calls import is_unicode
from ct2_triton.errors import (
    ClientError,
    ConnectionLostError,
    DeadlineExceededError,
    InvalidCallError,
    MalformedLineError,
    RequestRejectedError,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

WORD = "a"  # which no server refuses for what it is
_PROBE_S = 5.0  # after which a server that is away says nothing of the request
_OF_A_LINE = (
    RequestRejectedError,
    DeadlineExceededError,
    ConnectionLostError,
    MalformedLineError,
)


def concerns_one_line(error: ClientError, text: str) -> bool:
    """Tell whether an error concerns one line alone; anything else ends the command."""
    is_no_text = isinstance(error, InvalidCallError) and not is_unicode(text)
    return is_no_text or isinstance(error, _OF_A_LINE)


async def check_request(translate_word: Coroutine[Any, Any, None], refused: object) -> None:
    """Tell a line that is refused from a request that is: a short word is refused as well.

    `translate_word` translates `WORD` by the same request. RequestRejectedError where the request
    is wrong, as with an unknown option; so is every line.
    """
    try:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(translate_word, _PROBE_S)
    except RequestRejectedError as error:
        raise RequestRejectedError(f"not translated from {refused} on: {error}") from error
    except ClientError:
        return
