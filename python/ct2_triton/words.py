# SPDX-License-Identifier: Apache-2.0
"""Texts as sequences of words: the units that captions settle by and metrics count."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ct2_triton.scripts import UNSPACED

if TYPE_CHECKING:
    from collections.abc import Sequence

# Each letter of a script without spaces counts as a word.
_WORD = re.compile(rf"(?:[{UNSPACED}]|[^\s{UNSPACED}]+)\s*")


def split_words(text: str) -> list[str]:
    """Split a text into words, each with the space after it.

    Joined, they give the text again, less white space in front.
    """
    return _WORD.findall(text)


def join_words(words: Sequence[str]) -> str:
    """Join words that `split_words` made, without white space at the end."""
    return "".join(words).rstrip()


def common_words(first: Sequence[str], second: Sequence[str]) -> int:
    """Count the first words that two texts have in common, whatever space follows them."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one.rstrip() != other.rstrip():
            break
        count += 1
    return count
