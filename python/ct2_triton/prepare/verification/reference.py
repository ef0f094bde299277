# SPDX-License-Identifier: Apache-2.0
"""The answers of `transformers` itself to the probes, in float32."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from transformers import GenerationConfig
    from transformers.generation.utils import GenerateEncoderDecoderOutput

    from ct2_triton.prepare.verification.probes import Probe

_CANDIDATES = 10


@dataclass(frozen=True)
class Row:
    """The IDs of one probe.

    Attributes:
        probe: The probe.
        input_ids: The source, complete.
        prefix_ids: Forced start of the output.
        echoed: Number of prefix IDs that are part of the output; the others start the decoder.
    """

    probe: Probe
    input_ids: Sequence[int]
    prefix_ids: Sequence[int]
    echoed: int

    @property
    def starts(self) -> bool:
        """Whether the prefix starts the decoder, instead of the model's start token."""
        return self.echoed < len(self.prefix_ids)


@dataclass(frozen=True)
class Answer:
    """The checkpoint's answer to a row.

    Attributes:
        row: The row.
        ids: The output after the prefix, with `</s>` if it comes before the limit.
        candidates: The best tokens at each position of `ids` with their logits, or with the scores
            of the search; empty for a beam search.
    """

    row: Row
    ids: Sequence[int]
    candidates: Sequence[dict[int, float]]

    def gap(self, position: int, token_id: int) -> float:
        """Return the chosen token's logit minus another one's; infinite outside the candidates."""
        candidates = self.candidates[position]
        if token_id not in candidates:
            return float("inf")
        return candidates[self.ids[position]] - candidates[token_id]


class ReferenceModel:
    """The checkpoint in float32, as `transformers` runs it. Not for concurrent use."""

    def __init__(self, checkpoint: Path, forbidden_ids: Sequence[int]) -> None:
        """Load the checkpoint; the converted model does not have the forbidden ids."""
        import torch
        import transformers

        self._torch: Any = torch
        self._make_config: Any = transformers.GenerationConfig
        self._model: Any = transformers.AutoModelForSeq2SeqLM.from_pretrained(
            str(checkpoint), dtype=torch.float32, local_files_only=True
        ).eval()
        self._own = self._model.generation_config
        if self._own.decoder_start_token_id is None:
            self._own.decoder_start_token_id = self._model.config.decoder_start_token_id
        self._forbidden = list(forbidden_ids)

    def greedy(self, row: Row, max_tokens: int, end_ids: Sequence[int]) -> Answer:
        """Translate a row with plain greedy search; the candidates have logits."""
        own = self._own
        start = () if row.starts else (own.decoder_start_token_id,)
        first = [*start, *row.prefix_ids]
        config = self._make_config(
            max_new_tokens=max_tokens,
            num_beams=1,
            do_sample=False,
            eos_token_id=list(end_ids),
            pad_token_id=own.pad_token_id,
            decoder_start_token_id=first[0],
            suppress_tokens=self._forbidden or None,
        )
        result = self._generate(row, config, first, output_logits=True)
        return self._answer(row, result.sequences[0, len(first) :].tolist(), result.logits or ())

    def own_search(self, row: Row, max_tokens: int) -> Answer:
        """Translate a row with the checkpoint's own generation config, within a limit.

        The target language is forced as the documentation of `transformers` says. The limit counts
        the prefix. The candidates of a greedy answer have scores.
        """
        config = copy.deepcopy(self._own)
        config.max_new_tokens, config.max_length = max_tokens, None
        config.num_return_sequences = 1
        config.forced_eos_token_id = None  # the proof has its own limit
        if row.starts:
            config.decoder_start_token_id = row.prefix_ids[0]
        elif row.prefix_ids:
            config.forced_bos_token_id = row.prefix_ids[0]
        config.suppress_tokens = [*(config.suppress_tokens or ()), *self._forbidden] or None
        result = self._generate(row, config, [config.decoder_start_token_id], output_scores=True)
        scores = (result.scores or ()) if (config.num_beams or 1) == 1 else ()
        skipped = row.echoed
        return self._answer(row, result.sequences[0, 1 + skipped :].tolist(), scores[skipped:])

    def _generate(
        self, row: Row, config: GenerationConfig, first: list[int], **outputs: bool
    ) -> GenerateEncoderDecoderOutput:
        # A checkpoint may set beams, forced ends or penalties, and `generate` adds the model's
        # settings to those of a given config.
        self._model.generation_config = config
        source = self._torch.tensor([row.input_ids])
        result: GenerateEncoderDecoderOutput = self._model.generate(
            source,
            attention_mask=self._torch.ones_like(source),
            decoder_input_ids=self._torch.tensor([first]),
            return_dict_in_generate=True,
            **outputs,
        )
        return result

    def _answer(self, row: Row, ids: list[int], steps: Sequence[Any]) -> Answer:
        best = [scores[0].topk(min(_CANDIDATES, scores.shape[-1])) for scores in steps]
        candidates = [
            dict(zip(top.indices.tolist(), top.values.tolist(), strict=True)) for top in best
        ]
        return Answer(row, ids, candidates)
