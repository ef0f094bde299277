# SPDX-License-Identifier: Apache-2.0
"""Convert a checkpoint with CTranslate2's own converter, and copy its tokenizer files."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from ct2_triton.errors import ConversionError, UnsupportedModelError
from ct2_triton.prepare.checkpoint import CONFIG_FILE, TOKENIZER_FILES
from ct2_triton.prepare.tokenizers import backend_of, sentencepiece_file

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedTokenizerBase

    from ct2_triton.prepare.checkpoint import Checkpoint
    from ct2_triton.prepare.families import ExpectedVocabulary


def convert(
    checkpoint: Path, output: Path, quantization: str, vocabulary: ExpectedVocabulary
) -> None:
    """Run CTranslate2's converter for transformers."""
    from ctranslate2.converters import TransformersConverter

    from ct2_triton.prepare.two_vocabularies import TwoVocabularies

    converter = (
        TransformersConverter(str(checkpoint), low_cpu_mem_usage=True)
        if vocabulary.answers is None
        else TwoVocabularies(checkpoint, vocabulary.tokens, vocabulary.answers)
    )
    try:
        converter.convert(str(output), quantization=quantization, force=True)
    except Exception as error:  # transformers and the converter raise various exceptions
        raise ConversionError(f"CTranslate2 cannot convert {checkpoint}: {error}") from error


def complete_special_tokens(
    model: Path, tokenizer: PreTrainedTokenizerBase, *, prefix_starts: bool
) -> list[str]:
    """Fill in special tokens that the converter wrote as null, which CTranslate2 does not load.

    The tokenizer of mBART-50 names no `bos_token`, and the converter takes a checkpoint whose
    config names no tokenizer for mBART-25, which has no decoder start token (`prefix_starts`). A
    sentence about each token is returned.
    """
    path = model / CONFIG_FILE
    config = json.loads(path.read_text(encoding="utf-8"))
    fallbacks = {"bos_token": tokenizer.bos_token or tokenizer.cls_token or tokenizer.eos_token}
    if not prefix_starts:
        fallbacks["decoder_start_token"] = tokenizer.eos_token
    elif config.get("decoder_start_token") is not None:
        path.write_text(json.dumps({**config, "decoder_start_token": None}, indent=2), "utf-8")
        config = json.loads(path.read_text(encoding="utf-8"))
    repaired = {
        key: token for key, token in fallbacks.items() if key in config and config[key] is None
    }
    if repaired:
        path.write_text(json.dumps({**config, **repaired}, indent=2), encoding="utf-8")
    return [f"{key} was null, set to {token}" for key, token in repaired.items()]


def copy_tokenizer(
    checkpoint: Checkpoint,
    output: Path,
    tokenizer: PreTrainedTokenizerBase | None = None,
    *,
    has_added: bool = False,
) -> None:
    """Copy the tokenizer files, and the config from which `AutoTokenizer` finds the class.

    `tokenizer.json` is written from the loaded tokenizer, because that of the checkpoint may be
    missing, lack tokens which other files add, or not normalize. Without a tokenizer, the files are
    copied unchanged. `has_added`: there are added tokens, which SentencePiece does not know.
    """
    for name in (*TOKENIZER_FILES, CONFIG_FILE):
        if checkpoint.has(name):
            shutil.copyfile(checkpoint.folder / name, output / name)
    backend = None if tokenizer is None else backend_of(tokenizer)
    if backend is not None and (has_added or sentencepiece_file(checkpoint.folder) is None):
        backend.save(str(output / "tokenizer.json"))
    elif has_added:
        raise UnsupportedModelError(
            f"tokens were added to the tokenizer of {checkpoint.source.id}, and it cannot be "
            "written as tokenizer.json, by which clients find them"
        )
