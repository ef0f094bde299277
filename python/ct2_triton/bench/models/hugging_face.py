# SPDX-License-Identifier: Apache-2.0
"""Hugging Face `generate` on rows of many lengths and languages, in its fastest configuration.

Choices for speed, and for the same answers as CTranslate2:

- Rows are sorted by length and padded in calls of `rows_per_call`, with an attention mask.
- Target languages are given as `decoder_input_ids`, one for each row. `forced_bos_token_id`, which
  most examples use, applies to a whole call, and would split a batch by its languages.
- The KV cache is on, gradients are off (`inference_mode`), and attention is PyTorch's fused
  one where transformers has it (not for T5). `torch.compile` is not used, because every batch has
  another shape and would be compiled anew.
- `int8` is PyTorch's dynamic quantization of all linear layers, the output projection included.
- The generation settings of a checkpoint are replaced, because its beams, penalties or forced
  tokens would change answers or lengths. Beam search stops as CTranslate2's does, when as many
  hypotheses are complete as there are beams. Scores are normalized slightly differently: with 4
  beams, 1 of 120 sentences of the demo model differed, with 1 or 2 beams none.
"""

from __future__ import annotations

import warnings
from itertools import groupby
from typing import TYPE_CHECKING, Any

import torch
import transformers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ct2_triton.bench.models.translator import Settings
    from ct2_triton.bench.setup import Row


class HuggingFaceTranslator:
    """A checkpoint of any encoder-decoder family."""

    def __init__(self, settings: Settings) -> None:
        """Load the model, and set the threads of this process; PyTorch runs one call at a time."""
        if settings.threads:
            torch.set_num_threads(settings.threads)
        self._settings = settings
        self._model = _load(settings)
        config, defaults = self._model.config, self._model.generation_config
        start = defaults.decoder_start_token_id
        self._start = config.decoder_start_token_id if start is None else start
        self._pad = config.pad_token_id
        self._end = config.eos_token_id
        # Marian's positions are a table. M2M100's are computed and unlimited, but limited in a
        # model converted for CTranslate2.
        self._max_positions = getattr(config, "max_position_embeddings", None)
        make_config: Any = transformers.GenerationConfig
        self._model.generation_config = make_config(
            max_length=1 + settings.max_decoding_length,  # the start token is not returned
            num_beams=settings.beam_size,
            early_stopping=settings.beam_size > 1,
            do_sample=False,
            eos_token_id=self._end,
            pad_token_id=self._pad,
            decoder_start_token_id=self._start,
            # Marian's padding token, which is in no answer, and not in the converted model.
            suppress_tokens=[self._pad] if config.model_type == "marian" else None,
        )

    def check(self, row: Row) -> None:
        """Refuse IDs outside the vocabulary and sources longer than the model's positions."""
        vocabulary = self._model.config.vocab_size
        outside = [i for i in (*row.input_ids, *row.target_prefix) if not 0 <= i < vocabulary]
        if outside:
            raise ValueError(f"id {outside[0]} is outside the vocabulary of {vocabulary} tokens")
        if self._max_positions is not None and len(row.input_ids) > self._max_positions:
            raise ValueError(
                f"the source has {len(row.input_ids)} tokens; the model has {self._max_positions} "
                "positions"
            )

    def translate(self, rows: Sequence[Row]) -> list[list[int]]:
        """Translate rows, sorted by length, in calls of `rows_per_call`."""
        answers = [list(row.target_prefix) for row in rows]
        for call in self._calls(rows):
            found = self._generate([rows[i] for i in call])
            for i, ids in zip(call, found, strict=True):
                answers[i] += ids
        return answers

    def _calls(self, rows: Sequence[Row]) -> Iterable[list[int]]:
        """Yield the indices of the rows of each call, whose decoder inputs must have one length."""

        def prefix_length(i: int) -> int:
            return len(rows[i].target_prefix)

        # An empty source has an empty translation, as in CTranslate2.
        full = [i for i in range(len(rows)) if rows[i].input_ids]
        full.sort(key=lambda i: (prefix_length(i), len(rows[i].input_ids)))
        size = self._settings.rows_per_call
        for _, group in groupby(full, key=prefix_length):
            numbers = list(group)
            yield from (numbers[first : first + size] for first in range(0, len(numbers), size))

    @torch.inference_mode()
    def _generate(self, rows: Sequence[Row]) -> list[list[int]]:
        """Run one call; return the IDs after each prefix."""
        width = max(len(row.input_ids) for row in rows)
        device = self._settings.library_device
        source = torch.full((len(rows), width), self._pad, device=device)
        mask = torch.zeros_like(source)
        for i, row in enumerate(rows):
            source[i, : len(row.input_ids)] = torch.tensor(row.input_ids, device=device)
            mask[i, : len(row.input_ids)] = 1
        starts = [[self._start, *row.target_prefix] for row in rows]
        first = torch.tensor(starts, device=device)
        sequences = self._model.generate(source, attention_mask=mask, decoder_input_ids=first)
        return [self._cut(ids) for ids in sequences[:, first.shape[1] :].tolist()]

    def _cut(self, ids: list[int]) -> list[int]:
        """Remove `</s>` and the padding after it."""
        return ids[: ids.index(self._end)] if self._end in ids else ids


def _load(settings: Settings) -> Any:  # noqa: ANN401 - transformers' models are untyped
    """Load a checkpoint in a precision."""
    is_int8 = settings.precision == "int8"
    model: Any = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        settings.model,
        dtype=torch.float32 if is_int8 else getattr(torch, settings.precision),
        local_files_only=True,
    ).eval()
    model.to(settings.library_device)
    if is_int8:
        quantize: Any = torch.ao.quantization.quantize_dynamic
        with warnings.catch_warnings():
            # Deprecated, but PyTorch itself has no successor.
            warnings.simplefilter("ignore")
            quantize(model, {torch.nn.Linear}, dtype=torch.qint8, inplace=True)
    return model
