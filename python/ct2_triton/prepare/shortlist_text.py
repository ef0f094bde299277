# SPDX-License-Identifier: Apache-2.0
"""Counts the pieces of a text, and holds a part of it out to measure what the count is worth."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.errors import SettingError
from ct2_triton.prepare.shortlist_scripts import letters

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from ct2_triton.client.pieces import Pieces
    from ct2_triton.prepare.options import ShortlistOptions

_HELD_OUT_EVERY = 10
_LEAST_SHARE_OF_LETTERS = 0.5
_LETTERS_LOOKED_AT = 100_000


@dataclass(frozen=True)
class Coverage:
    """What part of the held-out lines a list of tokens can write.

    Attributes:
        tokens: Share of the tokens that are on the list.
        sentences: Share of the lines of which every token is on the list.
    """

    tokens: float
    sentences: float


@dataclass
class CountedText:
    """One text in a target language.

    Attributes:
        path: The file.
        sha256: Of its bytes.
        lines: Lines of the file.
        counted: Different lines, without white space around them, that were counted.
        counts: How often each id occurs in them.
        held_out: Ids of each line that was not counted: every tenth different one.
    """

    path: Path
    sha256: str = ""
    lines: int = 0
    counted: int = 0
    counts: Counter[int] = field(default_factory=Counter)
    held_out: list[array[int]] = field(default_factory=list)

    def coverage(self, ids: Container[int]) -> Coverage:
        """Measure a list of tokens on the held-out lines."""
        missing = [sum(token not in ids for token in line) for line in self.held_out]
        tokens = sum(map(len, self.held_out))
        return Coverage(1 - sum(missing) / tokens, missing.count(0) / len(missing))


def check_readable(options: ShortlistOptions) -> None:
    """Say what can be said of a shortlist's options before a model is looked for."""
    if options.size is not None and options.size < 1:
        raise SettingError(f"--shortlist-size {options.size} is not possible; give at least 1")
    for entry in options.entries:
        _, _, file = entry.strip().partition("=")
        if file:
            try:
                Path(file).open("rb").close()
            except OSError as error:
                raise _unreadable(Path(file), error) from error


def count_text(path: Path, pieces: Pieces, script: str | None, language: str) -> CountedText:
    """Read a text of one sentence a line; a script that is not known is not checked.

    SettingError where it cannot be read, is too short, or is not written in the script.
    """
    text = CountedText(path)
    seen: set[int] = set()
    own = total = 0
    for line in _lines(text):
        if not line or (key := hash(line)) in seen:
            continue
        seen.add(key)
        if script and total < _LETTERS_LOOKED_AT:
            own, total = (a + b for a, b in zip((own, total), letters(line, script), strict=True))
        ids = array("I", pieces.encode(line))
        if not ids:
            continue
        if len(seen) % _HELD_OUT_EVERY == 0:
            text.held_out.append(ids)
        else:
            text.counts.update(ids)
            text.counted += 1
    if not text.held_out:
        raise SettingError(
            f"--shortlist-from: {path} has {len(seen)} different lines of text; give at least "
            f"{_HELD_OUT_EVERY}, of which a tenth is held out to measure the coverage"
        )
    if script and own < _LEAST_SHARE_OF_LETTERS * max(total, 1):
        share = own / max(total, 1)
        raise SettingError(
            f"--shortlist-from: {share:.0%} of the letters in {path} are of {script}, the script "
            f"of {language}; give a text in that language, at least "
            f"{_LEAST_SHARE_OF_LETTERS:.0%} of it in its script"
        )
    return text


def _unreadable(path: Path, error: OSError) -> SettingError:
    return SettingError(f"--shortlist-from: cannot read {path}: {error.strerror}; name a text file")


def _lines(text: CountedText) -> Iterator[str]:
    """Yield the lines without white space around them, and fill in what is told of the file."""
    digest = hashlib.sha256()
    try:
        with text.path.open("rb") as file:
            for raw in file:
                digest.update(raw)
                text.lines += 1
                yield raw.decode("utf-8-sig" if text.lines == 1 else "utf-8").strip()
    except OSError as error:
        raise _unreadable(text.path, error) from error
    except UnicodeDecodeError as error:
        raise SettingError(
            f"--shortlist-from: {text.path}, line {text.lines} is not UTF-8 ({error.reason}); "
            "convert the file to UTF-8"
        ) from error
    text.sha256 = digest.hexdigest()
