# SPDX-License-Identifier: Apache-2.0
"""Translate texts with a converted model in this process, like a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ct2_triton.client.pieces import read_pieces
from ct2_triton.prepare.verification.comparison import ConvertedModel

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ct2_triton.prepared_model import Language, TokenRules

_ROWS_AT_A_TIME = 32


class Answer(NamedTuple):
    """A translation, and the mean log-probability of its tokens."""

    text: str
    score: float


class TextTranslator:
    """A converted model with its tokenizer and greedy search."""

    def __init__(self, folder: Path, tokenizer_folder: Path, rules: TokenRules) -> None:
        """Load the model."""
        self.model = ConvertedModel(folder)
        self._rules = rules
        self._pieces = read_pieces(tokenizer_folder, rules)

    def translate(
        self,
        texts: Sequence[str],
        source: Language | None,
        targets: Sequence[Language | None],
        most_tokens: int,
    ) -> list[Answer]:
        """Translate texts from one language, each into its own target language."""
        if not texts:
            return []
        rules = self._rules
        rows = [
            rules.input_ids(self._pieces.encode(text), source, target)
            for text, target in zip(texts, targets, strict=True)
        ]
        answers = self.model.scored(
            rows,
            [rules.target_prefix(target) for target in targets],
            beam_size=1,
            max_decoding_length=most_tokens,
            max_batch_size=_ROWS_AT_A_TIME,
            max_input_length=rules.max_source_tokens or 0,
        )
        return [
            Answer(self._pieces.decode(rules.without_prefix(ids, target)), score)
            for (ids, score), target in zip(answers, targets, strict=True)
        ]
