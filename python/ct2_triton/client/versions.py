# SPDX-License-Identifier: Apache-2.0
"""A canary: sessions are split by weight between versions of a model, each stays with its own.

Every version draws a number from the session's key, scaled by its weight, and the largest wins
(weighted rendezvous hashing). So the choice needs no memory, is the same in every process, and a
change of weights moves no more sessions than it must.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, TypeVar

from ct2_triton.errors import ClientError, InvalidCallError, ModelNotFoundError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

Result = TypeVar("Result")
_DRAWN_BYTES = 8
UNKNOWN_MODEL = "Request for unknown model"
"""How Triton begins where it has no such model, or version; UNAVAILABLE once it was unloaded."""


class VersionSplit:
    """Which version a session goes to, and which to if the server does not have that one."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        """Keep weights that are checked.

        Args:
            weights: Weight of each version; "" is the server's choice.
        """
        self._weights = dict(weights)

    @classmethod
    def of(cls, weights: Mapping[str, float]) -> VersionSplit:
        """Check weights that a caller gave.

        Args:
            weights: Weight of each version, such as `{"1": 0.9, "2": 0.1}`; only their ratios
                count. A version of weight 0 is asked where the server has no other.

        Raises:
            InvalidCallError: There is none, a weight is not possible, or all are 0.
        """
        for version, weight in weights.items():
            if not (isinstance(version, str) and version.isascii() and version.isdigit()):
                raise InvalidCallError(f"versions has {version!r}; name versions as in '2'")
            if not (isinstance(weight, int | float) and 0 <= weight < math.inf):
                raise InvalidCallError(f"version {version} has weight {weight!r}; 0 or more is due")
        if not any(weights.values()):
            raise InvalidCallError(f"versions is {dict(weights)!r}; one needs a weight above 0")
        return cls(weights)

    def order(self, session: str) -> tuple[str, ...]:
        """Give the versions for a session: its own first.

        Args:
            session: What tells it from other sessions.

        Returns:
            All versions.
        """
        scores = {
            version: _score(session, version, weight) for version, weight in self._weights.items()
        }
        return tuple(sorted(scores, key=lambda version: scores[version], reverse=True))


async def first_served(versions: Sequence[str], ask: Callable[[str], Awaitable[Result]]) -> Result:
    """Ask one version after the other until the server has one of them.

    A request for a version that the server does not have is refused before it runs, so it may be
    sent to another.

    Args:
        versions: Versions in the order to ask; at least one.
        ask: Sends the request to a version.

    Returns:
        What it returns.

    Raises:
        ClientError: What the first version met that the server has, or the last one.
    """
    for version in versions[:-1]:
        try:
            return await ask(version)
        except ClientError as error:
            if not _is_not_served(error):
                raise
    return await ask(versions[-1])


def _is_not_served(error: ClientError) -> bool:
    return isinstance(error, ModelNotFoundError) or str(error).startswith(UNKNOWN_MODEL)


def _score(session: str, version: str, weight: float) -> float:
    text = f"{session}\0{version}".encode(errors="replace")
    number = int.from_bytes(hashlib.blake2b(text, digest_size=_DRAWN_BYTES).digest(), "big")
    drawn = (number + 0.5) / 2 ** (8 * _DRAWN_BYTES)  # above 0 and below 1
    return -weight / math.log(drawn) if weight else 0.0
