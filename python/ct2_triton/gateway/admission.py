# SPDX-License-Identifier: Apache-2.0
"""Admission of requests to a gateway: read, limit, count and time them."""

from __future__ import annotations

import asyncio
import hmac
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ct2_triton.client.tasks import in_time
from ct2_triton.gateway.bodies import read_fields
from ct2_triton.gateway.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Sequence

    from aiohttp import web

    from ct2_triton.gateway.bodies import Fields

    Result = TypeVar("Result")

_BYTES_A_CHARACTER = 12  # in escaped JSON: two surrogates of six characters each
_OTHER_BYTES = 65_536


@dataclass(frozen=True)
class Limits:
    """The limits of one gateway.

    Attributes:
        keys: Keys, one of which each request must have; empty: no key is needed.
        max_chars: Most characters of a text, or of a file.
        max_texts: Most texts of a request.
        max_alternatives: Largest value of `alternatives`.
        max_requests: Most requests that are translated at a time.
        max_connections: Most connections at a time.
        idle_s: Seconds within which the next request's header must arrive, from the start of a
            connection or its last response.
        timeout_s: Seconds within which a request must arrive, and again be translated.
        allow_origins: Other origins whose pages may read responses; `*` for all.
        hosts: Names of the server in `Host`, in addition to its addresses and names that no site
            can take; None: every name.
        address: The gateway's address for visitors; None: that of the request.
    """

    keys: Sequence[str] = ()
    max_chars: int = 100_000
    max_texts: int = 1000
    max_alternatives: int = 5
    max_requests: int = 256
    max_connections: int = 500
    idle_s: float = 75.0
    timeout_s: float = 60.0
    allow_origins: Sequence[str] = ()
    hosts: Sequence[str] | None = None
    address: str | None = None

    @property
    def max_bytes(self) -> int:
        """Most bytes of a request's body."""
        return _BYTES_A_CHARACTER * self.max_chars + _OTHER_BYTES


class Admission:
    """Admits requests within limits."""

    def __init__(self, limits: Limits) -> None:
        """Start with no requests."""
        self.limits = limits
        self._busy = 0

    async def fields(self, request: web.Request) -> Fields:
        """Read a request's fields and check its key."""
        fields = await read_fields(request, self.limits.timeout_s)
        keys = self.limits.keys
        if not keys:
            return fields
        header = request.headers.get("Authorization", "").removeprefix("Bearer ")
        given = (fields.key() or header).encode(errors="replace")
        if not given:
            raise Refusal(400, "Please contact the server operator to get an API key")
        if not any([hmac.compare_digest(given, key.encode()) for key in keys]):  # noqa: C419
            raise Refusal(403, "Invalid API key")
        return fields

    def check_texts(self, texts: Sequence[str]) -> None:
        """Refuse too many texts, or one that is too long; the body limits all together."""
        _check_size(len(texts), self.limits.max_texts)
        _check_size(max(map(len, texts)), self.limits.max_chars)

    def check_file(self, texts: Sequence[str]) -> None:
        """Refuse the texts of a file that is too long."""
        _check_size(sum(map(len, texts)), self.limits.max_chars)

    async def in_time(self, work: Awaitable[Result]) -> Result:
        """Wait for the translations of a request, within the time limit."""
        limit = self.limits.timeout_s
        try:
            return await in_time(work, limit)
        except asyncio.TimeoutError as error:
            raise Refusal(504, f"Cannot translate text: it took more than {limit:g} s") from error

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Count a request while it is translated; refuse it at the limit."""
        if self._busy >= self.limits.max_requests:
            raise Refusal(
                429, f"Slowdown: {self._busy} requests are being translated, which is the limit"
            )
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise Refusal(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")
