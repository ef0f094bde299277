# SPDX-License-Identifier: Apache-2.0
"""How a tiny checkpoint of each family is made: tokenizer, config, and weights of a useful size."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tiny_corpus import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True)
class TinyOptions:
    """What can be chosen about a tiny model.

    Attributes:
        pieces: Size of each SentencePiece model.
        vocab_size: Rows of the embedding table; None gives the released surplus over the tokenizer.
            A larger number pads, as the released checkpoints do (`madeupword0`, ...).
        d_model: Width of the model, a multiple of 4.
        layers: Layers of the encoder, and of the decoder.
        max_positions: Longest source or target in tokens (T5 has no limit).
        d_kv: Width of a head of T5, whose heads together may be wider than the model; None gives
            `d_model` / 4, its four heads.
        byte_fallback: Spell characters that the pieces lack in 256 further pieces, one a byte.
        train_steps: Steps of training to copy the input; 0 leaves the weights random. NLLB only.
        seed: Equal options and seeds give equal files.
        corpus: File of lines to train the pieces on, of any languages; None: the built-in one.
        algorithm: Of the SentencePiece models, `bpe` or `unigram`; None: the family's usual one.
    """

    pieces: int = 1200
    vocab_size: int | None = None
    d_model: int = 64
    layers: int = 2
    max_positions: int = 512
    d_kv: int | None = None
    byte_fallback: bool = False
    train_steps: int = 0
    seed: int = 0
    corpus: Path | None = None
    algorithm: str | None = None


@dataclass
class Checkpoint:
    """A model, its tokenizers, and files that `save_pretrained` does not write."""

    model: PreTrainedModel
    tokenizers: list[PreTrainedTokenizerBase]
    files: list[Path] = field(default_factory=list)


@dataclass(frozen=True)
class _Scales:
    """Factors on a random model's usual weights, found by trial (see the tests).

    At the usual scale, a model with tied embeddings repeats one token. The next token depends on
    the last ones when feed-forward layers outweigh the residual, and differs from row to row when
    cross-attention is not saturated.
    """

    embedding: float = 4.0
    feed_forward: float = 20.0
    self_attention: float = 7.0
    cross_attention: float = 4.0

    def of(self, name: str) -> float:
        """Gives the factor of the weight matrix called `name`."""
        if any(part in name for part in (".fc", "DenseReluDense")):
            return self.feed_forward
        if any(part in name for part in ("encoder_attn", "EncDecAttention")):
            return self.cross_attention
        return self.self_attention


def train_pieces(
    folder: Path, options: TinyOptions, name: str = "sentencepiece", **spm: object
) -> Path:
    """Trains a SentencePiece model on the built-in corpus.

    Args:
        folder: Where to write.
        options: `pieces`, `byte_fallback` and `seed` are used.
        name: Name of the file, without its suffix `.model`.
        **spm: Further arguments of the SentencePiece trainer.

    Returns:
        Path of the file.
    """
    import sentencepiece

    arguments = {"model_type": "bpe", "vocab_size": options.pieces, "character_coverage": 1.0}
    lines: Iterable[str] = sentences(4000, options.seed)
    if options.corpus:
        lines = options.corpus.read_text(encoding="utf-8").splitlines()
        arguments["character_coverage"] = 0.9995
    if options.algorithm:
        spm = {**spm, "model_type": options.algorithm}
    path = folder / f"{name}.model"
    # Through a stream: a model written by name would hold the path of the folder.
    with path.open("wb") as stream:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=stream,
            minloglevel=2,
            num_threads=1,
            byte_fallback=options.byte_fallback,
            **{**arguments, **spm},
        )
    return path


def make_nllb(folder: Path, options: TinyOptions) -> Checkpoint:
    """NLLB-200 as released: 4 special tokens, pieces, 202 FLORES codes, `<mask>`, 2 spare rows."""
    import sentencepiece
    from tokenizers import AddedToken
    from transformers import NllbTokenizer, NllbTokenizerFast
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

    pieces = train_pieces(folder, options, "sentencepiece.bpe")
    first_code = sentencepiece.SentencePieceProcessor(model_file=str(pieces)).get_piece_size() + 1
    added = {
        first_code + i: AddedToken(code, normalized=False, special=True)
        for i, code in enumerate(FAIRSEQ_LANGUAGE_CODES)
    }
    added[first_code + len(added)] = AddedToken(
        "<mask>", lstrip=True, normalized=True, special=True
    )
    tokenizer = NllbTokenizer(
        str(pieces), added_tokens_decoder=added, additional_special_tokens=FAIRSEQ_LANGUAGE_CODES
    )
    tokenizer.save_pretrained(folder)
    fast = NllbTokenizerFast.from_pretrained(folder)
    model = _m2m100_model(options.vocab_size or len(tokenizer) + 2, options, "NllbTokenizer")
    if options.train_steps:
        from tiny_training import train_to_copy

        train_to_copy(model, tokenizer, options.train_steps, options.seed)
    return Checkpoint(model, [tokenizer, fast])


def make_m2m100(folder: Path, options: TinyOptions) -> Checkpoint:
    """M2M100 as released: `vocab.json`, 100 codes such as `__fr__`, 8 spare rows at the end."""
    from transformers import M2M100Tokenizer
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

    pieces = train_pieces(folder, options, "sentencepiece.bpe")
    vocabulary = _piece_names(pieces, ["<s>", "<pad>", "</s>", "<unk>"])
    path = _write_json(folder / "vocab.json", vocabulary)
    tokenizer = M2M100Tokenizer(
        str(path),
        str(pieces),
        additional_special_tokens=[f"__{code}__" for code in FAIRSEQ_LANGUAGE_CODES["m2m100"]],
    )
    rows = len(vocabulary) + len(FAIRSEQ_LANGUAGE_CODES["m2m100"]) + 8
    model = _m2m100_model(options.vocab_size or rows, options, "M2M100Tokenizer")
    return Checkpoint(model, [tokenizer])


def make_mbart50(folder: Path, options: TinyOptions) -> Checkpoint:
    """mBART-50 as released: 4 special tokens, pieces, 52 codes such as `fr_XX`, `<mask>`."""
    from transformers import (
        MBart50Tokenizer,
        MBart50TokenizerFast,
        MBartConfig,
        MBartForConditionalGeneration,
    )

    pieces = train_pieces(folder, options, "sentencepiece.bpe", model_type="unigram")
    tokenizer = MBart50Tokenizer(str(pieces), bos_token="<s>", src_lang="en_XX")  # noqa: S106
    tokenizer.save_pretrained(folder)
    fast = MBart50TokenizerFast.from_pretrained(folder)
    config = MBartConfig(
        vocab_size=options.vocab_size or len(tokenizer),
        scale_embedding=True,
        decoder_start_token_id=2,
        normalize_before=True,
        normalize_embedding=True,
        add_final_layer_norm=True,
        tokenizer_class="MBart50Tokenizer",
        **_bart_shape(options),
    )
    model = _random_model(MBartForConditionalGeneration, config, options, _Scales(4, 30, 14, 7))
    return Checkpoint(model, [tokenizer, fast])


def make_mbart25(folder: Path, options: TinyOptions) -> Checkpoint:
    """mBART-25 as released: 25 codes, and the language of an answer starts the decoder."""
    from transformers import (
        MBartConfig,
        MBartForConditionalGeneration,
        MBartTokenizer,
        MBartTokenizerFast,
    )

    pieces = train_pieces(folder, options, "sentencepiece.bpe", model_type="unigram")
    tokenizer = MBartTokenizer(str(pieces), src_lang="en_XX", tgt_lang="ro_RO")
    tokenizer.save_pretrained(folder)
    fast = MBartTokenizerFast.from_pretrained(folder)
    config = MBartConfig(
        vocab_size=options.vocab_size or len(tokenizer),
        scale_embedding=True,
        decoder_start_token_id=tokenizer.convert_tokens_to_ids("ro_RO"),
        normalize_before=True,
        normalize_embedding=True,
        add_final_layer_norm=True,
        **_bart_shape(options),
    )
    model = _random_model(MBartForConditionalGeneration, config, options, _Scales(4, 60, 14, 20))
    return Checkpoint(model, [tokenizer, fast])


def make_marian(folder: Path, options: TinyOptions) -> Checkpoint:
    """OPUS-MT as released, with the target tokens `>>deu<<`, `>>fra<<` and `>>spa<<`."""
    return _marian(folder, options, "mul", (">>deu<<", ">>fra<<", ">>spa<<"))


def make_marian_pair(folder: Path, options: TinyOptions) -> Checkpoint:
    """OPUS-MT as released, from English to German."""
    return _marian(folder, options, "de", ())


def _marian(
    folder: Path, options: TinyOptions, target_lang: str, target_tokens: tuple[str, ...]
) -> Checkpoint:
    """Two SentencePiece models, one `vocab.json` whose last entry is `<pad>`."""
    from transformers import MarianTokenizer

    source = train_pieces(folder, options, "source", model_type="unigram", bos_id=-1)
    target = train_pieces(folder, options, "target", bos_id=-1)
    vocabulary = _piece_names(source, ["</s>", "<unk>"])
    for token in [*_piece_names(target, []), *target_tokens, "<pad>"]:
        vocabulary.setdefault(token, len(vocabulary))
    vocab_file = _write_json(folder / "vocab.json", vocabulary)
    files = [source.rename(folder / "source.spm"), target.rename(folder / "target.spm")]
    tokenizer = MarianTokenizer(
        str(files[0]), str(files[1]), str(vocab_file), source_lang="en", target_lang=target_lang
    )
    return Checkpoint(_marian_model(len(vocabulary), options), [tokenizer])


def make_marian_two(folder: Path, options: TinyOptions) -> Checkpoint:
    """Marian with a vocabulary for each side, each with a last `<pad>`, from English to German."""
    from transformers import MarianTokenizer

    source = train_pieces(folder, options, "source", model_type="unigram", bos_id=-1)
    target = train_pieces(folder, options, "target", bos_id=-1)
    sides = [_piece_names(pieces, ["</s>", "<unk>"]) for pieces in (source, target)]
    for side in sides:
        side["<pad>"] = len(side)
    files = [_write_json(folder / name, side) for name, side in zip(_TWO_FILES, sides, strict=True)]
    tokenizer = MarianTokenizer(
        str(source.rename(folder / "source.spm")),
        str(target.rename(folder / "target.spm")),
        str(files[0]),
        target_vocab_file=str(files[1]),
        separate_vocabs=True,
        source_lang="en",
        target_lang="de",
    )
    return Checkpoint(_marian_model(len(sides[0]), options, len(sides[1])), [tokenizer])


def _marian_model(rows: int, options: TinyOptions, own_rows: int = 0) -> PreTrainedModel:
    """Gives a model of so many tokens; with `own_rows`, the decoder has a table of its own."""
    from transformers import MarianConfig, MarianMTModel

    pad = rows - 1
    config = MarianConfig(
        vocab_size=rows,
        decoder_vocab_size=own_rows or rows,
        scale_embedding=True,
        activation_function="swish",
        pad_token_id=pad,
        eos_token_id=0,
        decoder_start_token_id=pad,
        forced_eos_token_id=0,
        bad_words_ids=[[pad]],
        share_encoder_decoder_embeddings=not own_rows,
        **_bart_shape(options),
    )
    return _random_model(MarianMTModel, config, options, _Scales(6, 10, 7, 4))


def make_t5(folder: Path, options: TinyOptions) -> Checkpoint:
    """T5 as released: pad 0, `</s>` 1, `<unk>` 2, 100 sentinels, 28 rows past the tokenizer."""
    prefixes = {"translation_en_to_de": "German", "translation_en_to_fr": "French"}
    tasks = {
        name: {"prefix": f"translate English to {target}: "} for name, target in prefixes.items()
    }
    return _t5(folder, options, sentinels=100, surplus=28, task_specific_params=tasks)


def make_madlad(folder: Path, options: TinyOptions) -> Checkpoint:
    """MADLAD-400 as released: a gated T5 with target tokens such as `<2de>`, no sentinels."""
    return _t5(
        folder,
        options,
        user_defined_symbols=["<2en>", "<2de>", "<2fr>", "<2zh>"],
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
    )


def _t5(
    folder: Path,
    options: TinyOptions,
    sentinels: int = 0,
    surplus: int = 0,
    user_defined_symbols: Sequence[str] = (),
    **config_values: object,
) -> Checkpoint:
    from transformers import T5Config, T5ForConditionalGeneration, T5Tokenizer, T5TokenizerFast

    pieces = train_pieces(
        folder,
        options,
        "spiece",
        model_type="unigram",
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        pad_piece="<pad>",
        user_defined_symbols=list(user_defined_symbols),
    )
    tokenizer = T5Tokenizer(str(pieces), extra_ids=sentinels, legacy=False)
    tokenizer.save_pretrained(folder)
    fast = T5TokenizerFast.from_pretrained(folder)
    config = T5Config(
        vocab_size=options.vocab_size or len(tokenizer) + surplus,
        d_model=options.d_model,
        d_kv=options.d_kv or options.d_model // 4,
        d_ff=2 * options.d_model,
        num_layers=options.layers,
        num_heads=4,
        dropout_rate=0.0,
        decoder_start_token_id=0,
        **config_values,
    )
    scales = _Scales(0.4, 3.0, 1.4, 0.7)
    model = _random_model(T5ForConditionalGeneration, config, options, scales)
    return Checkpoint(model, [tokenizer, fast])


def _bart_shape(options: TinyOptions) -> dict[str, Any]:
    """Sizes under the names that the configurations of BART-like models share."""
    shape = {"d_model": options.d_model, "max_position_embeddings": options.max_positions}
    for side in ("encoder", "decoder"):
        shape[f"{side}_layers"] = options.layers
        shape[f"{side}_attention_heads"] = 4
        shape[f"{side}_ffn_dim"] = 2 * options.d_model
    return {**shape, "dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}


def _m2m100_model(rows: int, options: TinyOptions, tokenizer_class: str) -> PreTrainedModel:
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    config = M2M100Config(
        vocab_size=rows,
        scale_embedding=True,
        decoder_start_token_id=2,
        encoder_layerdrop=0.0,
        decoder_layerdrop=0.0,
        tokenizer_class=tokenizer_class,
        **_bart_shape(options),
    )
    return _random_model(M2M100ForConditionalGeneration, config, options)


def _random_model(
    model_class: type[PreTrainedModel],
    config: PretrainedConfig,
    options: TinyOptions,
    scales: _Scales = _Scales(),
) -> PreTrainedModel:
    """Makes a model whose greedy outputs vary; a model to be trained keeps its usual start."""
    import torch

    torch.manual_seed(options.seed)
    model = model_class(config).eval()
    if options.train_steps:
        return model
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "shared" in name or "embed" in name:
                parameter.mul_(scales.embedding)
            elif parameter.dim() > 1:
                parameter.mul_(scales.of(name))
    return model


_TWO_FILES = ("vocab.json", "target_vocab.json")


def _piece_names(model: Path, first: list[str]) -> dict[str, int]:
    """Numbers the pieces of a SentencePiece model after some first tokens."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    names = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    control = {"<s>", "</s>", "<unk>", "<pad>"}
    tokens = [*first, *(name for name in names if name not in control)]
    return {token: i for i, token in enumerate(tokens)}


def _write_json(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


FAMILIES: dict[str, Callable[[Path, TinyOptions], Checkpoint]] = {
    "nllb": make_nllb,
    "m2m100": make_m2m100,
    "mbart50": make_mbart50,
    "mbart25": make_mbart25,
    "marian": make_marian,
    "marian-pair": make_marian_pair,
    "t5": make_t5,
    "madlad": make_madlad,
}
# CTranslate2's own converter does not read them, and ct2-prepare does.
TWO_VOCABULARIES = {"marian-two": make_marian_two}
