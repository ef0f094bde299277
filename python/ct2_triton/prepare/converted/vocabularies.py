# SPDX-License-Identifier: Apache-2.0
"""The vocabularies of a CTranslate2 model: one for both sides, or one for each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ct2_triton.errors import UnsupportedModelError

if TYPE_CHECKING:
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
