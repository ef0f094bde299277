# SPDX-License-Identifier: Apache-2.0
"""The demo model's tokenizer: SentencePiece pieces, and NLLB's conventions around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from train_demo.corpus import training_sentences
from train_demo.languages import FLORES, LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from transformers import NllbTokenizer

    from train_demo.grammar import Grammar

_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;!?'%-"


def train_pieces(
    grammar: Grammar, size: int, seed: int, folder: Path, sentences: int = 30_000
) -> Path:
    """Trains one SentencePiece model (BPE, single digits) on the sentences of all languages.

    Args:
        grammar: Where the sentences come from.
        size: Number of pieces.
        seed: Chooses the sentences.
        folder: Where `sentencepiece.bpe.model` is written.
        sentences: How many, each in all languages.

    Returns:
        Path of the file.
    """
    import sentencepiece

    path = folder / "sentencepiece.bpe.model"
    # Through a stream: a model written by name would hold the path of the folder.
    with path.open("wb") as stream:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_texts(grammar, seed, sentences),
            model_writer=stream,
            vocab_size=size,
            model_type="bpe",
            character_coverage=1.0,
            split_digits=True,
            normalization_rule_name="nmt_nfkc",
            minloglevel=2,
            num_threads=1,
        )
    return path


def nllb_tokenizer(pieces: Path) -> NllbTokenizer:
    """Build NLLB's tokenizer around a SentencePiece model: FLORES codes follow the pieces.

    A source is `[language] pieces </s>`; a target begins with its language after `</s>`.
    """
    from tokenizers import AddedToken
    from transformers import NllbTokenizer

    codes = [FLORES[language] for language in LANGUAGES]
    return NllbTokenizer(
        str(pieces),
        src_lang=FLORES["eng"],
        tgt_lang=FLORES["deu"],
        additional_special_tokens=[AddedToken(c, normalized=False, special=True) for c in codes],
    )


def _texts(grammar: Grammar, seed: int, sentences: int) -> Iterator[str]:
    yield " ".join(_ALPHABET)  # so that each has a piece, whatever the grammar holds
    for sentence in training_sentences(grammar, sentences, seed):
        yield from sentence.texts.values()
