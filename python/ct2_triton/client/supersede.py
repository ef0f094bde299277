# SPDX-License-Identifier: Apache-2.0
"""Keys by which a newer request ends an older one of the same model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ct2_triton.errors import InvalidCallError

if TYPE_CHECKING:
    from ct2_triton.client.stream import Sentence, Superseded

SUPERSEDE_KEY = "supersede_key"  # the request's parameter
MAX_KEY_BYTES = 256


def row_key(prefix: str, *parts: object) -> str:
    """Make the key of one row, which no other row of the same call has.

    Args:
        prefix: What the caller named.
        parts: What tells the row from others of the call; None is left out.

    Returns:
        All of it, with slashes between.

    Raises:
        InvalidCallError: The prefix is no text, or the key is too long.
    """
    if not isinstance(prefix, str) or not prefix:
        raise InvalidCallError(f"supersede is {prefix!r}; it must be a text that is not empty")
    key = "/".join([prefix, *(str(part) for part in parts if part is not None)])
    size = len(key.encode(errors="replace"))
    if size > MAX_KEY_BYTES:
        raise InvalidCallError(
            f"supersede gives the key {key[:40]!r}... of {size} bytes; at most "
            f"{MAX_KEY_BYTES} are allowed"
        )
    return key


def sentence_key(prefix: str, sentence: Sentence, superseded: Superseded) -> str | None:
    """Make the key that all versions of a sentence share; None for one that has no others."""
    if sentence.id is None or superseded == "keep":
        return None
    return row_key(prefix, sentence.id)
