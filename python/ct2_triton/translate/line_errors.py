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
    from collections.abc import Coroutine, Mapping, Sequence
    from typing import Any

    from ct2_triton.client.client import TranslationClient

WORD = "a"  # which no server refuses for what it is
_PROBE_S = 5.0  # after which a server that is away says nothing of the request
_OF_A_LINE = (
    RequestRejectedError,
    DeadlineExceededError,
    ConnectionLostError,
    MalformedLineError,
)


def concerns_one_line(error: ClientError, text: str) -> bool:
    """Return whether an error concerns one line alone; anything else ends the command."""
    is_no_text = isinstance(error, InvalidCallError) and not is_unicode(text)
    return is_no_text or isinstance(error, _OF_A_LINE)


async def check_request(
    client: TranslationClient,
    source: str | None,
    targets: str | Sequence[str] | None,
    options: Mapping[str, Any],
) -> None:
    """Ask for a word as a command will ask for its texts, before it begins.

    RequestRejectedError where the server refuses what they have in common: an unknown option, or a
    language that it does not have. A server that is away says nothing of them.
    """
    word = client.translate(WORD, source=source, targets=targets, **options)
    await check_word(word, "nothing can be translated")


async def check_word(translate_word: Coroutine[Any, Any, Any], what: str) -> None:
    """Tell a line that is refused from a request that is: a short word is refused as well.

    `translate_word` translates `WORD` by the same request. RequestRejectedError, which begins with
    `what`, where the request is wrong; so is every line.
    """
    try:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(translate_word, _PROBE_S)
    except RequestRejectedError as error:
        raise RequestRejectedError(f"{what}: {error}") from error
    except ClientError:
        return
