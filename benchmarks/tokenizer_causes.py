# SPDX-License-Identifier: Apache-2.0
"""Why two tokenizers differ on a line.

A cause counts only if the two tokenizers agree on the line without it. Causes are removed one after
the other until they do. A difference that no cause explains is a fault.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

UNEXPLAINED = "unexplained"
TIE = "equal scores"

Agree = Callable[[str], bool]


@dataclass(frozen=True)
class Cause:
    """Something in a line on which tokenizers differ.

    Attributes:
        name: What it is.
        meaning: What each side makes of it, in a sentence or two.
        without: Gives the line without it.
    """

    name: str
    meaning: str
    without: Callable[[str], str]


def causes(special: Sequence[str], added: Sequence[str] = ()) -> list[Cause]:
    """Lists what may be the cause of a difference.

    Args:
        special: Tokens that the reference does not treat as text.
        added: Tokens that were added to it, if it searches for them in its own way.
    """
    named = re.compile("|".join(map(re.escape, sorted(special, key=len, reverse=True))))
    tokens = re.compile(r"\s*(?:" + "|".join(map(re.escape, [*added, "\0" * 9])) + r")\s*")
    return [
        Cause(
            "spaces and words beside added tokens",
            "The slow tokenizers look for added tokens in the text as it is written, and have "
            "rules of their own for white space and words beside them. The backend and the fast "
            "tokenizers agree.",
            lambda line: tokens.sub(" x ", line),
        ),
        Cause(
            "special tokens in the text",
            "The backend spells `</s>`, `<unk>`, `eng_Latn` and the like in ordinary pieces, so "
            "that no text can end itself or change its language. transformers takes them for the "
            "tokens.",
            lambda line: named.sub("x", line),
        ),
        Cause(
            "U+0085 at the ends of the text",
            "Rust counts this control character as white space and cuts it off; SentencePiece "
            "makes it `<unk>`.",
            lambda line: line.strip("\x85 "),
        ),
        Cause(
            "runs of combining characters",
            "The fast tokenizers normalize grapheme by grapheme, and leave a long one as it is; "
            "SentencePiece normalizes character by character.",
            _without_marks,
        ),
        Cause(
            "joiners, selectors and controls beside letters",
            "They belong to a grapheme, which the fast tokenizers normalize as one.",
            _plain_letters,
        ),
    ]


def explain(line: str, agree: Agree, known: Sequence[Cause]) -> str:
    """Names the cause of a difference.

    Args:
        line: A line on which the two sides differ.
        agree: Returns whether they agree on a line.
        known: The possible causes.

    Returns:
        The last cause that had to be removed, or `UNEXPLAINED`.
    """
    for cause in known:
        changed = cause.without(line)
        if changed == line:
            continue
        if agree(changed):
            return cause.name
        line = changed
    return UNEXPLAINED


# Letters by category that combine with the preceding character.
_HALFWIDTH_SOUND_MARKS = "\uff9e\uff9f"


def _without_marks(line: str) -> str:
    marks = (c for c in line if unicodedata.category(c)[0] == "M" or c in _HALFWIDTH_SOUND_MARKS)
    return line.translate({ord(c): None for c in marks})


def _plain_letters(line: str) -> str:
    kept = (c if unicodedata.category(c)[0] in "LNPSZ" else " " for c in line)
    return re.sub(r"\s+", " ", "".join(kept)).strip()
