# SPDX-License-Identifier: Apache-2.0
"""The input of a live translation (updates) and its output (captions)."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Any

from ct2_triton.errors import ClientError

MAX_SEGMENT_BYTES = 100
_MAX_SPEAKER_BYTES = 50  # of NAME~9999999/, which ct2-live writes before the segment's name
LATEST_S = 359_999.999  # the last time that subtitles can have, 99:59:59.999
_PIECE = re.compile(r"~[0-9]+\Z")  # ends the names of later pieces
_JSON_NAMES = {
    list: "a JSON array",
    str: "a JSON string",
    int: "a JSON number",
    float: "a JSON number",
    bool: "a JSON true or false",
    type(None): "a JSON null",
}
_FIELDS = ("segment", "text", "final", "stable_chars", "time")


class LiveInputError(ClientError):
    """An update is refused: correct what the message names. Other segments continue."""


@dataclass(frozen=True)
class SegmentUpdate:
    """The recognizer's current text of one segment, such as a sentence of one speaker.

    Attributes:
        segment: Unique name of the segment, 1 to 100 bytes of UTF-8; 150 with the speaker's. A
            recognizer's name must not end like that of a piece (`piece_name`).
        text: All of the segment's current text.
        final: Whether this is the segment's last update.
        stable_chars: Number of characters at the start of the text that the recognizer will not
            change; None if unknown.
        time: When this was said, in seconds from the start of the event, less than 100 hours; None
            if unknown.
    """

    segment: str
    text: str
    final: bool = False
    stable_chars: int | None = None
    time: float | None = None

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            LiveInputError: A value is invalid.
        """
        _check_name(self.segment, MAX_SEGMENT_BYTES + _MAX_SPEAKER_BYTES)
        _check_text("text", self.text)
        if not isinstance(self.final, bool):
            raise LiveInputError(f"final is {self.final!r}; it must be true or false")
        stable, time = self.stable_chars, self.time
        if stable is not None and not (_is_whole(stable) and 0 <= stable <= len(self.text)):
            raise LiveInputError(
                f"stable_chars is {stable!r}; it must be a whole number from 0 to the length of "
                f"the text, {len(self.text)}"
            )
        if time is not None and not (_is_number(time) and 0 <= time <= LATEST_S):
            raise LiveInputError(
                f"time is {time!r:.40}; it must be a number of seconds from 0 to {LATEST_S}, from "
                "the start of the event (less than 100 hours)"
            )

    @classmethod
    def from_json(cls, line: str | bytes) -> SegmentUpdate:
        """Read an update from a JSON object.

        Args:
            line: The object, as text or as UTF-8.

        Returns:
            The update. A segment name that is a whole number is converted to a string.

        Raises:
            LiveInputError: It is not such an object.
        """
        try:
            read = json.loads(line.decode() if isinstance(line, bytes) else line)
        except UnicodeDecodeError as error:
            raise LiveInputError(f"the update is not UTF-8 at byte {error.start}") from error
        except (ValueError, RecursionError) as error:
            raise LiveInputError(f"the update is not JSON: {error}") from error
        if not isinstance(read, dict):
            found = _JSON_NAMES[type(read)]
            raise LiveInputError(
                f"the update is {found}; it must be an object with segment and text"
            )
        if unknown := sorted(set(read) - set(_FIELDS)):
            raise LiveInputError(
                f"the update has the unknown member {unknown[0][:40]!r}; known are "
                f"{', '.join(_FIELDS)}"
            )
        if missing := [name for name in ("segment", "text") if name not in read]:
            raise LiveInputError(f"the update has no {missing[0]!r}")
        if _is_whole(read["segment"]):
            read["segment"] = str(read["segment"])
        _check_name(read["segment"], MAX_SEGMENT_BYTES)
        return cls(**read)


def piece_name(segment: str, number: int) -> str:
    """Return the name of a piece, numbered from 1: NAME, NAME~2, NAME~3 and so on."""
    return segment if number == 1 else f"{segment}~{number}"


def piece_of(name: str) -> tuple[str, int]:
    """Return the segment and the number of a piece from its name."""
    segment, _, number = name.rpartition("~")
    return (segment, int(number)) if is_piece_name(name) else (name, 1)


def is_piece_name(segment: str) -> bool:
    """Return whether a name ends like that of a piece."""
    return _PIECE.search(segment) is not None


@dataclass(frozen=True)
class Caption:
    """The current caption of a segment in one language.

    Attributes:
        segment: The segment.
        target: Code of the language; None for a model without target languages.
        committed: The committed text. Every later caption of this segment and language starts with
            it, except the final one (in mode "append", the final one too).
        tail: The text after it, which may still change.
        final: Whether this is the last caption of this segment and language; then all of the text
            is in `committed`.
        revision: 1, 2, ... in this segment and language. Captions that were not read in time are
            skipped, so numbers may be missing.
        transcript: In the final caption, the translation of the whole segment, unforced; else None.
        source: The text that was translated.
        time: Time of the update that it was taken from; None if unknown.
        error: Why the segment has no translation, in a final caption without one; else None.
        flags: In a final caption, the flags of the verdict (docs/quality.md), if there are any;
            else None.
        repeated: True in the final caption of a segment that repeats earlier ones too often: it is
            not translated, and has only the text committed in mode "append". Else None.
    """

    segment: str
    target: str | None
    committed: str
    tail: str
    final: bool
    revision: int
    transcript: str | None = None
    source: str = ""
    time: float | None = None
    error: str | None = None
    flags: tuple[str, ...] | None = None
    repeated: bool | None = None

    @property
    def shown(self) -> str:
        """The committed text and the tail."""
        return self.committed + self.tail

    def to_json(self) -> str:
        """Return the caption as one line of JSON, without members that are None."""
        members = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(members, ensure_ascii=False)


def _check_name(segment: object, most_bytes: int) -> None:
    name = _PIECE.sub("", _check_text("segment", segment))  # without the number of a piece
    if not 1 <= (size := len(name.encode())) <= most_bytes:
        raise LiveInputError(f"segment has {size} bytes; 1 to {most_bytes} are allowed")


def _check_text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise LiveInputError(f"{name} is {value!r:.40}; it must be a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise LiveInputError(
            f"{name} is not valid Unicode: half a surrogate pair at character {error.start}"
        ) from error
    return value


def _is_whole(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, (int, float)) and not isinstance(value, bool)
