# SPDX-License-Identifier: Apache-2.0
"""Recognise the kind of a model by its file names, and choose the files to read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ct2_triton.errors import UnsupportedModelError
from ct2_triton.prepare.checkpoint import (
    CARD_FILE,
    CONFIG_FILE,
    TOKENIZER_FILES,
    needed_files,
    weight_files,
)

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

METADATA_FILE = "metadata.json"
DECODER_FILE = "decoder.yml"
MODEL_FILE = "model.bin"
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
            f"{MODEL_FILE} of CTranslate2, nor a package (*{PACKAGE_SUFFIX}), nor {DECODER_FILE} "
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
        if PurePosixPath(name).name == MODEL_FILE:
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
