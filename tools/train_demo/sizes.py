# SPDX-License-Identifier: Apache-2.0
"""The two sizes of the demo model, and how each is trained."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """Shape of a model and plan of its training.

    Attributes:
        pieces: SentencePiece pieces; the embedding table has a few rows more.
        d_model: Width.
        encoder_layers: Layers of the encoder, which runs once for all target languages.
        decoder_layers: Layers of the decoder.
        ffn: Width of the feed-forward layers.
        heads: Attention heads.
        sentences: English sentences seen in training, each with all its translations.
        batch_sentences: English sentences in a batch; its decoder rows are six times as many.
        learning_rate: Peak of the schedule.
    """

    pieces: int
    d_model: int
    encoder_layers: int
    decoder_layers: int
    ffn: int
    heads: int
    sentences: int
    batch_sentences: int
    learning_rate: float


SIZES = {
    # Shipped in the package: 3.3 million parameters.
    "small": Size(4000, 192, 3, 2, 768, 4, 64_000, 8, 1.5e-3),
    # For benchmarks: the layers of OPUS-MT.
    "base": Size(4000, 512, 6, 6, 2048, 8, 64_000, 8, 4e-4),
}
