# SPDX-License-Identifier: Apache-2.0
"""Speakers of one event: each with a live translation of its own, into one hub."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from ct2_triton.client.tasks import cancel_all
from ct2_triton.live.hub import ONLY_LANGUAGE, SOURCE
from ct2_triton.live.updates import Caption, LiveInputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ct2_triton.live.hub import Hub
    from ct2_triton.live.translator import LiveTranslator
    from ct2_triton.live.updates import SegmentUpdate

_LOG = logging.getLogger(__name__)
_MAX_NAME_BYTES = 40


class Speaker:
    """One speaker, who may leave and come back under the same name."""

    def __init__(self, name: str, hub: Hub, live: LiveTranslator, started: float) -> None:
        """Start to pass captions on.

        Args:
            name: Stands before the names of the segments, so that speakers do not meet.
            hub: Where captions go.
            live: The speaker's own translation.
            started: When the event began, by `time.monotonic`.
        """
        self._name = name
        self._hub = hub
        self._live = live
        self._started = started
        self._revisions: dict[str, int] = {}
        self._task = asyncio.create_task(self._pass_on())

    async def say(self, update: SegmentUpdate) -> None:
        """Take an update; the source is shown at once.

        Args:
            update: Without a time, it gets that of now.

        Raises:
            LiveInputError: It cannot be used; nothing has changed.
        """
        if update.time is None:
            update = replace(update, time=round(time.monotonic() - self._started, 3))
        update = replace(update, segment=f"{self._name}/{update.segment}")
        for piece in await self._live.push(update):
            self._hub.put(self._source(piece), update.time or 0.0)

    async def end(self) -> None:
        """End what is open, and wait until all is translated."""
        await self._live.finish()
        await self._task

    async def close(self) -> None:
        """End at once."""
        await self._live.close()
        await cancel_all([self._task])

    def _source(self, update: SegmentUpdate) -> Caption:
        """Make a caption of what was said."""
        name, stable = update.segment, len(update.text) if update.final else update.stable_chars
        revision = self._revisions.pop(name, 0) + 1
        if not update.final:
            self._revisions[name] = revision
        text, cut = update.text, stable or 0
        return Caption(
            name,
            SOURCE,
            text[:cut],
            text[cut:],
            final=update.final,
            revision=revision,
            transcript=text if update.final else None,
            time=update.time,
        )

    async def _pass_on(self) -> None:
        async with aclosing(self._live.captions()) as captions:
            async for caption in captions:
                # A model without target languages has one, which viewers call "text".
                known = caption if caption.target else replace(caption, target=ONLY_LANGUAGE)
                self._hub.put(known, caption.time or 0.0)
                if caption.error is not None:
                    _LOG.error("segment %s, %s: %s", caption.segment, caption.target, caption.error)


class Speakers:
    """All speakers of an event."""

    def __init__(self, hub: Hub, make: Callable[[], LiveTranslator], most: int) -> None:
        """Start the event's clock.

        Args:
            hub: Where captions go.
            make: Makes a speaker's translation.
            most: Speakers that may take part.
        """
        self._hub = hub
        self._make = make
        self._most = most
        self._started = time.monotonic()
        self._speakers: dict[str, Speaker] = {}

    def get(self, name: str) -> Speaker:
        """Give the speaker of a name; the first time, add one.

        Raises:
            LiveInputError: The name cannot be, or there are too many.
        """
        if not 1 <= len(name.encode(errors="replace")) <= _MAX_NAME_BYTES or "/" in name:
            raise LiveInputError(
                f"speaker is {name[:60]!r}; it must have 1 to {_MAX_NAME_BYTES} bytes and no /"
            )
        if name not in self._speakers:
            if len(self._speakers) >= self._most:
                raise LiveInputError(
                    f"speaker {name!r} would be one too many: {self._most} have spoken; come back "
                    "under a name that you had, or allow more with --max-speakers"
                )
            self._speakers[name] = Speaker(name, self._hub, self._make(), self._started)
        return self._speakers[name]

    async def end(self) -> None:
        """End the event when all is translated."""
        await asyncio.gather(*(speaker.end() for speaker in self._speakers.values()))
        self._hub.end()

    async def close(self) -> None:
        """End at once."""
        await asyncio.gather(*(speaker.close() for speaker in self._speakers.values()))
        self._hub.end()
