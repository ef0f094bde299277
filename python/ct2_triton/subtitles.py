# SPDX-License-Identifier: Apache-2.0
"""Subtitles: SubRip (.srt) and WebVTT (.vtt)."""

from __future__ import annotations

import html
import io
import re
import unicodedata
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import ClientError
from ct2_triton.words import split_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

SUFFIXES = (".srt", ".vtt")
_LINE_LETTERS = 42  # characters of a line, as broadcasters use
# Two times, as pysubs2 reads and writes them; WebVTT has settings after them.
_TIMES = {
    suffix: re.compile(rf"{time}\s*-->\s*{time}(?:\s.*)?")
    for suffix, time in (
        (".srt", r"\d{1,2}:\d{1,2}:\d{1,2}[.,]\d{1,3}"),
        (".vtt", r"(?:\d{1,2}:)?\d{2}:\d{2}\.\d{2,3}"),
    )
}
# A line with a time at one side of an arrow, or that a time begins and a cut ends.
_LIKE_TIMES = re.compile(r"\s*\d+:\d\d[\d:.,]*\s*-->|.*-->\s*\d+:\d\d|\s*\d+:\d\d:\d\d[.,]\d*\s*$")
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
    plain = html.unescape if path.suffix.lower() == ".vtt" else str
    return [
        (" ".join(plain(event.plaintext).split()), {"start_ms": event.start, "end_ms": event.end})
        for event in _load(path)
    ]


def write_subtitles(source: Path, texts: Sequence[str], output: Path, suffix: str) -> None:
    """Write subtitles with the times of those in `source`: one text for each."""
    cues = (
        Cue(event.start, event.end, filled(split_words(" ".join(text.split())), _LINE_LETTERS))
        for event, text in zip(_load(source), texts, strict=True)
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
    from pysubs2.formats.subrip import SubripFormat
    from pysubs2.formats.webvtt import WebVTTFormat

    lines = "\n".join(cue.lines).translate(_NO_MARKUP)
    stamp = (WebVTTFormat if is_vtt else SubripFormat).ms_to_timestamp
    times = f"{stamp(cue.start_ms)} --> {stamp(cue.end_ms)}"
    if is_vtt:
        return f"{times}\n{html.escape(lines, quote=False)}\n"
    return f"{number}\n{times}\n{lines}\n"


def _check_times(path: Path, text: str) -> None:
    """Refuse times that are damaged or too late, which pysubs2 takes for text, or changes."""
    times = _TIMES[path.suffix.lower()]
    for number, line in enumerate(io.StringIO(text, newline=None), 1):
        if _LIKE_TIMES.match(line) and not times.fullmatch(line.strip()):
            example = "00:00:01,000 --> 00:00:02,500"
            raise ClientError(
                f"{path}:{number}: {line.strip()[:80]!r} is not the time of a subtitle; write it "
                f"as {example.replace(',', '.') if times is _TIMES['.vtt'] else example}, with at "
                "most 99 hours"
            )


def _load(path: Path) -> Any:  # noqa: ANN401  pysubs2 has no types for mypy
    import pysubs2

    try:
        text = path.read_text(encoding="utf-8-sig")
        _check_times(path, text)
        subtitles = pysubs2.SSAFile.from_string(text, path.suffix.lstrip(".").lower())
    except OSError as error:
        raise ClientError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        encoding = "UTF-16" if error.object.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "ENCODING"
        raise ClientError(
            f"{path} is not UTF-8: byte {error.start} is {error.object[error.start]:#x}; "
            f"convert it first, with iconv -f {encoding} -t UTF-8"
        ) from error
    except pysubs2.Pysubs2Error as error:
        raise ClientError(f"cannot read {path}: {error}") from error
    if not subtitles and path.stat().st_size > len("WEBVTT\n\n"):
        raise ClientError(
            f"{path} holds no subtitles: their times are 00:00:01,000 --> 00:00:02,500"
        )
    return subtitles
