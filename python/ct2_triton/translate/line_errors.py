# SPDX-License-Identifier: Apache-2.0
"""Which errors concern one line of a command's input, and which end the command."""

from __future__ import annotations

from ct2_triton.client.calls import is_unicode
from ct2_triton.errors import (
    ClientError,
    ConnectionLostError,
    DeadlineExceededError,
    InvalidCallError,
    MalformedLineError,
    RequestRejectedError,
)

_OF_A_LINE = (
    RequestRejectedError,
    DeadlineExceededError,
    ConnectionLostError,
    MalformedLineError,
)


def concerns_one_line(error: ClientError, text: str) -> bool:
    """Tell whether an error concerns one line alone; anything else ends the command.

    Args:
        error: What translating the line met.
        text: The line.

    Returns:
        Whether the next lines may be right.
    """
    is_no_text = isinstance(error, InvalidCallError) and not is_unicode(text)
    return is_no_text or isinstance(error, _OF_A_LINE)
