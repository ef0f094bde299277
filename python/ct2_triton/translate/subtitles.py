# SPDX-License-Identifier: Apache-2.0
"""Subtitles (.srt and .vtt): their texts are translated, their times stay."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SUFFIXES = (".srt", ".vtt")
_LINE_LETTERS = 42  # the width that broadcasters use


def is_subtitles(path: Path) -> bool:
    """Tell subtitles from other text, by the name of the file."""
    return path.suffix.lower() in SUFFIXES


def read_subtitles(path: Path) -> list[tuple[str, dict[str, int]]]:
    """Read the subtitles of a file.

    Args:
        path: A file whose name ends with .srt or .vtt, in UTF-8.

    Returns:
        For each subtitle its text, in one line and without markup, and its times: `start_ms` and
        `end_ms`.

    Raises:
        ClientError: The file cannot be read, or holds no subtitles.
    """
    return [
        (" ".join(event.plaintext.split()), {"start_ms": event.start, "end_ms": event.end})
        for event in _load(path)
    ]


def write_subtitles(source: Path, texts: Sequence[str], output: Path, suffix: str) -> None:
    """Write subtitles with the times of others.

    Args:
        source: The file that has the times.
        texts: A text for each of its subtitles.
        output: The file to write.
        suffix: The format: one of `SUFFIXES`.

    Raises:
        ClientError: `source` cannot be read.
    """
    subtitles = _load(source)
    for event, text in zip(subtitles, texts, strict=True):
        event.plaintext = textwrap.fill(text, _LINE_LETTERS, break_long_words=False)
    output.write_text(subtitles.to_string(suffix.lstrip(".").lower()), encoding="utf-8")


def _load(path: Path) -> Any:  # noqa: ANN401  pysubs2 has no types for mypy
    import pysubs2

    try:
        with path.open(encoding="utf-8-sig") as file:
            subtitles = pysubs2.SSAFile.from_file(file, path.suffix.lstrip(".").lower())
    except OSError as error:
        raise ClientError(f"cannot read {path}: {error.strerror}") from error
    except (UnicodeDecodeError, pysubs2.Pysubs2Error) as error:
        raise ClientError(f"cannot read {path}: {error}") from error
    if not subtitles and path.stat().st_size > len("WEBVTT\n\n"):
        raise ClientError(
            f"{path} holds no subtitles: their times are 00:00:01,000 --> 00:00:02,500"
        )
    return subtitles
