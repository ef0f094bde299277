# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face checkpoint on disk: its relevant files, and its configs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import ConversionError, UnsupportedModelError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from ct2_triton.prepared_model import ModelSource

CONFIG_FILE = "config.json"
CARD_FILE = "README.md"

# Files that `from_pretrained` of a tokenizer reads, for all families; a checkpoint has some of
# them.
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "sentencepiece.bpe.model",
    "sentencepiece.model",
    "spiece.model",
    "source.spm",
    "target.spm",
    "vocab.json",
    "target_vocab.json",
)

# Early releases of transformers 5 write the first name for any tokenizer that `tokenizers` runs.
_CLASSES_OF_ANY_FAMILY = ("TokenizersBackend", "PreTrainedTokenizer")

_PLAIN_FILES = (CONFIG_FILE, "generation_config.json", CARD_FILE, *TOKENIZER_FILES)
# Best first: (single file, index of shards, how the shards begin and end).
_WEIGHT_FORMATS = (
    ("model.safetensors", "model.safetensors.index.json", "model-", ".safetensors"),
    ("pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-", ".bin"),
)


def needed_files(available: Collection[str]) -> list[str]:
    """Choose the files that a preparation reads: configs, tokenizer, weights in one format."""
    if CONFIG_FILE not in available:
        raise UnsupportedModelError(
            f"there is no {CONFIG_FILE}: this is not a transformers checkpoint"
        )
    plain = {name for name in _PLAIN_FILES if name in available}
    weights = weight_files(available)
    if not weights:
        wanted = " or ".join(single for single, *_ in _WEIGHT_FORMATS)
        raise UnsupportedModelError(
            f"there are no PyTorch weights ({wanted}); TensorFlow, Flax and ONNX are not read"
        )
    return sorted(plain | weights)


def weight_files(available: Collection[str]) -> set[str]:
    """Choose the weight files in one format; none if there are no PyTorch weights."""
    for single, index, begin, end in _WEIGHT_FORMATS:
        if single in available:
            return {single}
        if index in available:
            shards = {name for name in available if name.startswith(begin) and name.endswith(end)}
            return {index, *shards}
    return set()


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint in a local folder.

    Attributes:
        folder: Folder of its files.
        source: Its origin.
    """

    folder: Path
    source: ModelSource

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """`config.json`."""
        return self._json(CONFIG_FILE)

    @cached_property
    def tokenizer_config(self) -> Mapping[str, Any]:
        """`tokenizer_config.json`; empty if it is missing."""
        return self._json("tokenizer_config.json", required=False)

    @cached_property
    def generation_config(self) -> Mapping[str, Any]:
        """`generation_config.json`; older checkpoints keep its fields in `config.json`."""
        return self._json("generation_config.json", required=False) or self.config

    @property
    def tokenizer_class(self) -> str:
        """Name of the tokenizer's class without `Fast`; empty if no file names it."""
        for config in (self.tokenizer_config, self.config):
            name = str(config.get("tokenizer_class") or "").removesuffix("Fast")
            if name and name not in _CLASSES_OF_ANY_FAMILY:
                return name
        return ""

    def has(self, name: str) -> bool:
        """Return whether a file exists."""
        return (self.folder / name).is_file()

    def missing_shards(self) -> list[str]:
        """Return the weight files that an index lists and the folder lacks."""
        listed = {
            str(shard)
            for single, index, *_ in _WEIGHT_FORMATS
            if self.has(index) and not self.has(single)
            for shard in self._json(index).get("weight_map", {}).values()
        }
        return sorted(shard for shard in listed if not self.has(shard))

    def _json(self, name: str, *, required: bool = True) -> Mapping[str, Any]:
        path = self.folder / name
        if not required and not path.is_file():
            return {}
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UnsupportedModelError(f"cannot read {path}: {error}") from error
        if not isinstance(content, dict):
            raise UnsupportedModelError(f"{path} holds no JSON object")
        return content


_BYTES_OF_FLOAT32 = 4
# Measured by benchmarks/measure_prepare_memory.py: the weights in memory, a part of them again
# in another type or as pages of their file, and the libraries.
_TIMES_THE_WEIGHTS = 1.75
_LIBRARIES_BYTES = 450_000_000
_GB = 1e9


def weights_bytes(checkpoint: Path) -> int:
    """Return the size in bytes of a checkpoint's weights in float32, without reading them.

    Tied weights count once.
    """
    import torch
    import transformers

    auto_config: Any = transformers.AutoConfig
    auto_model: Any = transformers.AutoModelForSeq2SeqLM
    try:
        config = auto_config.from_pretrained(str(checkpoint), local_files_only=True)
        with torch.device("meta"):
            model = auto_model.from_config(config)
    except Exception as error:  # transformers raises various exceptions
        raise ConversionError(f"transformers makes no model of {checkpoint}: {error}") from error
    return int(model.num_parameters()) * _BYTES_OF_FLOAT32


def memory_line(checkpoint: Path) -> str:
    """Return a line about the memory that the preparation needs, in GB (10^9 bytes)."""
    weights = weights_bytes(checkpoint)
    needed = weights * _TIMES_THE_WEIGHTS + _LIBRARIES_BYTES
    return (
        f"needs about {needed / _GB:.1f} GB of memory; the weights in float32 are "
        f"{weights / _GB:.1f} GB"
    )
