# SPDX-License-Identifier: Apache-2.0
"""Which part of a recognizer's text is worth a translation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ct2_triton.words import common_words, join_words, split_words

if TYPE_CHECKING:
    from ct2_triton.live.updates import SegmentUpdate


class StableSource:
    """The settled part of one segment's text.

    It is the recognizer's own stable part where it names one. Else it is what two updates one
    after the other agree on, word by word (local agreement).
    """

    def __init__(self, *, agreement: bool = True) -> None:
        """Start a segment; without agreement the newest text counts as it is."""
        self._agreement = agreement
        self._previous: list[str] | None = None

    def take(self, update: SegmentUpdate) -> str:
        """Take the next update that is not final, and give the text to translate, or ""."""
        words = split_words(update.text)
        previous, self._previous = self._previous, words
        if update.stable_chars is not None:
            return _whole_words(update.text, update.stable_chars)
        if not self._agreement:
            return join_words(words)
        return join_words(words[: common_words(previous or [], words)])


def _whole_words(text: str, length: int) -> str:
    """Cut a text at a length, and a word that the cut would split with it."""
    words, kept = split_words(text), 0
    end = len(text) - len("".join(words))
    for word in words:
        end += len(word)
        if end - (len(word) - len(word.rstrip())) > length:
            break
        kept += 1
    return join_words(words[:kept])
