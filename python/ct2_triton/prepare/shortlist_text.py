# SPDX-License-Identifier: Apache-2.0
"""Counts the pieces of a text, and holds a part of it out to measure what the count is worth.

Scripts tell which pieces could belong to a language. They are Unicode's (Script_Extensions, as
`regex` has them), named by their ISO 15924 codes.
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
    from ct2_triton.prepare.options import ShortlistOptions
    from ct2_triton.prepared_model import Language

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
            f"--shortlist-from: only {share:.0%} of the letters in {path} are {script}, the script "
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


_SPACE = "▁"
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
_SCRIPT_OF_CODE = re.compile(r"[_-]([A-Z][a-z]{3})$")  # deu_Latn, zh-Hans

# ISO 15924 codes of ways to write that use several of Unicode's scripts, or a part of one.
_PARTS = {
    "Hans": ("Hani",),
    "Hant": ("Hani",),
    "Jpan": ("Hani", "Hira", "Kana"),
    "Kore": ("Hang", "Hani"),
}


def script_of(language: Language, family: str) -> str | None:
    """Find the ISO 15924 code of the script that a language of a model is written in.

    It is that of the language's own code, whose meaning the family knows, else the usual one by
    CLDR's likely subtags; None where it is not known, as for a group of languages.
    """
    from ct2_triton.prepare.families import FAMILIES

    if match := _SCRIPT_OF_CODE.search(language.code):
        return match[1] if _is_script(match[1]) else None
    import langcodes

    tag = next(known for known in FAMILIES if known.name == family).language_tag(language.code)
    # Without a subtag that CLDR knows, the likely script would be that of English.
    if not tag or not langcodes.tag_is_valid(tag):
        return None
    script = langcodes.Language.get(tag).maximize().script
    return script if script and _is_script(script) else None


def belongs(piece: str, script: str | None) -> bool:
    """Return whether each letter, mark and digit of a piece is of a script or of all scripts.

    None is for what all scripts share: digits, punctuation, symbols.
    """
    return not _foreign(script).search(piece)


def spells(piece: str) -> bool:
    """Return whether a piece is a single character, with a space before it or not, or a byte.

    With these any text can be spelled that the model could write at all.
    """
    return len(piece.replace(_SPACE, "")) <= 1 or bool(_BYTE.fullmatch(piece))


def letters(text: str, script: str) -> tuple[int, int]:
    """Count the letters of a text that could be of the script, and all its letters."""
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
