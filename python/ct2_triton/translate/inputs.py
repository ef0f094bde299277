# SPDX-License-Identifier: Apache-2.0
"""The inputs of ct2-translate: lines of text, lines of JSON, and subtitles."""

from __future__ import annotations

import json
import logging
import math
import os
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from ct2_triton.client.stream import Sentence
from ct2_triton.client.tasks import read_lines
from ct2_triton.errors import ClientError, MalformedLineError
from ct2_triton.subtitles import is_subtitles, read_subtitles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ct2_triton.client.stream import StreamItem

_LOG = logging.getLogger(__name__)
BROKEN = "\ufffd"  # replaces bytes that are not UTF-8
_HEAD_LINES = 10  # lines that are searched for zero bytes, which text does not have
_JSON_SUFFIX = ".jsonl"
_TEXT = "text"


@dataclass(frozen=True)
class Line(Sentence):
    """A sentence of the input.

    Attributes:
        number: Number of its line in the file, from 1.
        file: The file; None for standard input.
        fields: Other members of a line of JSON, or a subtitle's times. JSON output repeats them.
        problem: Why the line has no sentence; then its text is empty.
    """

    number: int = 0
    file: Path | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    problem: ClientError | None = None

    def __str__(self) -> str:
        """Return the position of the line, in the format of compilers."""
        return f"line {self.number}" if self.file is None else f"{self.file}:{self.number}"


def read_inputs(files: Sequence[Path], *, as_json: bool) -> Iterator[Line]:
    """Read text, subtitles or JSON lines, by the names of the files, or standard input.

    With `as_json`, standard input has lines of JSON.
    """
    if not files:
        lines = _lines_of(None, 0)
        yield from map(from_json, lines) if as_json else lines
    for file in files:
        if is_subtitles(file):
            for number, (text, times) in enumerate(read_subtitles(file), 1):
                yield Line(text, number=number, file=file, fields=times)
            continue
        try:
            descriptor = os.open(file, os.O_RDONLY)
        except OSError as error:
            raise ClientError(f"cannot read {file}: {error.strerror}") from error
        try:
            lines = _lines_of(file, descriptor)
            yield from map(from_json, lines) if file.suffix == _JSON_SUFFIX else lines
        finally:
            os.close(descriptor)


def warn_of_encoding(line: Line) -> None:
    """Warn of a line with bytes that are not UTF-8."""
    _LOG.warning(
        "%s: it has U+FFFD, which stands for bytes that are not UTF-8; if the text is in another "
        "encoding, convert it first",
        line,
    )


def check_file(file: Path) -> None:
    """Refuse a file that is UTF-16 or binary."""
    try:
        with file.open("rb") as opened:
            for number, text in enumerate(islice(read_lines(opened.fileno()), _HEAD_LINES), 1):
                check_text(Line(text, number=number, file=file))
    except OSError as error:
        raise ClientError(f"cannot read {file}: {error.strerror}") from error


def check_text(line: Line) -> None:
    """Refuse a file that is UTF-16 or binary, by one of its first lines."""
    is_utf_16 = line.number == 1 and line.text.startswith(2 * BROKEN)
    if is_utf_16 or (line.number <= _HEAD_LINES and "\0" in line.text):
        raise ClientError(
            f"{line.file or 'standard input'} is not UTF-8: line {line.number} has bytes of "
            "UTF-16 or of a binary file; convert UTF-16 with iconv -f UTF-16 -t UTF-8"
        )


def _lines_of(file: Path | None, descriptor: int) -> Iterator[Line]:
    is_whole = True
    try:
        for number, text in enumerate(read_lines(descriptor), 1):
            line = line_of(text, number, file)
            check_text(line)
            if is_whole and BROKEN in text:
                is_whole = False  # one warning is enough
                warn_of_encoding(line)
            yield line
    except OSError as error:  # such as a folder
        name = file or "standard input"
        raise ClientError(f"cannot read {name}: {error.strerror}") from error


def line_of(text: str, number: int, file: Path | None) -> Line:
    """Make a line of a file; a byte order mark at the start of the file is no part of it."""
    return Line(text.removeprefix("\ufeff") if number == 1 else text, number=number, file=file)


def from_json(line: Line) -> Line:
    """Read the sentence of a line of JSON: a string, or an object with a text.

    A blank line is an empty sentence. Any other line has a `problem` and fails alone, with its
    members.
    """
    if not line.text.strip():
        return line
    try:
        value = json.loads(line.text, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        return _malformed(line, {}, f"the line cannot be read as JSON ({error})")
    fields = dict(value) if isinstance(value, dict) else {_TEXT: value}
    text = fields.get(_TEXT)
    if not isinstance(text, str):
        return _malformed(
            line,
            fields,
            "the line has no text: it must be a JSON string or an object with a string "
            f'"{_TEXT}", as in {{"{_TEXT}": "Hi."}}',
        )
    del fields[_TEXT]
    return replace(line, text=text, fields=fields)


def _finite(number: str) -> float:
    """Read a finite number, because others cannot be written as JSON."""
    if not math.isfinite(value := float(number)):
        raise ValueError(f"{number} is not a finite number")
    return value


def _malformed(line: Line, fields: dict[str, Any], why: str) -> Line:
    return replace(line, text="", fields=fields, problem=MalformedLineError(why))


def judged(item: StreamItem) -> StreamItem:
    """Return the item, with the line's own error if the line has no sentence."""
    problem = cast("Line", item.sentence).problem
    return item if problem is None else replace(item, outcome=problem)
