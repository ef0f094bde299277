# SPDX-License-Identifier: Apache-2.0
"""What `transformers` itself answers to the probes: greedy search in float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ct2_triton.prepare.verification.probes import Probe

_CANDIDATES = 10


@dataclass(frozen=True)
class Row:
    """The ids of one probe, as they go into a model.

    Attributes:
        probe: The probe.
        input_ids: The source, complete.
        prefix_ids: What the output is forced to start with.
    """

    probe: Probe
    input_ids: Sequence[int]
    prefix_ids: Sequence[int]


@dataclass(frozen=True)
class Answer:
    """What the checkpoint gives for a row.

    Attributes:
        row: The row.
        ids: The output after the prefix, `</s>` included when it came before the limit.
        candidates: The best tokens at each position of `ids` with their logits.
    """

    row: Row
    ids: Sequence[int]
    candidates: Sequence[dict[int, float]]

    def gap(self, position: int, token_id: int) -> float:
        """Tells how far a token was from being chosen.

        Args:
            position: Index into `ids`.
            token_id: The token.

        Returns:
            Logit of the chosen token less that of `token_id`; infinite outside the candidates.
        """
        candidates = self.candidates[position]
        if token_id not in candidates:
            return float("inf")
        return candidates[self.ids[position]] - candidates[token_id]


def reference_answers(
    checkpoint: Path, rows: Sequence[Row], max_tokens: int, forbidden_ids: Sequence[int]
) -> Iterator[Answer]:
    """Loads the checkpoint in float32 and translates row by row.

    Args:
        checkpoint: Folder of the checkpoint.
        rows: What to translate.
        max_tokens: Longest output after the prefix.
        forbidden_ids: Ids that the converted model does not have.

    Yields:
        The answers, in order.
    """
    import torch
    import transformers

    model: Any = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        str(checkpoint), dtype=torch.float32, local_files_only=True
    ).eval()
    defaults = model.generation_config
    start = defaults.decoder_start_token_id
    make_config: Any = transformers.GenerationConfig
    for row in rows:
        first = [model.config.decoder_start_token_id if start is None else start, *row.prefix_ids]
        # A config of its own: a checkpoint may ask for beams, forced ends or penalties.
        model.generation_config = make_config(
            max_new_tokens=max_tokens,
            num_beams=1,
            do_sample=False,
            eos_token_id=defaults.eos_token_id,
            pad_token_id=defaults.pad_token_id,
            decoder_start_token_id=first[0],
            suppress_tokens=list(forbidden_ids) or None,
        )
        source = torch.tensor([row.input_ids])
        result = model.generate(
            source,
            attention_mask=torch.ones_like(source),
            decoder_input_ids=torch.tensor([first]),
            return_dict_in_generate=True,
            output_logits=True,
        )
        best = [logits[0].topk(min(_CANDIDATES, logits.shape[-1])) for logits in result.logits]
        yield Answer(
            row,
            ids=result.sequences[0, len(first) :].tolist(),
            candidates=[
                dict(zip(top.indices.tolist(), top.values.tolist(), strict=True)) for top in best
            ],
        )
