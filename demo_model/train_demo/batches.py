# SPDX-License-Identifier: Apache-2.0
"""Training batches, decided by the seed and the number of the batch alone."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from train_demo.corpus import training_sentences
from train_demo.languages import FLORES, SOURCE, TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch
    from transformers import NllbTokenizer

    from train_demo.grammar import Grammar

Rows = list[list[int]]


@dataclass(frozen=True)
class Batch:
    """Padded ids.

    Attributes:
        sources: `[language] pieces </s>`, (n, source length).
        source_mask: True where no padding is, of the same shape.
        targets: `</s> [language] pieces </s>`, (n x languages, target length).
        target_mask: True where no padding is, of the same shape.
    """

    sources: torch.Tensor
    source_mask: torch.Tensor
    targets: torch.Tensor
    target_mask: torch.Tensor


class TrainingData:
    """All sentences of a training, tokenized, in batches of like length."""

    def __init__(
        self,
        grammar: Grammar,
        tokenizer: NllbTokenizer,
        sentences: int,
        batch_sentences: int,
        seed: int,
    ) -> None:
        """Draws and tokenizes.

        Args:
            grammar: Where the sentences come from.
            tokenizer: Turns them into ids.
            sentences: How many English sentences.
            batch_sentences: How many of them make a batch.
            seed: Chooses the sentences and the order of the batches.
        """
        self._tokenizer = tokenizer
        drawn = training_sentences(grammar, sentences, seed)
        self._rows = [
            (self._row(s.texts, SOURCE), [self._row(s.texts, t) for t in TARGETS]) for s in drawn
        ]
        rng = random.Random(seed)
        order = sorted(range(len(self._rows)), key=lambda i: (self._length(i), rng.random()))
        whole = len(order) // batch_sentences * batch_sentences
        self._batches = [
            order[first : first + batch_sentences] for first in range(0, whole, batch_sentences)
        ]
        rng.shuffle(self._batches)

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._batches)

    def from_batch(self, first: int) -> Iterator[Batch]:
        """Yield the batches from this number on."""
        for numbers in self._batches[first:]:
            rows = [self._rows[i] for i in numbers]
            sources = [[*source, self._end] for source, _ in rows]
            targets = [[self._end, *row, self._end] for _, targets in rows for row in targets]
            yield Batch(*self._dense(sources), *self._dense(targets))

    @property
    def _end(self) -> int:
        return int(self._tokenizer.eos_token_id)

    def _row(self, texts: dict[str, str], language: str) -> list[int]:
        ids = self._tokenizer.sp_model.encode(texts[language])
        offset = self._tokenizer.fairseq_offset
        code = self._tokenizer.convert_tokens_to_ids(FLORES[language])
        return [code, *(piece + offset for piece in ids)]

    def _length(self, number: int) -> int:
        source, targets = self._rows[number]
        return len(source) + max(map(len, targets))

    def _dense(self, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
        import torch

        longest = max(map(len, rows))
        pad = int(self._tokenizer.pad_token_id)
        ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
        return ids, ids.ne(pad)
