# SPDX-License-Identifier: Apache-2.0
"""Which pieces could belong to a language, by the script it is written in.

Scripts are Unicode's (Script_Extensions, as `regex` has them), named by their ISO 15924 codes.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ct2_triton.prepared_model import Language

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
    """Tell whether each letter, mark and digit of a piece is of a script or of all scripts.

    None is for what all scripts share: digits, punctuation, symbols.
    """
    return not _foreign(script).search(piece)


def spells(piece: str) -> bool:
    """Tell whether a piece is a single character, with a space before it or not, or a byte.

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
