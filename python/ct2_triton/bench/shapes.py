# SPDX-License-Identifier: Apache-2.0
"""Models of real sizes, made from a seed without training, whose translations end by themselves.

The cost of a translation depends on the sizes of the model and on the lengths of its answers, not
on the values of its weights. So the weights are random, except for one circuit that makes the model
copy its source, token by token, and then end: in the last decoder layer, all heads attend to the
source position with the same index, and output its token. With random weights alone, no translation
would end before its length limit.

The architecture is that of M2M100 (and NLLB), or Marian's with the positions that Marian itself
computes, which differ slightly from those of transformers. The tokenizer is the demo model's, with
unused tokens up to the size of the vocabulary.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ct2_triton.prepare.shipped import FOLDER

if TYPE_CHECKING:
    from pathlib import Path

    import torch

TOKENIZER = FOLDER / "checkpoint"
"""Folder of the tokenizer of all shapes."""

_MAX_POSITIONS = 1024
# Random weights that add to the residual stream are small, so that they do not disturb the circuit;
# the time of a matrix product does not depend on them.
_SMALL = 0.0005
_USUAL = 0.02
# Magnitude of a token's values in the residual stream, where those of a position are at most 1.
_CONTENT = 3.0
# Factor of the attention scores: a neighbour gets about exp(-10) of the right position's weight.
_SHARPNESS = 4.0
# Factor of the copied token over the previous token, which is also in the residual stream.
_GAIN = 6.0


@dataclass(frozen=True)
class Shape:
    """Sizes of a model.

    Attributes:
        d_model: Width.
        layers: Layers of the encoder, and of the decoder.
        ffn: Width of the feed-forward layers.
        heads: Attention heads.
        vocabulary: Number of tokens; source, target and output share one table.
        family: `m2m100`; or `marian`, with post-norm layers and no target prefix.
    """

    d_model: int
    layers: int
    ffn: int
    heads: int
    vocabulary: int
    family: str = "m2m100"


SHAPES = {
    # Vaswani et al., Attention is all you need, 2017: the base model, with a usual vocabulary.
    "transformer-base": Shape(512, 6, 2048, 8, 32_000),
    # The same sizes as a Marian model, to compare with Marian.
    "marian-base": Shape(512, 6, 2048, 8, 32_000, "marian"),
    "opus-mt": Shape(512, 6, 2048, 8, 58_101),
    "m2m100-418m": Shape(1024, 12, 4096, 16, 128_112),
    "nllb-600m": Shape(1024, 12, 4096, 16, 256_206),
}
"""The sizes of released models by name."""


def write_shape(name: str, folder: Path, seed: int = 0) -> Path:
    """Write a checkpoint of one of `SHAPES` into a folder of its name, from a seed."""
    checkpoint = folder / name
    shape = SHAPES[name]
    checkpoint.mkdir(parents=True)
    tokenizer = _marian_tokenizer(shape, checkpoint) if shape.family == "marian" else _tokenizer()
    tokenizer.save_pretrained(checkpoint)
    model = _copying_model(shape, shape_config(shape, tokenizer), seed)
    model._keys_to_ignore_on_save = None  # also write Marian's positions
    model.save_pretrained(checkpoint)
    return checkpoint


def _tokenizer() -> Any:  # noqa: ANN401 - untyped
    from transformers import NllbTokenizer

    return NllbTokenizer.from_pretrained(TOKENIZER)


def _marian_tokenizer(shape: Shape, folder: Path) -> Any:  # noqa: ANN401 - untyped
    """Make a Marian tokenizer of the same pieces: `</s>` is the first, `<pad>` the last."""
    from sentencepiece import SentencePieceProcessor
    from transformers import MarianTokenizer

    pieces = str(TOKENIZER / "sentencepiece.bpe.model")
    processor: Any = SentencePieceProcessor(model_file=pieces)
    named = (processor.id_to_piece(i) for i in range(len(processor)))
    tokens = list(dict.fromkeys(("</s>", "<unk>", *named)))
    tokens += [f"<unused{i}>" for i in range(shape.vocabulary - 1 - len(tokens))]
    numbers = {token: i for i, token in enumerate([*tokens, "<pad>"])}
    file = folder / "vocab.json"
    file.write_text(json.dumps(numbers, ensure_ascii=False), encoding="utf-8")
    make_tokenizer: Any = MarianTokenizer
    return make_tokenizer(pieces, pieces, str(file), source_lang="en", target_lang="de")


def shape_config(shape: Shape, tokenizer: Any) -> Any:  # noqa: ANN401 - untyped
    """Return the configuration of a shape's model.

    `tokenizer` is a tokenizer of `transformers` with the IDs of `</s>` and `<pad>`.
    """
    from transformers import M2M100Config, MarianConfig

    make_config: Any = MarianConfig if shape.family == "marian" else M2M100Config
    start = tokenizer.pad_token_id if shape.family == "marian" else tokenizer.eos_token_id
    return make_config(
        vocab_size=shape.vocabulary,
        d_model=shape.d_model,
        encoder_layers=shape.layers,
        decoder_layers=shape.layers,
        encoder_ffn_dim=shape.ffn,
        decoder_ffn_dim=shape.ffn,
        encoder_attention_heads=shape.heads,
        decoder_attention_heads=shape.heads,
        activation_function="relu",
        max_position_embeddings=_MAX_POSITIONS,
        scale_embedding=True,
        tokenizer_class=type(tokenizer).__name__.removesuffix("Fast"),
        decoder_start_token_id=start,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        forced_eos_token_id=None,
    )


def _copying_model(shape: Shape, config: Any, seed: int) -> Any:  # noqa: ANN401 - untyped
    import torch
    from transformers import M2M100ForConditionalGeneration, MarianMTModel

    torch.manual_seed(seed)
    is_marian = shape.family == "marian"
    make_model: Any = MarianMTModel if is_marian else M2M100ForConditionalGeneration
    model = make_model(config)
    model.eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                ends_a_branch = name.endswith(("out_proj.weight", "fc2.weight"))
                torch.nn.init.normal_(weight, std=_SMALL if ends_a_branch else _USUAL)
        positional = _positional_numbers(shape)
        _set_tokens(model.model.shared.weight, positional, _zero(shape))
        _set_circuit(model.model.decoder.layers[-1].encoder_attn, positional, shape)
        if is_marian:
            model.model.shared.weight[config.pad_token_id] = 0  # the decoder starts from zeros
            set_marian_positions(model)
    return model


def set_marian_positions(model: Any) -> None:  # noqa: ANN401 - untyped
    """Replace the positions of a Marian model of transformers by those that Marian computes."""
    from transformers.models.m2m_100 import modeling_m2m_100

    make: Any = modeling_m2m_100.M2M100SinusoidalPositionalEmbedding.get_embedding
    for side in (model.model.encoder, model.model.decoder):
        side.embed_positions.weight.copy_(make(*side.embed_positions.weight.shape, None))


def _positional_numbers(shape: Shape) -> torch.Tensor:
    """Return the dimensions of the residual stream reserved for the position: one head's size.

    They are sines and cosines of the highest frequencies (M2M100 has all sines first), which
    distinguish neighbouring positions.
    """
    import torch

    size = shape.d_model // shape.heads
    sines = torch.arange(size // 2) * max(1, shape.heads // 8)
    return torch.cat((sines, shape.d_model // 2 + sines))


def _zero(shape: Shape) -> int:
    """Return the dimension that is almost 0 at all positions: the sine of the lowest frequency.

    It shows the mean that layer norm subtracts from all values.
    """
    return shape.d_model // 2 - 1


def _set_tokens(table: torch.Tensor, positional: torch.Tensor, zero: int) -> None:
    """Make every token a random vector of signs, almost orthogonal to all others."""
    import torch

    table.copy_(torch.randint(0, 2, table.shape) * 2.0 - 1)
    table *= _CONTENT / math.sqrt(table.shape[1])  # the model multiplies by this root
    table[:, positional] = 0
    table[:, zero] = 0


def _set_circuit(attention: Any, positional: torch.Tensor, shape: Shape) -> None:  # noqa: ANN401
    """Make every head attend to the source position with its own index, and output its token.

    The score of two positions is the sum of the cosines of their distance at many frequencies,
    which is largest for distance 0.
    """
    import torch

    size = len(positional)
    pick = torch.zeros(size, shape.d_model)
    pick[torch.arange(size), positional] = 1
    pick[:, _zero(shape)] = -1
    pick *= _CONTENT  # layer norm divides by about this
    for projection in (attention.q_proj, attention.k_proj):
        projection.weight.copy_(_SHARPNESS * pick.repeat(shape.heads, 1))
    torch.nn.init.eye_(attention.v_proj.weight)
    torch.nn.init.eye_(attention.out_proj.weight).mul_(_GAIN * _CONTENT)
