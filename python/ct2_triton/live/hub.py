# SPDX-License-Identifier: Apache-2.0
"""An event's captions for any number of viewers, each at its own position.

The hub keeps the newest caption of each segment and language, in the order of changes, and a viewer
is a position in that order. A slow viewer skips tails, never finals; a late or returning one gets
the captions that it lacks. No state is kept per viewer.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import OrderedDict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Iterable

    from ct2_triton.live.updates import Caption

ONLY_LANGUAGE = "text"  # name of the language of a model without target languages
SOURCE = "source"  # name under which viewers get the source text
_NUMBERS_OF_TAILS = 1_000_000  # more than the captions between two finals


@dataclass(frozen=True)
class Entry:
    """A caption in the hub.

    Attributes:
        number: Position in the order of changes, from 1.
        caption: The caption.
        start_s: When the segment began, in seconds since the start of the event.
        end_s: When its newest text arrived, in the same unit.
        goes_on: Whether it is a final source text, and its speaker has not ended the segment.
    """

    number: int
    caption: Caption
    start_s: float
    end_s: float
    goes_on: bool = False


class Hub:
    """The captions of one event."""

    def __init__(self, max_entries: int = 20_000) -> None:
        """Start an event.

        A caption is kept for each segment and language; beyond `max_entries`, the oldest finals are
        removed.
        """
        self.name = uuid.uuid4().hex[:8]
        self.on_caption: Callable[[Caption], None] = lambda _: None
        self.on_final: Callable[[Entry], None] = lambda _: None
        self._process = uuid.uuid4().hex[:8]
        self._max_entries = max_entries
        self._entries: OrderedDict[tuple[str, str | None], Entry] = OrderedDict()
        self._newest_finals: dict[str | None, int] = {}
        self._number = 0
        self._restored = 0  # position of the newest change of ended processes
        self._changed: asyncio.Future[None] | None = None
        self._ended = False

    def put(self, caption: Caption, time_s: float, *, goes_on: bool = False) -> Entry:
        """Add a caption, replacing the previous one, at a time in seconds since the event began."""
        self._number += 1
        key = caption.segment, caption.target
        known = self._entries.pop(key, None)
        start_s = min(known.start_s if known else time_s, self._start_of(caption, time_s))
        entry = Entry(self._number, caption, start_s, max(start_s, time_s), goes_on)
        self._entries[key] = entry
        self.on_caption(caption)
        if caption.final:
            self._newest_finals[caption.target] = self._number
            self.on_final(entry)
        if len(self._entries) > self._max_entries:
            self._forget()
        self._wake()
        return entry

    def restore(self, name: str, finals: Iterable[Entry], number: int = 0) -> None:
        """Continue the event of an ended process: viewers resume at their positions.

        `number` is the position at which that process began.
        """
        self.name = name
        self._number = number
        for entry in finals:
            self._entries[entry.caption.segment, entry.caption.target] = entry
            self._newest_finals[entry.caption.target] = entry.number
            self._number = max(self._number, entry.number)
            if len(self._entries) > self._max_entries:
                self._forget()
        self._restored = self._number
        self._number += _NUMBERS_OF_TAILS

    def end(self) -> None:
        """End the event, which viewers are told."""
        self._ended = True
        self._wake()

    @property
    def number(self) -> int:
        """Position of the newest change."""
        return self._number

    def since(self, number: int, languages: Collection[str]) -> list[Entry]:
        """Return the captions that changed after a position (0: all), oldest change first."""
        found = []
        for entry in reversed(self._entries.values()):
            if entry.number <= number:
                break
            if entry.caption.target in languages:
                found.append(entry)
        return found[::-1]

    def entries(self) -> list[Entry]:
        """Return all captions."""
        return list(self._entries.values())

    def finals(self, language: str) -> list[Entry]:
        """Return the finals of a language, ordered by the start of their segments."""
        return finals_of(self.entries(), language)

    def unanswered(self, languages: Collection[str]) -> list[tuple[Entry, list[str]]]:
        """Return the finished source texts that lack a final, each with the languages of those.

        An error of an ended process is no final.
        """
        found = []
        for (segment, language), entry in self._entries.items():
            if language == SOURCE and entry.caption.final:
                missing = [one for one in languages if not self._is_answered(segment, one)]
                if missing:
                    found.append((entry, missing))
        return found

    def _is_answered(self, segment: str, language: str) -> bool:
        found = self._entries.get((segment, language))
        if found is None or not found.caption.final:
            return False
        return found.caption.error is None or found.number > self._restored

    def newest(self, segment: str, language: str) -> Caption | None:
        """Return the newest caption of a segment in a language; None if there is none."""
        found = self._entries.get((segment, language))
        return None if found is None else found.caption

    def languages(self) -> list[str]:
        """Return the languages that have finals."""
        return [language for language in self._newest_finals if language is not None]

    def newest_final(self, language: str) -> int:
        """Return the position of a language's newest final; 0 for none."""
        return self._newest_finals.get(language, 0)

    async def follow(
        self, position: str | None, languages: Collection[str], idle_s: float
    ) -> AsyncGenerator[str, None]:
        """Yield messages for a viewer: JSON objects with an `id` to resume from.

        Args:
            position: The `id` of the last message that the viewer has; None, or the `id` of another
                event: from the start.
            languages: Codes, or `SOURCE`.
            idle_s: Seconds without a change after which "" is yielded.

        Yields:
            Captions as they change, until the event ends; the last message says so.
        """
        number = self.position(position)
        while True:
            for entry in self.since(number, languages):
                number = entry.number
                if self._entries.get((entry.caption.segment, entry.caption.target)) is entry:
                    yield self.message(entry)  # else the viewer was slow: a newer one follows
            if self.since(number, languages):
                continue
            if self._ended:
                yield json.dumps({"type": "end", "id": f"{self.name}-{number}"})
                return
            if not await self._changes_within(idle_s):
                yield ""

    def position(self, text: str | None) -> int:
        """Read a message's ID; 0 if it does not belong to this event."""
        name, _, number = (text or "").rpartition("-")
        ours = name == self.name and number.isascii() and number.isdigit() and len(number) < 20
        return int(number) if ours else 0

    def message(self, entry: Entry) -> str:
        """Return the message of an entry."""
        members = {k: v for k, v in asdict(entry.caption).items() if v is not None}
        members |= {"type": "caption", "id": f"{self.name}-{entry.number}", "event": self.name}
        members["process"] = self._process  # open captions of an earlier process do not continue
        members |= {"start_s": round(entry.start_s, 3), "end_s": round(entry.end_s, 3)}
        return json.dumps(members, ensure_ascii=False)

    def _start_of(self, caption: Caption, time_s: float) -> float:
        """Return when the segment began, which is when its source arrived."""
        source = self._entries.get((caption.segment, SOURCE))
        return source.start_s if source else time_s

    def _forget(self) -> None:
        """Remove the oldest final, which most viewers have; without finals, the oldest caption."""
        oldest = next(
            (key for key, entry in self._entries.items() if entry.caption.final),
            next(iter(self._entries)),
        )
        del self._entries[oldest]

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)
        self._changed = None

    async def _changes_within(self, seconds: float) -> bool:
        """Wait for the next change, on a future that all viewers share."""
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        done, _ = await asyncio.wait([self._changed], timeout=seconds)
        return bool(done)


def finals_of(entries: Iterable[Entry], language: str) -> list[Entry]:
    """Return the finals of a language, ordered by the start of their segments."""
    found = [one for one in entries if one.caption.target == language and one.caption.final]
    return sorted(found, key=lambda entry: entry.start_s)
