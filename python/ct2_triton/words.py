# SPDX-License-Identifier: Apache-2.0
"""Split texts into words, the units of committed captions and of metrics.

Some of these functions find the rest of a translation whose start viewers have seen in other words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
)
"""Scripts without spaces between words, as ranges of a regular expression: Thai, Lao, Burmese,
Khmer; Japanese kana; Chinese characters; full-width forms."""


# Each character of a script without spaces counts as a word.
_ONE = rf"(?:(?!\s)[{UNSPACED}]|[^\s{UNSPACED}]+)"  # the ideographic space is a space
_WORD = re.compile(rf"{_ONE}\s*")
_TOKEN = re.compile(rf"\s*{_ONE}")


def split_words(text: str) -> list[str]:
    """Split a text into words, each with the space after it.

    Joined, they are the text without leading white space.
    """
    return _WORD.findall(text)


def word_starts(text: str) -> list[int]:
    """Return where each word of a text begins, in bytes of its UTF-8."""
    starts, end, size = [], 0, 0
    for word in _WORD.finditer(text):
        size += len(text[end : word.start()].encode())
        starts.append(size)
        end = word.start()
    return starts


def word_tokens(text: str) -> tuple[str, ...]:
    """Split a text into words, each with the space before it, as a model's tokens have it.

    The first one has a space, too, in scripts with spaces, so that it may follow other words.
    """
    words = _TOKEN.findall(text)
    if words and not words[0][0].isspace() and not _UNSPACED_END.match(words[0][0]):
        words[0] = f" {words[0]}"
    return tuple(words)


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


_MOST_PAIRS = 100_000  # of words that are compared, some hundredths of a second
_UNSPACED_END = re.compile(rf"[{UNSPACED}]$")


def begins_with(text: str, start: str) -> bool:
    """Return whether a text begins with the words of another, each of them whole."""
    words = [word.rstrip() for word in split_words(start)]
    found = [word.rstrip() for word in split_words(text)[: len(words)]]
    return found == words and text.startswith(start)


def words_covered(final: str, committed: str) -> int:
    """Return how many words of `final` correspond to the text that viewers have seen.

    It is the length of the prefix of `final` with the smallest word edit distance to `committed`.
    Ties go to the length closest to that of `committed`; for very long texts it is that length.
    """
    whole = [word.rstrip() for word in split_words(final)]
    seen = [word.rstrip() for word in split_words(committed)]
    same = common_words(whole, seen)
    whole, seen = whole[same:], seen[same:]
    if len(whole) * len(seen) > _MOST_PAIRS:
        return same + min(len(whole), len(seen))
    edits = list(range(len(whole) + 1))  # of each start of the translation, to become nothing
    for count, word in enumerate(seen, start=1):
        before, edits = edits, [count]
        for place, other in enumerate(whole):
            replaced = before[place] + (word != other)
            edits.append(min(replaced, before[place + 1] + 1, edits[place] + 1))
    return same + min(range(len(edits)), key=lambda at: (edits[at], abs(at - len(seen))))


def covered_start(final: str, committed: str) -> str:
    """Return the start of a translation that corresponds to what viewers have seen."""
    return join_words(split_words(final)[: words_covered(final, committed)])


def spliced(committed: str, final: str) -> str:
    """Append the rest of a final to what viewers have seen."""
    rest = join_words(split_words(final)[words_covered(final, committed) :])
    space = "" if not rest or _UNSPACED_END.search(committed) else " "
    return f"{committed}{space}{rest}"
