# SPDX-License-Identifier: Apache-2.0
"""Count the pieces of a text, and hold out a part of it to measure the coverage.

Scripts decide which pieces can belong to a language. They are Unicode's Script_Extensions in
`regex`, named by their ISO 15924 codes.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ct2_triton.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from ct2_triton.client.pieces import Pieces
    from ct2_triton.prepare.families import Family
    from ct2_triton.prepare.options import ShortlistOptions
    from ct2_triton.prepared_model import Language

_HELD_OUT_EVERY = 10
_LEAST_SHARE_OF_LETTERS = 0.5
_LETTERS_LOOKED_AT = 100_000


@dataclass(frozen=True)
class Coverage:
    """Coverage of the held-out lines by a list of tokens.

    Attributes:
        tokens: Share of the tokens that are on the list.
        sentences: Share of the lines with all tokens on the list.
    """

    tokens: float
    sentences: float


@dataclass
class CountedText:
    """One text in a target language.

    Attributes:
        path: The file.
        sha256: Checksum of the file.
        lines: Number of its lines.
        counted: Number of distinct stripped lines that were counted.
        counts: How often each ID occurs in them.
        held_out: IDs of each held-out line: every tenth distinct one.
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
    """Check a shortlist's options before a model is looked for."""
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
    """Read a text with one sentence per line; an unknown script is not checked.

    Raises SettingError if it cannot be read, is too short, or is not written in the script.
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
            f"--shortlist-from: only {share:.0%} of the letters in {path} are {script}, the script "
            f"of {language}; give a text in that language, at least "
            f"{_LEAST_SHARE_OF_LETTERS:.0%} of it in its script"
        )
    return text


def _unreadable(path: Path, error: OSError) -> SettingError:
    return SettingError(f"--shortlist-from: cannot read {path}: {error.strerror}; name a text file")


def _lines(text: CountedText) -> Iterator[str]:
    """Yield the stripped lines, and set the checksum and the number of lines."""
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


_SPACE = "▁"
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
_SCRIPT_OF_CODE = re.compile(r"[_-]([A-Z][a-z]{3})$")  # deu_Latn, zh-Hans

# ISO 15924 codes of writing systems with several of Unicode's scripts, or a part of one.
_PARTS = {
    "Hans": ("Hani",),
    "Hant": ("Hani",),
    "Jpan": ("Hani", "Hira", "Kana"),
    "Kore": ("Hang", "Hani"),
}


def script_of(language: Language, family: Family) -> str | None:
    """Return the ISO 15924 code of the script of a model's language.

    It is that of the language's code, which the family interprets, else the usual one by CLDR's
    likely subtags; None if it is not known, as for a group of languages.
    """
    if match := _SCRIPT_OF_CODE.search(language.code):
        return match[1] if _is_script(match[1]) else None
    import langcodes

    tag = family.language_tag(language.code)
    # For an unknown subtag, CLDR's likely script would be that of English.
    if not tag or not langcodes.tag_is_valid(tag):
        return None
    script = langcodes.Language.get(tag).maximize().script
    return script if script and _is_script(script) else None


def belongs(piece: str, script: str | None) -> bool:
    """Return whether each letter, mark and digit of a piece belongs to a script or to all.

    None selects what all scripts share: digits, punctuation, symbols.
    """
    return not _foreign(script).search(piece)


def spells(piece: str) -> bool:
    """Return whether a piece is a single character, with or without a space before it, or a byte.

    Any text that the model can write can be spelled with these.
    """
    return len(piece.replace(_SPACE, "")) <= 1 or bool(_BYTE.fullmatch(piece))


def letters(text: str, script: str) -> tuple[int, int]:
    """Count the letters of a text that can belong to the script, and all its letters."""
    found = _letter().findall(text)
    foreign = _foreign(script)
    return sum(not foreign.match(letter) for letter in found), len(found)


def _classes(script: str | None) -> str:
    parts = _PARTS.get(script, (script,)) if script else ()
    return "".join(rf"\p{{scx={part}}}" for part in (*parts, "Zyyy", "Zinh"))


@cache
def _foreign(script: str | None) -> re.Pattern[str]:
    import regex

    pattern: re.Pattern[str] = regex.compile(
        rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_classes(script)}]]", regex.V1
    )
    return pattern


@cache
def _letter() -> re.Pattern[str]:
    import regex

    pattern: re.Pattern[str] = regex.compile(r"\p{L}")
    return pattern


def _is_script(code: str) -> bool:
    import regex

    try:
        _foreign(code)
    except regex.error:
        return False
    return True
