# SPDX-License-Identifier: Apache-2.0
"""The folder of an event's subtitles: a journal during the event, files at its end.

Each final is appended to the journal as a line of JSON, and after a crash the next start continues
from it. Existing files are never overwritten: new ones get a number.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal

from filelock import FileLock, Timeout

from ct2_triton.errors import ClientError
from ct2_triton.live.cues import CueLimits, make_cues
from ct2_triton.live.hub import Entry, Hub, finals_of
from ct2_triton.live.updates import Caption
from ct2_triton.subtitles import write_cues

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any, TextIO


_LOG = logging.getLogger(__name__)
_JOURNAL = ".ct2-live.jsonl"
_LOCK = ".ct2-live.lock"


@dataclass
class Past:
    """The journal of an event that did not end.

    Attributes:
        event: ID of the event, with which returning viewers continue.
        began: When it began, in seconds since 1970.
        entries: Its finals, which are read from the journal each time.
        number: Position in the order of changes at which its process began.
    """

    event: str
    began: float
    entries: Iterable[Entry]
    number: int = 0


class _Finals:
    """The finals of a journal, one at a time: a long one does not fit into the memory."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal

    def __iter__(self) -> Iterator[Entry]:
        return filter(None, map(_entry, self.members()))

    def members(self) -> Iterator[dict[str, Any]]:
        """Read its lines; none without a journal."""
        try:  # texts may contain other line separators
            lines = self._journal.open(encoding="utf-8", errors="replace", newline="\n")
        except FileNotFoundError:
            return
        with lines:
            yield from map(_read, lines)


class Archive:
    """The folder of one event."""

    def __init__(self, folder: Path, limits: CueLimits) -> None:
        """Open the folder, and create it if necessary."""
        self._folder = folder
        self._limits = limits
        self._finals = _Finals(folder / _JOURNAL)
        self._journal: TextIO | None = None
        self._lock = FileLock(folder / _LOCK)
        with _writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                raise ClientError(f"another ct2-live writes its subtitles into {folder}") from None

    def past(self) -> Past | None:
        """Read the journal of an event that did not end; None if there is none."""
        with _writing(self._folder):
            first = next(self._finals.members(), {})
            if not {"event", "began"} <= first.keys() or not any(self._finals):
                return None
        number = int(first.get("number", 0))
        return Past(str(first["event"]), float(first["began"]), self._finals, number)

    def begin(self, hub: Hub, *, is_new: bool) -> Past | None:
        """Continue the event that did not end, or begin one, with a journal of its finals.

        With `is_new`, the subtitles of an event that did not end are written, and a new event
        begins. Returns the journal of the continued event; None for a new one.
        """
        past = self.past()
        if past is not None and is_new:
            self.end(Hub())
            past = None
        if past is not None:
            hub.restore(past.event, past.entries, past.number)
        written = 0
        with _writing(self._folder):
            part = self._folder / f"{_JOURNAL}.part"
            self._journal = part.open("w", encoding="utf-8")
            began = past.began if past else time.time()
            self._write({"event": hub.name, "began": began, "number": hub.number})
            for entry in past.entries if past else ():
                self._write(asdict(entry))
                written += 1
            part.replace(self._folder / _JOURNAL)
        if past is not None:
            said = "the event in %s continues, with %d finals; --new-event begins another"
            _LOG.warning(said, self._folder, written)
        hub.on_final = self._note
        return past

    def end(self, hub: Hub) -> None:
        """Write the subtitles of each language, whole files or none, and remove the journal.

        They have the finals of the journal, and those of the hub that a full disk kept from it.
        """
        with _writing(self._folder):
            found = {one.caption.target: None for one in self._finals}
            languages = [*filter(None, found | dict.fromkeys(hub.languages()))]
            number = self._free_number(languages)
            parts: dict[Path, Path] = {}
            try:
                for language in languages:
                    finals = self._finals_in(language, hub)
                    for kind in KINDS:
                        path = self._file(language, kind, number)
                        parts[path] = path.with_name(f".{path.name}.part")
                        with _writing(path):
                            text = write_subtitles(finals, kind, self._limits)
                            parts[path].write_text(text, encoding="utf-8")
                for path, part in parts.items():
                    path.touch(exist_ok=False)
                    part.replace(path)
            finally:
                for part in parts.values():
                    part.unlink(missing_ok=True)
            (self._folder / _JOURNAL).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the folder; without `end`, the journal is kept for the next start."""
        if self._journal is not None:
            self._journal.close()
        self._lock.release()

    def _finals_in(self, language: str, hub: Hub) -> list[Entry]:
        entries = (one for one in self._finals if one.caption.target == language)
        found = {one.caption.segment: one for one in chain(entries, hub.finals(language))}
        return finals_of(found.values(), language)

    def _free_number(self, languages: list[str]) -> int:
        number = 1
        while any(self._file(one, k, number).exists() for one in languages for k in KINDS):
            number += 1
        return number

    def _file(self, language: str, kind: str, number: int) -> Path:
        return self._folder / f"{language}{'' if number == 1 else f'-{number}'}.{kind}"

    def _note(self, entry: Entry) -> None:
        try:
            self._write(asdict(entry))
        except OSError as error:  # captions continue
            _LOG.error("cannot write the journal in %s: %s", self._folder, error.strerror)

    def _write(self, members: Mapping[str, Any]) -> None:
        assert self._journal is not None  # noqa: S101 - `begin` opens it
        self._journal.write(json.dumps(members, ensure_ascii=False) + "\n")
        self._journal.flush()


def _read(line: str) -> dict[str, Any]:
    """Read a line; empty if a crash truncated it."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _entry(members: dict[str, Any]) -> Entry | None:
    try:
        return Entry(**{**members, "caption": Caption(**members["caption"])})
    except (KeyError, TypeError):
        return None


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Convert an error of the file system to one that names the folder or file of subtitles."""
    try:
        yield
    except OSError as error:
        raise ClientError(f"cannot write subtitles into {path}: {error.strerror}") from error


Format = Literal["vtt", "srt"]
KINDS: tuple[Format, ...] = ("vtt", "srt")


def write_subtitles(finals: Iterable[Entry], kind: Format, limits: CueLimits | None = None) -> str:
    """Write the finals of a language as subtitles."""
    return write_cues(make_cues(finals, limits or CueLimits()), f".{kind}")


class SubtitleFiles:
    """The subtitles of a running event, written in a thread, once for each new final."""

    def __init__(self, hub: Hub, limits: CueLimits) -> None:
        """Start without subtitles."""
        self._hub = hub
        self._limits = limits
        self._texts: dict[tuple[str, Format], tuple[int, asyncio.Future[str]]] = {}

    async def text(self, language: str, kind: Format) -> str:
        """Return the subtitles of a language up to now."""
        newest = self._hub.newest_final(language)
        known = self._texts.get((language, kind))
        if known is None or known[0] != newest or known[1].cancelled():
            writing = asyncio.to_thread(self._write, self._hub.entries(), language, kind)
            known = newest, asyncio.ensure_future(writing)
            self._texts[language, kind] = known
        return await asyncio.shield(known[1])

    def _write(self, entries: Sequence[Entry], language: str, kind: Format) -> str:
        return write_subtitles(finals_of(entries, language), kind, self._limits)
