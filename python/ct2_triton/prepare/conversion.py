# SPDX-License-Identifier: Apache-2.0
"""Converts a checkpoint with CTranslate2's own converter, and copies its tokenizer files."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import ConversionError, UnsupportedModelError
from ct2_triton.prepare.checkpoint import CONFIG_FILE, TOKENIZER_FILES

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedTokenizerBase

    from ct2_triton.prepare.checkpoint import Checkpoint


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Loads a tokenizer from files alone.

    Args:
        folder: A checkpoint, or a prepared model's tokenizer folder.

    Returns:
        The tokenizer that `transformers` chooses for it.

    Raises:
        UnsupportedModelError: It cannot be loaded.
    """
    import transformers

    auto: Any = transformers.AutoTokenizer
    try:
        tokenizer: PreTrainedTokenizerBase = auto.from_pretrained(
            str(folder), local_files_only=True
        )
    except Exception as error:  # whatever transformers and its tokenizers raise
        raise UnsupportedModelError(
            f"cannot load the tokenizer of {folder}: {error}{_hint_of_version(folder)}"
        ) from error
    # transformers gives False where a slow tokenizer fails with an OSError.
    if not isinstance(tokenizer, transformers.PreTrainedTokenizerBase):
        raise UnsupportedModelError(f"cannot load the tokenizer of {folder}: its files are damaged")
    return tokenizer


def _hint_of_version(folder: Path) -> str:
    """Says so when the folder was written by a version whose tokenizers version 4 cannot read."""
    try:
        config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        written_by = str(config.get("transformers_version", ""))
    except (OSError, ValueError, AttributeError):
        return ""
    if written_by.split(".")[0] in ("", "4"):
        return ""
    return (
        f" (it was saved by transformers {written_by}, which version 4 cannot always read: take "
        "the tokenizer files of the model it was trained from, or save them with version 4)"
    )


def convert(checkpoint: Path, output: Path, quantization: str) -> None:
    """Runs CTranslate2's converter for transformers.

    Args:
        checkpoint: Folder of the checkpoint.
        output: Folder to write; replaced when it exists.
        quantization: Type of the stored weights.

    Raises:
        ConversionError: The converter failed.
    """
    from ctranslate2.converters import TransformersConverter

    try:
        TransformersConverter(str(checkpoint), low_cpu_mem_usage=True).convert(
            str(output), quantization=quantization, force=True
        )
    except Exception as error:  # whatever transformers and the converter raise
        raise ConversionError(f"CTranslate2 cannot convert {checkpoint}: {error}") from error


def complete_special_tokens(
    model: Path, tokenizer: PreTrainedTokenizerBase, *, prefix_starts: bool
) -> list[str]:
    """Fills in special tokens that the converter wrote as null, which CTranslate2 does not load.

    The tokenizer of mBART-50 names no `bos_token`, and the converter takes a checkpoint whose
    config names no tokenizer for mBART-25, which has no decoder start token.

    Args:
        model: Folder of the converted model.
        tokenizer: The checkpoint's tokenizer.
        prefix_starts: The model has no token that starts its decoder, as mBART-25.

    Returns:
        What was filled in, one sentence each.
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
    checkpoint: Checkpoint, output: Path, tokenizer: PreTrainedTokenizerBase | None = None
) -> None:
    """Copies the tokenizer files, and the config by which `AutoTokenizer` finds the class.

    Args:
        checkpoint: The checkpoint.
        output: An existing folder.
        tokenizer: Write `tokenizer.json` of this one, for clients that need it: a checkpoint may
            have none, or one that lacks tokens which its other files add.
    """
    for name in (*TOKENIZER_FILES, CONFIG_FILE):
        if checkpoint.has(name):
            shutil.copyfile(checkpoint.folder / name, output / name)
    if tokenizer is not None:
        backend: Any = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise UnsupportedModelError(
                f"tokens were added to the tokenizer of {checkpoint.source.id}, and it cannot be "
                "written as tokenizer.json, by which clients find them"
            )
        backend.save(str(output / "tokenizer.json"))
