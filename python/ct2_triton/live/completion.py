# SPDX-License-Identifier: Apache-2.0
"""The end of a final whose start viewers have seen already, and differently."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from ct2_triton.live.words import join_words, split_words
from ct2_triton.scripts import UNSPACED

_UNSPACED_END = re.compile(rf"[{UNSPACED}]$")


def begins_with(text: str, start: str) -> bool:
    """Tell whether a text begins with the words of another, each of them whole."""
    words = [word.rstrip() for word in split_words(start)]
    found = [word.rstrip() for word in split_words(text)[: len(words)]]
    return found == words and text.startswith(start)


def words_covered(final: str, committed: str) -> int:
    """Count the words of a final that what viewers have seen stands for.

    Args:
        final: The free translation.
        committed: What viewers have seen, which the final does not begin with.

    Returns:
        Where both have words in common: those up to the last of them, and as many more as were
        seen behind it. Else as many as were seen.
    """
    whole = [word.rstrip() for word in split_words(final)]
    seen = [word.rstrip() for word in split_words(committed)]
    blocks = SequenceMatcher(None, seen, whole, autojunk=False).get_matching_blocks()
    last = next((block for block in reversed(blocks) if block.size), None)
    covered = len(seen) if last is None else last.b + len(seen) - last.a
    return min(len(whole), covered)


def covered_start(final: str, committed: str) -> str:
    """Give the start of a final that what viewers have seen stands for."""
    return join_words(split_words(final)[: words_covered(final, committed)])


def spliced(committed: str, final: str) -> str:
    """Put the rest of a final behind what viewers have seen."""
    rest = join_words(split_words(final)[words_covered(final, committed) :])
    space = "" if not rest or _UNSPACED_END.search(committed) else " "
    return f"{committed}{space}{rest}"
