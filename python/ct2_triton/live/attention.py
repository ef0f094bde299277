# SPDX-License-Identifier: Apache-2.0
"""The attention of an answer's tokens, in words of the text that was translated."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from ct2_triton.words import split_words

if TYPE_CHECKING:
    from ct2_triton.client.client import TranslationClient
    from ct2_triton.client.results import Translation

_KEPT_TEXTS = 64  # a text goes into several languages
NOT_IN_TEXT = 1 << 20
"""Words after that of a token which attends to no word, but to the language before the text."""


class SourceAttention:
    """Find words by positions of source ids."""

    def __init__(self, client: TranslationClient) -> None:
        """Take the client whose tokenizer made the ids."""
        self._client = client
        self._words: OrderedDict[str, tuple[int, ...]] = OrderedDict()

    def words_behind(self, answer: Translation) -> tuple[int, ...] | None:
        """Count the words of the text after the one that each id of an answer attends to.

        It is 0 for the last word and for what follows the text; None where the server did not
        say any position.
        """
        alignments = answer.alignments
        if alignments is None or not any(position >= 0 for position in alignments):
            return None
        words = self._words_of_ids(answer.source_text)
        first, last = self._first_position(answer), words[-1] if words else 0

        def behind(position: int) -> int:
            if position < first:
                return NOT_IN_TEXT
            return last - words[position - first] if position < first + len(words) else 0

        return tuple(map(behind, alignments))

    def _words_of_ids(self, text: str) -> tuple[int, ...]:
        """Give for each id of a text the number of its word, from 1."""
        if text not in self._words:
            tokenizer = self._client.tokenizer
            ids = tokenizer.encode(text).ids
            counts = (len(split_words(tokenizer.decode(ids[: i + 1]))) for i in range(len(ids)))
            self._words[text] = tuple(counts)
            while len(self._words) > _KEPT_TEXTS:
                self._words.popitem(last=False)
        return self._words[text]

    def _first_position(self, answer: Translation) -> int:
        """Count the ids in front of the text in the row of source ids."""
        tokenizer = self._client.tokenizer
        rules = tokenizer.rules
        source = tokenizer.source(answer.source)
        (target,) = tokenizer.targets(answer.target)
        mark = -1  # no id
        return rules.input_ids([mark], source, target).index(mark)
