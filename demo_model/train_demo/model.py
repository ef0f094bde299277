# SPDX-License-Identifier: Apache-2.0
"""The network: NLLB's architecture in a small size, and its loss for many target languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from train_demo.languages import FLORES, SOURCE, TARGETS

if TYPE_CHECKING:
    import torch
    from transformers import M2M100ForConditionalGeneration, NllbTokenizer

    from train_demo.batches import Batch
    from train_demo.sizes import Size

MAX_POSITIONS = 256


def new_model(size: Size, tokenizer: NllbTokenizer) -> M2M100ForConditionalGeneration:
    """Make a model with its usual random weights, from torch's current seed."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    config = M2M100Config(
        vocab_size=len(tokenizer),
        d_model=size.d_model,
        encoder_layers=size.encoder_layers,
        decoder_layers=size.decoder_layers,
        encoder_ffn_dim=size.ffn,
        decoder_ffn_dim=size.ffn,
        encoder_attention_heads=size.heads,
        decoder_attention_heads=size.heads,
        encoder_layerdrop=0.0,
        decoder_layerdrop=0.0,
        dropout=0.0,
        attention_dropout=0.0,
        max_position_embeddings=MAX_POSITIONS,
        scale_embedding=True,
        tokenizer_class="NllbTokenizer",
        # ct2-prepare reads these: from English only.
        source_languages=[FLORES[SOURCE]],
        target_languages=[FLORES[language] for language in TARGETS],
        decoder_start_token_id=tokenizer.eos_token_id,
        forced_eos_token_id=None,
    )
    return M2M100ForConditionalGeneration(config)


def loss(model: M2M100ForConditionalGeneration, batch: Batch) -> torch.Tensor:
    """Mean cross-entropy of the target tokens.

    The source does not name the target language, so the encoder runs once for all targets.

    Args:
        model: The network.
        batch: n sources, and n x languages targets, those of a source side by side.
    """
    import torch

    encoded = model.model.encoder(
        input_ids=batch.sources, attention_mask=batch.source_mask
    ).last_hidden_state
    copies = batch.targets.shape[0] // batch.sources.shape[0]
    decoded = model.model.decoder(
        input_ids=batch.targets[:, :-1],
        encoder_hidden_states=encoded.repeat_interleave(copies, dim=0),
        encoder_attention_mask=batch.source_mask.repeat_interleave(copies, dim=0),
        use_cache=False,
    ).last_hidden_state
    labels = batch.targets[:, 1:]
    counted = batch.target_mask[:, 1:]
    logits = model.lm_head(decoded[counted])
    return torch.nn.functional.cross_entropy(logits.float(), labels[counted])
