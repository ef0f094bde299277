# SPDX-License-Identifier: Apache-2.0
"""Subtitles: SubRip (.srt) and WebVTT (.vtt)."""

from __future__ import annotations

import html
import io
import re
import unicodedata
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from ct2_triton.errors import ClientError
from ct2_triton.words import split_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

SUFFIXES = (".srt", ".vtt")
_LINE_LETTERS = 42  # characters of a line, as broadcasters use
_LATEST_MS = 100 * 3_600_000 - 1
# Two times: hours, minutes, seconds and fractions; WebVTT has settings after them.
_TIMES = {
    suffix: re.compile(rf"{time}\s*-->\s*{time}(?:\s.*)?")
    for suffix, time in (
        (".srt", r"(\d{1,2}):(\d{1,2}):(\d{1,2})[.,](\d{1,3})"),
        (".vtt", r"(?:(\d{1,2}):)?(\d{2}):(\d{2})\.(\d{2,3})"),
    )
}
# A line with a time at one side of an arrow, or that a time begins and a cut ends.
_LIKE_TIMES = re.compile(r"\s*\d+:\d\d[\d:.,]*\s*-->|.*-->\s*\d+:\d\d|\s*\d+:\d\d:\d\d[.,]\d*\s*$")
# Tags, times within WebVTT's text, and overrides such as {\an8}.
_MARKUP = re.compile(r"</?[A-Za-z][^<>]*>|<[\d:.]+>|\{\\[^{}]*\}")
_NO_MARKUP = {ord("{"): "(", ord("}"): ")"}  # players read {...} in SubRip as markup


@dataclass(frozen=True)
class Cue:
    """Lines of text, and when they are shown, in milliseconds since the event began."""

    start_ms: int
    end_ms: int
    lines: Sequence[str]


def is_subtitles(path: Path) -> bool:
    """Return whether a file has subtitles, by its name."""
    return path.suffix.lower() in SUFFIXES


def read_subtitles(path: Path) -> list[tuple[str, dict[str, int]]]:
    """Read .srt or .vtt in UTF-8; return one-line texts without markup, with their times."""
    return [
        (" ".join(" ".join(cue.lines).split()), {"start_ms": cue.start_ms, "end_ms": cue.end_ms})
        for cue in _read_cues(path)
    ]


def write_subtitles(source: Path, texts: Sequence[str], output: Path, suffix: str) -> None:
    """Write subtitles with the times of those in `source`: one text for each."""
    cues = (
        replace(cue, lines=filled(split_words(" ".join(text.split())), _LINE_LETTERS))
        for cue, text in zip(_read_cues(source), texts, strict=True)
    )
    output.write_text(write_cues(cues, suffix), encoding="utf-8")


def write_cues(cues: Iterable[Cue], suffix: str) -> str:
    """Write cues."""
    is_vtt = suffix.lower() == ".vtt"
    blocks = [_block(number, cue, is_vtt=is_vtt) for number, cue in enumerate(cues, 1)]
    return "\n".join(["WEBVTT\n", *blocks] if is_vtt else blocks)


def width(text: str) -> int:
    """Return the columns of a text: two per wide character, none per combining mark."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(one) in {"Mn", "Me", "Cf"}
        else 2 if unicodedata.east_asian_width(one) in "WF"
        else 1
        for one in text
    )  # fmt: skip


def filled(words: Sequence[str], columns: int) -> list[str]:
    """Return filled lines; a word wider than the columns has its own line."""
    lines, used = [""], 0
    for word in words:
        if lines[-1] and used + width(word.rstrip()) > columns:
            lines.append("")
            used = 0
        lines[-1] += word
        used += width(word)
    return [line.rstrip() for line in lines]


def _block(number: int, cue: Cue, *, is_vtt: bool) -> str:
    lines = "\n".join(cue.lines).translate(_NO_MARKUP)
    times = f"{_stamp(cue.start_ms)} --> {_stamp(cue.end_ms)}"
    if is_vtt:
        return f"{times}\n{html.escape(lines, quote=False)}\n"
    return f"{number}\n{times.replace('.', ',')}\n{lines}\n"


def _stamp(ms: int) -> str:
    seconds, ms = divmod(min(max(ms, 0), _LATEST_MS), 1000)
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}.{ms:03}"


def _read_cues(path: Path) -> list[Cue]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ClientError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        encoding = "UTF-16" if error.object.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "ENCODING"
        raise ClientError(
            f"{path} is not UTF-8: byte {error.start} is {error.object[error.start]:#x}; "
            f"convert it first, with iconv -f {encoding} -t UTF-8"
        ) from error
    lines = [line.rstrip("\n") for line in io.StringIO(text, newline=None)]
    times = _find_times(path, lines)
    if not times and len(text) > len("WEBVTT\n\n"):
        raise ClientError(
            f"{path} holds no subtitles: their times are 00:00:01,000 --> 00:00:02,500"
        )
    is_vtt = path.suffix.lower() == ".vtt"
    first, ends = min(times, default=0), [*times, len(lines)][1:]
    has_numbers = any(line.strip().isdecimal() for line in lines[:first])
    cues = []
    for (begin, (start_ms, end_ms)), end in zip(times.items(), ends, strict=True):
        shown = lines[begin + 1 : end]
        if is_vtt:
            shown = [html.unescape(_MARKUP.sub("", one)) for one in takewhile(bool, shown)]
        else:
            if has_numbers and end < len(lines):
                shown = _without_number(shown)
            shown = [_MARKUP.sub("", one) for one in shown]
        cues.append(Cue(start_ms, end_ms, shown))
    return cues


def _find_times(path: Path, lines: Sequence[str]) -> dict[int, tuple[int, int]]:
    """Return start and end in ms by the index of their line; refuse damaged or too late times."""
    times = _TIMES[path.suffix.lower()]
    found = {}
    for index, line in enumerate(lines):
        match = times.fullmatch(line.strip())
        if match:
            groups = match.groups()
            found[index] = (_milliseconds(*groups[:4]), _milliseconds(*groups[4:]))
        elif _LIKE_TIMES.match(line):
            example = "00:00:01,000 --> 00:00:02,500"
            raise ClientError(
                f"{path}:{index + 1}: {line.strip()[:80]!r} is not the time of a subtitle; write "
                f"it as {example.replace(',', '.') if times is _TIMES['.vtt'] else example}, with "
                "at most 99 hours"
            )
    return found


def _milliseconds(hours: str | None, minutes: str, seconds: str, fraction: str) -> int:
    whole = 3600 * int(hours or 0) + 60 * int(minutes) + int(seconds)
    return 1000 * whole + int(fraction.ljust(3, "0"))


def _without_number(lines: list[str]) -> list[str]:
    """Leave out the next subtitle's number: right before its time, or alone in its paragraph."""
    last = max((index for index, line in enumerate(lines) if line.strip()), default=0)
    is_own_line = last == len(lines) - 1 or (last > 0 and not lines[last - 1].strip())
    return lines[:last] if is_own_line and lines[last].strip().isdecimal() else lines
