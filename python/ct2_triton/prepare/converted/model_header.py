# SPDX-License-Identifier: Apache-2.0
"""Read the header of a CTranslate2 model.bin: kind of model, sizes and types of weights."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from ct2_triton.errors import UnsupportedModelError

if TYPE_CHECKING:
    from pathlib import Path

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
            header = _read(stream)
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


def _read(stream: BinaryIO) -> ModelHeader:
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
