# SPDX-License-Identifier: Apache-2.0
"""Teaches a tiny NLLB-shaped model to copy its input, so that its outputs end by themselves."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from tiny_corpus import LANGUAGES, sentences

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

_BATCH_ROWS = 32
_PEAK_LEARNING_RATE = 3e-3
_IGNORED = -100


def train_to_copy(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, steps: int, seed: int
) -> None:
    """Trains in place, on a sequence of batches that only the seed decides.

    Source: `[language] pieces </s>`; target: `[other language] pieces </s>`, decoded after `</s>`.

    Args:
        model: An M2M100 model with its usual initial weights.
        tokenizer: Its NLLB tokenizer.
        steps: How many batches of 32 sentences.
        seed: Chooses the sentences and their order.
    """
    import torch

    rng = random.Random(seed)
    torch.manual_seed(seed)
    rows = [tokenizer.encode(text, add_special_tokens=False) for text in sentences(4000, seed)]
    rows = [row for row in rows if len(row) < model.config.max_position_embeddings - 2]
    rows.sort(key=len)  # rows of one batch are of like length: little padding
    codes = tokenizer.convert_tokens_to_ids(list(LANGUAGES))
    optimizer = torch.optim.AdamW(model.parameters(), lr=_PEAK_LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=_PEAK_LEARNING_RATE, total_steps=steps, pct_start=0.2
    )
    model.train()
    for _ in range(steps):
        first = rng.randrange(len(rows) - _BATCH_ROWS)
        batch = _batch(rows[first : first + _BATCH_ROWS], codes, model.config, rng)
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    model.eval()


def _batch(
    rows: list[list[int]], codes: list[int], config: PretrainedConfig, rng: random.Random
) -> dict[str, Any]:
    """Pads one batch; `decoder_input_ids` are the labels shifted right behind `</s>`."""
    import torch

    end, pad = config.eos_token_id, config.pad_token_id
    sources = [[rng.choice(codes), *row, end] for row in rows]
    targets = [[rng.choice(codes), *row, end] for row in rows]
    longest = max(map(len, sources))

    def dense(values: list[list[int]], filler: int) -> torch.Tensor:
        return torch.tensor([row + [filler] * (longest - len(row)) for row in values])

    input_ids = dense(sources, pad)
    return {
        "input_ids": input_ids,
        "attention_mask": input_ids.ne(pad),
        "decoder_input_ids": dense([[end, *row[:-1]] for row in targets], pad),
        "labels": dense(targets, _IGNORED),
    }
