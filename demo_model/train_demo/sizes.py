# SPDX-License-Identifier: Apache-2.0
"""The two sizes of the demo model, and how each is trained."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cycle:
    """A part of a training with a schedule of its own, from a short warm-up to almost nothing.

    Attributes:
        sentences: English sentences seen, each with all its translations.
        learning_rate: Peak of the schedule.
    """

    sentences: int
    learning_rate: float


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
        batch_sentences: English sentences in a batch; its decoder rows are six times as many.
        cycles: The parts of the training, each on new sentences (warm restarts: Loshchilov and
            Hutter, SGDR, 2017).
    """

    pieces: int
    d_model: int
    encoder_layers: int
    decoder_layers: int
    ffn: int
    heads: int
    batch_sentences: int
    cycles: tuple[Cycle, ...]


SIZES = {
    # Shipped in the package: 3.3 million parameters.
    "small": Size(4000, 192, 3, 2, 768, 4, 8, (Cycle(64_000, 1.5e-3), Cycle(36_000, 1.2e-3))),
    # For benchmarks: the layers of OPUS-MT.
    "base": Size(4000, 512, 6, 6, 2048, 8, 8, (Cycle(64_000, 4e-4), Cycle(36_000, 3e-4))),
}
