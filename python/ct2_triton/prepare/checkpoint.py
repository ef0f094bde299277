# SPDX-License-Identifier: Apache-2.0
"""A model on disk: its kind by its file names, its relevant files, and its configs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import ConversionError, UnsupportedModelError
from ct2_triton.prepared_model import WEIGHTS_NAME

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from ct2_triton.prepared_model import ModelSource

METADATA_FILE = "metadata.json"
DECODER_FILE = "decoder.yml"
PACKAGE_SUFFIX = ".argosmodel"

_SENTENCEPIECE_SUFFIXES = (".spm", ".model", ".bpe")


class Kind(Enum):
    """A kind of model by its format on disk."""

    TRANSFORMERS = "transformers checkpoint"
    CTRANSLATE2 = "CTranslate2 model"
    ARGOS = "Argos package"
    OPUS_MT = "OPUS-MT archive"
    OPENNMT_PY = "OpenNMT-py checkpoint"


@dataclass(frozen=True)
class Layout:
    """The files of a model.

    Attributes:
        kind: The kind of model.
        files: Names of the files to read, sorted.
        weights: Name of the weight file; empty for a transformers checkpoint.
    """

    kind: Kind
    files: tuple[str, ...]
    weights: str = ""

    @property
    def root(self) -> str:
        """Folder of the weights and vocabularies, relative to the model's root; `.`: the root."""
        return str(PurePosixPath(self.weights).parent)


def layout_of(available: Collection[str]) -> Layout:
    """Recognise a model by the names of its files, relative to its root."""
    found = _weights(available)
    if CONFIG_FILE in available and (weight_files(available) or not found):
        return Layout(Kind.TRANSFORMERS, tuple(needed_files(available)))
    if not found:
        raise UnsupportedModelError(
            f"there is no model: neither {CONFIG_FILE} and weights of transformers, nor "
            f"{WEIGHTS_NAME} of CTranslate2, nor a package (*{PACKAGE_SUFFIX}), nor {DECODER_FILE} "
            "and *.npz of OPUS-MT, nor *.pt of OpenNMT-py"
        )
    if len(found) > 1:
        names = ", ".join(name for name, _ in found)
        raise UnsupportedModelError(f"there are {len(found)} models ({names}); give one alone")
    weights, kind = found[0]
    if kind is Kind.CTRANSLATE2 and METADATA_FILE in available:
        kind = Kind.ARGOS
    return Layout(kind, tuple(sorted(_files(weights, available))), weights)


def files_in(folder: Path) -> set[str]:
    """Return the files of a local model, relative to the folder, with those in Argos's `model/`."""
    names = {entry.name for entry in folder.iterdir() if entry.is_file()}
    if METADATA_FILE in names and (folder / "model").is_dir():
        names |= {f"model/{entry.name}" for entry in (folder / "model").iterdir()}
    return names


def layout_in(folder: Path) -> Layout:
    """Return the kind of model in a folder, and its files."""
    return layout_of(files_in(folder))


def _weights(available: Collection[str]) -> list[tuple[str, Kind]]:
    """Return the files that are each a model."""
    found = []
    for name in sorted(available):
        if PurePosixPath(name).name == WEIGHTS_NAME:
            found.append((name, Kind.CTRANSLATE2))
        elif "/" in name:  # an Argos package has *.pt files of other programs in folders
            continue
        elif name.endswith(PACKAGE_SUFFIX):
            found.append((name, Kind.ARGOS))
        elif name.endswith(".npz") and DECODER_FILE in available:
            found.append((name, Kind.OPUS_MT))
        elif name.endswith(".pt"):
            found.append((name, Kind.OPENNMT_PY))
    return found


def _files(weights: str, available: Collection[str]) -> set[str]:
    """Choose the weights, the files in their folder, and the tokenizer files at the root."""
    root = str(PurePosixPath(weights).parent)
    beside = {name for name in available if str(PurePosixPath(name).parent) == root}
    plain = {CARD_FILE, CONFIG_FILE, DECODER_FILE, METADATA_FILE, "generation_config.json"}
    at_root = {name for name in available if "/" not in name}
    wanted = {
        name
        for name in beside | at_root
        if (base := PurePosixPath(name).name) in plain
        or base in TOKENIZER_FILES
        or "vocab" in base
        or base.endswith(_SENTENCEPIECE_SUFFIXES)
    }
    return wanted | {weights}


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
