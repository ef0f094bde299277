# SPDX-License-Identifier: Apache-2.0
"""The speakers of one event, each with a live translation into the same hub."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ct2_triton.client.tasks import cancel_all
from ct2_triton.errors import ClientError, InvalidCallError
from ct2_triton.live.hub import ONLY_LANGUAGE, SOURCE
from ct2_triton.live.spoken import Unfinished
from ct2_triton.live.updates import (
    LATEST_S,
    Caption,
    LiveInputError,
    SegmentUpdate,
    is_piece_name,
    piece_name,
    piece_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from ct2_triton.live.hub import Entry, Hub
    from ct2_triton.live.translator import LiveTranslator

_LOG = logging.getLogger(__name__)
_MAX_NAME_BYTES = 40
_ROOM_S = 5.0  # how long a new speaker waits for a free place
_REMEMBERED = 10_000  # names of speakers that have left
_CATCHING_UP = 8  # segments at a time, after a crash
_TOO_LATE = "comes too late: the event ends"
_UNANSWERED = "the event ended before the server answered"


class EventFullError(ClientError):
    """No further speaker can connect: the limit is reached, or the event ends."""


class Speaker:
    """One speaker, who may leave and return under the same name.

    Attributes:
        name: The speaker's name, by which its segment names begin.
        left: Set once everything that was said is in the hub.
    """

    def __init__(
        self,
        name: str,
        hub: Hub,
        live: LiveTranslator,
        started: float,
        unfinished: Unfinished,
        earlier: asyncio.Event | None = None,
    ) -> None:
        """Start to pass captions to the hub; `started` is the event's start by `time.monotonic`.

        `earlier` is set once the speaker that had this name before has left.
        """
        self.name = name
        self.left = asyncio.Event()
        self._hub = hub
        self._live = live
        self._started = started
        self._unfinished = unfinished
        self._earlier = earlier
        self._revisions: dict[str, int] = {}
        self._is_ending = False
        self._task = asyncio.create_task(self._pass_on())

    async def say(self, update: SegmentUpdate) -> None:
        """Take an update and show its source at once. Without a time, it gets the current one.

        Raises:
            LiveInputError: The update is refused.
        """
        too_late = f"segment {update.segment!r} {_TOO_LATE}"
        if self._earlier is not None:
            await self._earlier.wait()
        if self._is_ending:
            raise LiveInputError(too_late)
        if update.time is None:
            elapsed_s = min(time.monotonic() - self._started, LATEST_S)
            update = replace(update, time=round(elapsed_s, 3))
        update = replace(update, segment=f"{self.name}/{update.segment}")
        spoken = self._unfinished.get(update.segment)
        try:
            pieces = await self._live.push(update, spoken=spoken)
        except InvalidCallError as error:  # closed while it waited
            raise LiveInputError(too_late) from error
        self._show(pieces, is_end=update.final)

    @property
    def has_spoken(self) -> bool:
        """Whether there was an update."""
        return self._live.counts.updates > 0

    async def end(self) -> None:
        """End open segments with their current text, and wait until all are translated."""
        self._is_ending = True
        try:
            self._show(await self._live.end_segments(), is_end=False)
        finally:
            self.left.set()
        await self._live.finish()
        await self._task

    async def close(self) -> None:
        """End at once; translations that have arrived are passed on."""
        self._is_ending = True
        await self._live.close()
        await asyncio.gather(self._task, return_exceptions=True)

    def _show(self, pieces: Sequence[SegmentUpdate], *, is_end: bool) -> None:
        """Show the pieces of an update; `is_end`: with the last one, the speaker ends a segment."""
        for left, piece in zip(reversed(range(len(pieces))), pieces, strict=True):
            goes_on = piece.final and not (is_end and left == 0)
            entry = self._hub.put(self._source(piece), piece.time or 0.0, goes_on=goes_on)
            if piece.final:
                self._unfinished.note(entry)

    def _source(self, update: SegmentUpdate) -> Caption:
        """Make the caption of a source text."""
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
                _put(self._hub, caption)


class _Seat:
    """A speaker's place at the event, kept for a while after the last connection ends."""

    def __init__(self, speaker: Speaker) -> None:
        self.speaker = speaker
        self.connections = 0
        self.grace: asyncio.TimerHandle | None = None


class Speakers:
    """All speakers of an event."""

    def __init__(
        self,
        hub: Hub,
        make: Callable[..., LiveTranslator],
        languages: Sequence[str],
        most: int,
        grace_s: float,
    ) -> None:
        """Start the event's clock.

        `make` makes a translation into these languages, as the hub calls them, or into those that
        it is given, as the model calls them. At most `most` speakers may be connected at a time. A
        speaker may return within `grace_s` seconds and continue the same segments.
        """
        self._hub = hub
        self._make = make
        self._languages = languages
        self._most = most
        self._grace_s = grace_s
        self._started = time.monotonic()
        self._seats: dict[str, _Seat] = {}  # those without a connection, in the order of leaving
        self._ending: dict[asyncio.Task[None], Speaker] = {}
        self._identities: OrderedDict[str, int] = OrderedDict()  # next number for each name
        self._unfinished = Unfinished()
        self._catching_up: asyncio.Task[None] | None = None
        self._is_ending = False

    def resume(self, began: float, finals: Iterable[Entry]) -> None:
        """Continue the hub's event, which began at a time in seconds since 1970.

        `finals` are all of the event, of which the hub may have dropped the oldest. If the clock of
        the machine was set, so that they do not fit it, the event's clock goes on at their end.
        """
        latest_s = 0.0
        for entry in finals:
            latest_s = max(latest_s, entry.end_s)
            name, number = piece_of(entry.caption.segment.partition("/")[0])
            self._identities[name] = max(self._identities.get(name, 1), number + 1)
            if entry.caption.target == SOURCE:
                self._unfinished.note(entry)
        elapsed_s = time.time() - began
        if not latest_s <= elapsed_s <= LATEST_S:
            elapsed_s = latest_s
        self._started = time.monotonic() - elapsed_s
        self._catching_up = asyncio.create_task(self._catch_up())
        self._catching_up.add_done_callback(_log_failure)

    @asynccontextmanager
    async def joined(self, name: str) -> AsyncGenerator[Speaker, None]:
        """Yield the speaker of a name for as long as a connection lasts.

        If a speaker does not return in time, or the place is needed, open segments end with their
        current text. Later, the same name is another speaker, called NAME~2 and so on, whose
        segments go on after the text that is final.
        """
        _check(name)
        if self._is_ending:
            raise EventFullError(f"speaker {name!r} {_TOO_LATE}")
        if name not in self._seats:
            await self._make_room(name)
        seat = self._seats.get(name) or self._add(name)
        seat.connections += 1
        if seat.grace is not None:
            seat.grace.cancel()
        try:
            yield seat.speaker
        finally:
            seat.connections -= 1
            if seat.connections == 0 and name in self._seats:
                self._seats[name] = self._seats.pop(name)
                loop = asyncio.get_running_loop()
                seat.grace = loop.call_later(self._grace_s, self._dismiss, name)

    async def end(self) -> None:
        """End all speakers, and the event when everything is translated."""
        self._is_ending = True
        for name in list(self._seats):
            self._dismiss(name)
        if self._catching_up is not None:
            await asyncio.wait([self._catching_up])
        while self._ending:  # a caller that cancels this leaves the rest to `close`
            await asyncio.wait(self._ending)
        self._hub.end()

    async def close(self) -> int:
        """End at once; return how many translations are missing, of which captions say so."""
        self._is_ending = True
        for name in list(self._seats):
            self._dismiss(name)
        if self._catching_up is not None:
            await cancel_all([self._catching_up])
        left = dict(self._ending)
        await cancel_all(list(left))
        await asyncio.gather(*(speaker.close() for speaker in left.values()))
        missing = self._say_unanswered()
        self._hub.end()
        return missing

    def _say_unanswered(self) -> int:
        """End each translation that is missing with a caption that says so; return how many."""
        missing = [
            _unanswered(entry, language, self._hub.newest(entry.caption.segment, language))
            for entry, languages in self._hub.unanswered(self._languages)
            for language in languages
        ]
        for caption in missing:
            _put(self._hub, caption)
        return len(missing)

    async def _catch_up(self) -> None:
        """Translate finished segments from before a crash into the languages that lack them."""
        room = asyncio.Semaphore(_CATCHING_UP)

        async def catch_up(entry: Entry, languages: Sequence[str]) -> None:
            async with room:
                await self._settle(entry, languages)

        missing = [catch_up(*one) for one in self._hub.unanswered(self._languages)]
        for ended in await asyncio.gather(*missing, return_exceptions=True):
            if isinstance(ended, Exception):  # of one segment; the others have captions
                _LOG.error("a translation ended with a failure", exc_info=ended)

    async def _settle(self, entry: Entry, languages: Sequence[str]) -> None:
        said = entry.caption
        update = SegmentUpdate(said.segment, said.committed, final=True, time=entry.end_s)
        targets = [None if language == ONLY_LANGUAGE else language for language in languages]
        async with self._make(targets) as live, aclosing(live.captions()) as captions:
            await live.settle(update)
            for _ in targets:
                _put(self._hub, await anext(captions))

    async def _make_room(self, name: str) -> None:
        """Wait until a place is free; speakers who have left lose theirs."""
        while len(self._seats) + len(self._ending) >= self._most:
            away = next((one for one, seat in self._seats.items() if not seat.connections), None)
            if away is not None:
                self._dismiss(away)
            if self._ending:
                ended, _ = await asyncio.wait(
                    self._ending, timeout=_ROOM_S, return_when=asyncio.FIRST_COMPLETED
                )
                if ended:
                    continue
            raise EventFullError(
                f"speaker {name!r} cannot connect: {len(self._seats)} are connected and "
                f"{len(self._ending)} left text to translate; {self._most} are allowed "
                "(--max-speakers)"
            )

    def _add(self, name: str) -> _Seat:
        number = self._identities.get(name, 1)
        leaving = [one.left for one in self._ending.values() if piece_of(one.name)[0] == name]
        speaker = Speaker(
            piece_name(name, number),
            self._hub,
            self._make(),
            self._started,
            self._unfinished,
            leaving[-1] if leaving else None,
        )
        self._seats[name] = seat = _Seat(speaker)
        return seat

    def _dismiss(self, name: str) -> None:
        """End a speaker and free the name."""
        seat = self._seats.pop(name)
        if seat.grace is not None:
            seat.grace.cancel()
        if seat.speaker.has_spoken:
            self._identities[name] = self._identities.pop(name, 1) + 1
            if len(self._identities) > _REMEMBERED:
                self._identities.popitem(last=False)
        task = asyncio.create_task(seat.speaker.end())
        self._ending[task] = seat.speaker
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._ending[task]
        _log_failure(task)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (failure := task.exception()):
        _LOG.error("a translation ended with a failure", exc_info=failure)


def _unanswered(said: Entry, language: str, shown: Caption | None) -> Caption:
    """Make the final of a segment that has no translation into a language."""
    return Caption(
        said.caption.segment,
        language,
        shown.committed if shown else "",
        "",
        final=True,
        revision=shown.revision + 1 if shown else 1,
        source=said.caption.committed,
        time=said.end_s,
        error=_UNANSWERED,
    )


def _put(hub: Hub, caption: Caption) -> None:
    """Add a caption to a hub; the only language of a model without targets is named "text"."""
    known = caption if caption.target else replace(caption, target=ONLY_LANGUAGE)
    hub.put(known, caption.time or 0.0)
    if caption.error is not None:
        _LOG.error("segment %s, %s: %s", caption.segment, caption.target, caption.error)


def _check(name: str) -> None:
    """Refuse an invalid name."""
    size = len(name.encode(errors="replace"))
    if not 1 <= size <= _MAX_NAME_BYTES or "/" in name or is_piece_name(name):
        raise LiveInputError(
            f"speaker is {name[:60]!r}; it must have 1 to {_MAX_NAME_BYTES} bytes, no / and no ~ "
            "with digits at its end"
        )
