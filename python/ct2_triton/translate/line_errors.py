# SPDX-License-Identifier: Apache-2.0
"""Decide which errors concern one line of the input, and which end the command."""

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

WORD = "a"  # a text that no server refuses
_PROBE_S = 5.0  # after which a server that is away says nothing of the request
_OF_A_LINE = (
    RequestRejectedError,
    DeadlineExceededError,
    ConnectionLostError,
    MalformedLineError,
)


def concerns_one_line(error: ClientError, text: str) -> bool:
    """Return whether an error concerns only one line; any other ends the command."""
    is_no_text = isinstance(error, InvalidCallError) and not is_unicode(text)
    return is_no_text or isinstance(error, _OF_A_LINE)


async def check_request(
    client: TranslationClient,
    source: str | None,
    targets: str | Sequence[str] | None,
    options: Mapping[str, Any],
) -> None:
    """Translate a word with the request's settings before a command begins.

    Raises RequestRejectedError if the server refuses the settings, such as an unknown option or
    language. An unreachable server is ignored.
    """
    word = client.translate(WORD, source=source, targets=targets, **options)
    await check_word(word, "nothing can be translated")


async def check_word(translate_word: Coroutine[Any, Any, Any], what: str) -> None:
    """After a refused line, check whether the server also refuses a short word.

    `translate_word` translates `WORD` with the same settings. Raises RequestRejectedError, whose
    text begins with `what`, if the settings are wrong, and thus every line.
    """
    try:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(translate_word, _PROBE_S)
    except RequestRejectedError as error:
        raise RequestRejectedError(f"{what}: {error}") from error
    except ClientError:
        return
