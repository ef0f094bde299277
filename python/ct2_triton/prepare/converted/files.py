# SPDX-License-Identifier: Apache-2.0
"""The files of a converted model: the header of its weights, its vocabularies and tokenizers."""

from __future__ import annotations

import json
import os
import shutil
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from ct2_triton.errors import UnsupportedModelError, VerificationError
from ct2_triton.prepare.checkpoint import CONFIG_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_SHARED, _SOURCE, _TARGET = "shared_vocabulary", "source_vocabulary", "target_vocabulary"


@dataclass(frozen=True)
class Vocabularies:
    """The token of each ID, for each side.

    Attributes:
        source: Tokens of INPUT_IDS.
        target: Tokens of TARGET_PREFIX and OUTPUT_IDS; the same object if both sides share one.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]

    @property
    def shared(self) -> bool:
        """Whether both sides have the same IDs."""
        return self.source == self.target

    def write(self, folder: Path) -> None:
        """Write the files as CTranslate2 4 names and reads them."""
        sides = {_SOURCE: self.source, _TARGET: self.target}
        for name, tokens in ({_SHARED: self.source} if self.shared else sides).items():
            content = json.dumps(tokens, ensure_ascii=False, indent=0)
            (folder / f"{name}.json").write_text(content, encoding="utf-8")


def read_vocabularies(folder: Path) -> Vocabularies:
    """Read the vocabularies: JSON, or one token per line as written by older versions."""
    shared, source, target = (_read(folder, name) for name in (_SHARED, _SOURCE, _TARGET))
    if shared:
        return Vocabularies(shared, shared)
    if source and target:
        return Vocabularies(source, target)
    if any(folder.glob("source_1_vocabulary.*")):
        raise UnsupportedModelError(
            "the model takes features beside its words (source_1_vocabulary), which requests lack"
        )
    raise UnsupportedModelError(
        f"there is no vocabulary beside model.bin ({_SHARED}.json, or {_SOURCE}.json and "
        f"{_TARGET}.json; also .txt)"
    )


def _read(folder: Path, name: str) -> tuple[str, ...]:
    try:
        if (file := folder / f"{name}.json").is_file():
            return _tokens(json.loads(file.read_text(encoding="utf-8")))
        if (file := folder / f"{name}.txt").is_file():
            return tuple(file.read_text(encoding="utf-8").removesuffix("\n").split("\n"))
    except ValueError as error:
        raise UnsupportedModelError(f"{file.name} is damaged: {error}") from error
    return ()


def _tokens(content: object) -> tuple[str, ...]:
    if not isinstance(content, list) or not all(isinstance(one, str) for one in content):
        raise ValueError("it is not a list of tokens")
    return tuple(content)


_TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
# Formats before the first do not name the model; those before the second store sizes differently.
_FIRST_WITH_NAME, _FIRST_WITH_TYPES, _LAST = 2, 4, 6
_TRANSLATION_MODELS = ("TransformerSpec", "TransformerBase", "TransformerBig")


@dataclass(frozen=True)
class ModelHeader:
    """The header of a model.bin.

    Attributes:
        specification: CTranslate2's name of this kind of model.
        weights: Dimensions and type of each weight by name, aliases included; empty in old formats.
    """

    specification: str
    weights: dict[str, tuple[tuple[int, ...], str]]

    def rows(self, name: str) -> int | None:
        """Return the first dimension of a weight; None if there is no such weight."""
        dimensions, _ = self.weights.get(name, ((), ""))
        return dimensions[0] if dimensions else None

    @property
    def quantization(self) -> str:
        """Type of the first layer's weights; `unknown` in old formats."""
        found = (kind for name, (_, kind) in self.weights.items() if name.endswith("_0/weight"))
        return next(found, "unknown")


def read_header(path: Path) -> ModelHeader:
    """Read the header of a translation model."""
    try:
        with path.open("rb") as stream:
            header = _read_header(stream)
    except (OSError, struct.error, UnicodeDecodeError, IndexError) as error:
        raise UnsupportedModelError(
            f"{path.name} is not a CTranslate2 model, or it is damaged: {error}"
        ) from error
    if header.specification not in _TRANSLATION_MODELS:
        raise UnsupportedModelError(
            f"{path.name} holds a {header.specification[:40]!r}, which is not a translation model "
            "(encoder and decoder)"
        )
    return header


def _read_header(stream: BinaryIO) -> ModelHeader:
    version = _number(stream, "I")
    if not _FIRST_WITH_NAME <= version <= _LAST:
        raise IndexError(f"format {version}, known: {_FIRST_WITH_NAME} to {_LAST}")
    specification = _text(stream)
    _number(stream, "I")  # revision
    weights: dict[str, tuple[tuple[int, ...], str]] = {}
    if version < _FIRST_WITH_TYPES or specification not in _TRANSLATION_MODELS:
        return ModelHeader(specification, weights)
    size = os.fstat(stream.fileno()).st_size
    for _ in range(_number(stream, "I")):
        name = _text(stream)
        dimensions = tuple(_number(stream, "I") for _ in range(_number(stream, "B")))
        weights[name] = dimensions, _TYPES[_number(stream, "B")]
        if stream.seek(_number(stream, "I"), os.SEEK_CUR) > size:
            raise IndexError(f"the file ends within {name}")
    for _ in range(_number(stream, "I")):
        alias = _text(stream)
        weights[alias] = weights.get(_text(stream), ((), ""))
    return ModelHeader(specification, weights)


def _number(stream: BinaryIO, kind: str) -> int:
    value: int = struct.unpack(f"<{kind}", stream.read(struct.calcsize(f"<{kind}")))[0]
    return value


def _text(stream: BinaryIO) -> str:
    size = _number(stream, "H")
    content = stream.read(size)
    if len(content) < size:
        raise IndexError("the file ends within a name")
    return content.rstrip(b"\0").decode()


_PAIRS = (("source.spm", "target.spm"), ("src.spm", "tgt.spm"), ("source.model", "target.model"))
_SINGLE = ("sentencepiece.bpe.model", "sentencepiece.model", "spiece.model", "tokenizer.model")
_JSON = "tokenizer.json"
_SHOWN = 3


def find_tokenizer_files(folder: Path) -> tuple[Path, Path]:
    """Find the files that encode sources and decode translations, which may be one file."""
    for source, target in _PAIRS:
        if (folder / source).is_file() and (folder / target).is_file():
            return folder / source, folder / target
    for name in _SINGLE:
        if (folder / name).is_file():
            return folder / name, folder / name
    others = sorted({*folder.glob("*.model"), *folder.glob("*.spm")} - {folder / "bpe.model"})
    if len(others) == 1:
        return others[0], others[0]
    if others:
        names = ", ".join(path.name for path in others)
        raise UnsupportedModelError(
            f"{names}: it is unknown which one tokenizes the source; name them source.spm and "
            "target.spm"
        )
    if (folder / _JSON).is_file():
        return folder / _JSON, folder / _JSON
    if any(folder.glob("*bpe*")):
        raise UnsupportedModelError(
            "its texts are split by subword-nmt (BPE) after Moses' tokenizer; only SentencePiece "
            "models and tokenizer.json are read"
        )
    raise UnsupportedModelError(
        "there is no tokenizer: neither a SentencePiece model (source.spm and target.spm, "
        f"{', '.join(_SINGLE)}) nor {_JSON}"
    )


def write_tokenizer(files: tuple[Path, Path], vocabularies: Vocabularies, output: Path) -> None:
    """Write the tokenizer folder for clients, without languages.json."""
    source, target = files
    if source.name == _JSON:
        shutil.copyfile(source, output / _JSON)
    elif source == target:
        shutil.copyfile(source, output / "sentencepiece.model")
    else:
        shutil.copyfile(source, output / "source.spm")
        shutil.copyfile(target, output / "target.spm")
    vocabularies.write(output)


def check_ids(folder: Path, vocabularies: Vocabularies) -> list[str]:
    """Compare the IDs of the tokenizer's own files with the vocabulary; return the files' names."""
    files: dict[str, Sequence[str]] = {"vocab.json": vocabularies.source}
    files |= {"target_vocab.json": vocabularies.target, _JSON: vocabularies.source}
    compared = [name for name in files if (folder / name).is_file()]
    for name in compared:
        numbered = _numbered(folder / name)
        tokens = files[name]
        wrong = {t: i for t, i in numbered.items() if i < len(tokens) and tokens[i] != t}
        if wrong:
            shown = ", ".join(
                f"{i}: {tokens[i]!r} for {t!r}" for t, i in list(wrong.items())[:_SHOWN]
            )
            raise VerificationError(
                f"the model's vocabulary differs from {name} at {len(wrong)} of {len(numbered)} "
                f"ids ({shown}); these files do not belong together"
            )
    return compared


def _numbered(file: Path) -> dict[str, int]:
    if file.name == _JSON:
        import tokenizers

        found: dict[str, int] = tokenizers.Tokenizer.from_file(str(file)).get_vocab()
        return found
    content = json.loads(file.read_text(encoding="utf-8"))
    return content if isinstance(content, dict) else {}


def read_config(model: Path) -> dict[str, object]:
    """Read the config.json of a CTranslate2 model; empty for older models without it."""
    file = model / CONFIG_FILE
    try:
        content = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (OSError, ValueError) as error:
        raise UnsupportedModelError(f"{file.name} is damaged: {error}") from error
    return content if isinstance(content, dict) else {}
