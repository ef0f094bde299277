# SPDX-License-Identifier: Apache-2.0
"""Tiny models in the forms that people have beside checkpoints of transformers, made from a seed.

Each has the files of the released ones: an OPUS-MT archive (Marian's `.npz`), a checkpoint of
OpenNMT-py 3, an Argos package, and a CTranslate2 folder with the files of its tokenizer.
"""

from __future__ import annotations

import argparse
import json
import shutil
import zipfile
from typing import TYPE_CHECKING, Any

from ct2_triton.bench.models.marian_file import marian_options, marian_weights, save_weights
from tiny_families import TinyOptions, train_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_TOKENIZER_FILES = (
    *("sentencepiece.bpe.model", "spiece.model", "source.spm", "target.spm", "vocab.json"),
    *("tokenizer.json", "tokenizer_config.json", "generation_config.json"),
)


def make_ctranslate2(checkpoint: Path, converted: Path, output: Path) -> Path:
    """Puts a CTranslate2 model and its tokenizer into one folder, as the `*-ct2-*` repositories do.

    Args:
        checkpoint: Folder of the checkpoint.
        converted: The CTranslate2 model made of it.
        output: Folder to write, which must not exist.

    Returns:
        `output`.
    """
    shutil.copytree(converted, output)
    for name in _TOKENIZER_FILES:
        if (checkpoint / name).is_file():
            shutil.copyfile(checkpoint / name, output / name)
    return output


def make_opus_mt(checkpoint: Path, output: Path, *, two_vocabularies: bool = False) -> Path:
    """Writes a Marian checkpoint of transformers as the archive that OPUS-MT would publish.

    Args:
        checkpoint: Folder of the checkpoint.
        output: Folder to write, which must not exist.
        two_vocabularies: Number the tokens of the answers in another order.

    Returns:
        `output`.
    """
    from safetensors.numpy import load_file

    output.mkdir()
    config = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    vocabulary = json.loads((checkpoint / "vocab.json").read_text(encoding="utf-8"))
    del vocabulary["<pad>"]  # transformers adds it as the last
    weights = dict(marian_weights(load_file(checkpoint / "model.safetensors"), len(vocabulary)))
    tokens = list(vocabulary)
    order = [0, 1, *range(len(tokens) - 1, 1, -1)] if two_vocabularies else range(len(tokens))
    if two_vocabularies:
        weights["encoder_Wemb"] = weights.pop("Wemb")
        weights["decoder_Wemb"] = weights["encoder_Wemb"][order]
        weights["decoder_ff_logit_out_b"] = weights["decoder_ff_logit_out_b"][:, order]
    options = marian_options(config, len(vocabulary))
    save_weights(output / "opus.model1.npz", weights, options)
    names = (
        "opus.src.vocab.yml",
        "opus.trg.vocab.yml" if two_vocabularies else "opus.src.vocab.yml",
    )
    for name, numbered in zip(names, (tokens, [tokens[i] for i in order]), strict=True):
        lines = (f"{json.dumps(one, ensure_ascii=False)}: {i}\n" for i, one in enumerate(numbered))
        (output / name).write_text("".join(lines), encoding="utf-8")
    decoder = f"models:\n  - opus.model1.npz\nvocabs:\n  - {names[0]}\n  - {names[1]}\n"
    (output / "decoder.yml").write_text(decoder, encoding="utf-8")
    for name in ("source.spm", "target.spm"):
        shutil.copyfile(checkpoint / name, output / name)
    return output


def make_opennmt_py(output: Path, options: TinyOptions | None = None) -> Path:
    """Writes a random checkpoint of OpenNMT-py 3 with a vocabulary for each side.

    Args:
        output: Folder to write, which must not exist.
        options: `pieces`, `d_model`, `layers` and `seed` are used.

    Returns:
        `output`, with `model.pt` and one SentencePiece model for both sides.
    """
    import sentencepiece
    import torch

    options = options or TinyOptions(pieces=600)
    output.mkdir()
    file = train_pieces(output, options, "sentencepiece")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
    pieces = [processor.id_to_piece(i) for i in range(3, len(processor))]
    first = ["<unk>", "<blank>", "<s>", "</s>"]
    # Two orders and sizes: an id of one side is another token on the other.
    vocabulary = {"src": [*first, *pieces], "tgt": [*first, *reversed(pieces[:-8])]}
    torch.manual_seed(options.seed)
    content = {
        "vocab": vocabulary,
        "opt": argparse.Namespace(
            encoder_type="transformer",
            decoder_type="transformer",
            position_encoding=True,
            enc_layers=options.layers,
            dec_layers=options.layers,
            heads=4,
            decoder_start_token="<s>",  # noqa: S106
        ),
        "model": dict(_opennmt_weights(options, vocabulary)),
        "generator": {
            "weight": torch.randn(len(vocabulary["tgt"]), options.d_model),
            "bias": torch.zeros(len(vocabulary["tgt"])),
        },
    }
    torch.save(content, output / "model.pt")
    return output


def _opennmt_weights(
    options: TinyOptions, vocabulary: Mapping[str, list[str]]
) -> Iterator[tuple[str, Any]]:
    import torch

    width = options.d_model

    def linear(name: str, rows: int, columns: int) -> Iterator[tuple[str, Any]]:
        yield f"{name}.weight", torch.randn(rows, columns) * 2 / columns**0.5
        yield f"{name}.bias", torch.zeros(rows)

    def norm(name: str) -> Iterator[tuple[str, Any]]:
        yield f"{name}.weight", torch.ones(width)
        yield f"{name}.bias", torch.zeros(width)

    def attention(name: str) -> Iterator[tuple[str, Any]]:
        for part in ("linear_query", "linear_keys", "linear_values", "final_linear"):
            yield from linear(f"{name}.{part}", width, width)

    for side, tokens, layers, blocks, norms in (
        ("encoder", vocabulary["src"], "transformer", ("self_attn",), ("layer_norm",)),
        (
            *("decoder", vocabulary["tgt"], "transformer_layers"),
            *(("self_attn", "context_attn"), ("layer_norm_1", "layer_norm_2")),
        ),
    ):
        embedding = f"{side}.embeddings.make_embedding"
        yield f"{embedding}.emb_luts.0.weight", torch.randn(len(tokens), width)
        yield f"{embedding}.pe.pe", torch.randn(512, 1, width) / 4
        yield from norm(f"{side}.layer_norm")
        for number in range(options.layers):
            layer = f"{side}.{layers}.{number}"
            for block in blocks:
                yield from attention(f"{layer}.{block}")
            for one in (*norms, "feed_forward.layer_norm"):
                yield from norm(f"{layer}.{one}")
            yield from linear(f"{layer}.feed_forward.w_1", 2 * width, width)
            yield from linear(f"{layer}.feed_forward.w_2", width, 2 * width)


def make_argos(opennmt_py: Path, output: Path, source: str = "en", target: str = "de") -> Path:
    """Writes an Argos package of what `make_opennmt_py` wrote.

    Args:
        opennmt_py: Its folder.
        output: The `.argosmodel` to write.
        source: Language of the texts, as Argos names it.
        target: Language of the answers.

    Returns:
        `output`.
    """
    import torch
    from ctranslate2.converters import OpenNMTPyConverter

    converted = output.with_suffix("")
    with torch.serialization.safe_globals([argparse.Namespace]):
        OpenNMTPyConverter(str(opennmt_py / "model.pt")).convert(str(converted))
    metadata = {
        "package_version": "1.0",
        "argos_version": "1.5.0",
        "from_code": source,
        "from_name": source,
        "to_code": target,
        "to_name": target,
    }
    with zipfile.ZipFile(output, "w") as package:
        top = f"translate-{source}_{target}-1_0"
        package.writestr(f"{top}/metadata.json", json.dumps(metadata))
        package.writestr(f"{top}/README.md", "# A tiny package\n")
        package.writestr(f"{top}/stanza/tokenizer.pt", b"splits texts into sentences")
        package.write(opennmt_py / "sentencepiece.model", f"{top}/sentencepiece.model")
        for file in converted.iterdir():
            package.write(file, f"{top}/model/{file.name}")
    shutil.rmtree(converted)
    return output
