# SPDX-License-Identifier: Apache-2.0
"""The model.bin of a CTranslate2 model, taken apart and put together: for tests of odd models."""

from __future__ import annotations

import shutil
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

INT8 = 1


@dataclass
class Variable:
    """A weight, or an attribute, which has no dimensions.

    Attributes:
        dimensions: Its sizes.
        kind: CTranslate2's number of the type of its elements.
        content: Its elements.
    """

    dimensions: tuple[int, ...]
    kind: int
    content: bytes


@dataclass
class ModelBin:
    """What a model.bin holds.

    Attributes:
        version: Of the format.
        specification: What kind of model it is.
        revision: Of the specification.
        variables: By name.
        aliases: Further names, and what they are names of.
    """

    version: int
    specification: str
    revision: int
    variables: dict[str, Variable] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)


def edited_copy(
    model: Path,
    folder: Path,
    drop: Iterable[str] = (),
    flags: dict[str, int] | None = None,
) -> Path:
    """Copies a CTranslate2 model, without some variables and with more flags.

    Args:
        model: Directory of the model; it stays as it is.
        folder: Directory to write, which must not exist.
        drop: Names of variables or aliases to leave out.
        flags: Attributes of one byte to add or to set.

    Returns:
        `folder`.
    """
    shutil.copytree(model, folder)
    content = read_model_bin(folder / "model.bin")
    for name in drop:
        content.variables.pop(name, None)
        content.aliases.pop(name, None)
    for name, value in (flags or {}).items():
        content.variables[name] = Variable((), INT8, struct.pack("<b", value))
    write_model_bin(content, folder / "model.bin")
    return folder


def read_model_bin(path: Path) -> ModelBin:
    """Reads a file of version 6."""
    with path.open("rb") as stream:

        def number(kind: str) -> int:
            value: int = struct.unpack(f"<{kind}", stream.read(struct.calcsize(kind)))[0]
            return value

        def text() -> str:
            return stream.read(number("H"))[:-1].decode()

        content = ModelBin(number("I"), text(), number("I"))
        for _ in range(number("I")):
            name = text()
            dimensions = tuple(number("I") for _ in range(number("B")))
            kind, size = number("B"), number("I")
            content.variables[name] = Variable(dimensions, kind, stream.read(size))
        for _ in range(number("I")):
            alias = text()
            content.aliases[alias] = text()
    return content


def write_model_bin(content: ModelBin, path: Path) -> None:
    """Writes what `read_model_bin` reads."""

    def text(value: str) -> bytes:
        encoded = value.encode() + b"\0"
        return struct.pack("<H", len(encoded)) + encoded

    with path.open("wb") as stream:
        stream.write(struct.pack("<I", content.version) + text(content.specification))
        stream.write(struct.pack("<II", content.revision, len(content.variables)))
        for name, variable in content.variables.items():
            sizes = struct.pack(f"<B{len(variable.dimensions)}I", len(variable.dimensions),
                                *variable.dimensions)  # fmt: skip
            stream.write(text(name) + sizes)
            stream.write(struct.pack("<BI", variable.kind, len(variable.content)))
            stream.write(variable.content)
        stream.write(struct.pack("<I", len(content.aliases)))
        for alias, name in content.aliases.items():
            stream.write(text(alias) + text(name))
