# SPDX-License-Identifier: Apache-2.0
"""Texts that come at the same time go to the server in one request.

A request costs client and server about as much as a short translation. While the server has
nothing of this client, what comes in one turn of the event loop is sent, which is no wait. While it
has, texts wait for others, but not long. Short texts only: all of a request are answered when the
longest one is.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from ct2_triton.client.tasks import Shared
from ct2_triton.errors import InvalidCallError, RequestRejectedError, ServerFailedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Sequence

    from ct2_triton.client.calls import Call, Text
    from ct2_triton.client.results import Translation

    Send: TypeAlias = Callable[
        [Sequence[Text], Call, str | None], Awaitable[list[list[Translation]]]
    ]

MOST_TEXTS = 16
"""Texts of one request."""

WAIT_S = 0.002
"""Seconds that a text waits for others, while another request is under way."""

MOST_CHARACTERS = 400
"""Of a text that shares a request."""

# What may be the fault of one text; the others are then asked for again.
_OF_ONE = (InvalidCallError, RequestRejectedError, ServerFailedError)


class JoinedTexts:
    """Joins texts that are asked for in the same way."""

    def __init__(self, send: Send) -> None:
        """Join nothing yet; `send` asks for several texts of one call, without a key."""
        self._send = send
        self._under_way: set[asyncio.Task[list[list[Translation]]]] = set()
        self._open: dict[Hashable, _Group] = {}

    async def translate(self, text: Text, call: Call) -> list[Translation]:
        """Translate a text, with others that come now."""
        if len(text.text) > MOST_CHARACTERS:
            return (await self._send([text], call, None))[0]
        key = (
            text.source is None,
            tuple(target is None for target in text.targets),
            repr(sorted(call.options.items())),
            call.headers,
            call.start_clock().timeout_s,
        )
        group = self._open.get(key)
        if group is None or not group.is_wanted or len(group.texts) == MOST_TEXTS:
            group = self._open[key] = _Group(self._ask, call, partial(self._close, key))
            group.waits = bool(self._under_way)
        try:
            return await group.add(text)
        except _OF_ONE:
            if len(group.texts) == 1:
                raise
        return (await self._send([text], call, None))[0]

    async def _ask(
        self, texts: Sequence[Text], call: Call, key: str | None
    ) -> list[list[Translation]]:
        """Send, and let what is sent end by itself: Triton 2.51 may not survive a cancellation."""
        asked = asyncio.ensure_future(self._send(texts, call, key))
        self._under_way.add(asked)
        asked.add_done_callback(self._end)
        return await asyncio.shield(asked)

    def _end(self, asked: asyncio.Task[list[list[Translation]]]) -> None:
        self._under_way.discard(asked)
        if not asked.cancelled():
            asked.exception()  # no task may be left to receive it

    def _close(self, key: Hashable, group: _Group) -> None:
        if self._open.get(key) is group:
            del self._open[key]


class _Group:
    """Texts of one request."""

    def __init__(self, send: Send, call: Call, close: Callable[[_Group], None]) -> None:
        self.texts: list[Text] = []
        self._ask = send
        self._call = call
        self._close = close
        self._shared = Shared(self._send)
        self._full = asyncio.Event()
        self.waits = False

    @property
    def is_wanted(self) -> bool:
        """Whether anybody waits for its answer: it may be ending, as all have gone away."""
        return self._shared.is_wanted

    async def add(self, text: Text) -> list[Translation]:
        self.texts.append(text)
        if len(self.texts) == MOST_TEXTS:
            self._full.set()
        return await self._shared.one(len(self.texts) - 1)

    async def _send(self) -> list[list[Translation]]:
        try:
            await asyncio.sleep(0)  # other tasks may add a text
            if self.waits:
                timer = asyncio.get_running_loop().call_later(WAIT_S, self._full.set)
                await self._full.wait()
                timer.cancel()
        finally:
            self._close(self)
        return await self._ask(self.texts, self._call, None)
