# SPDX-License-Identifier: Apache-2.0
"""The settings and the interface of the translators in the compared servers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ct2_triton.bench.setup import Row


SETTINGS_NAME = "settings.json"
"""File in a server's model folder that holds its `Settings`."""


@dataclass(frozen=True)
class Settings:
    """The model that a translator loads, and its search.

    Attributes:
        model: A Hugging Face checkpoint, or a CTranslate2 model, as the translator needs it.
        precision: Type of its weights, such as `float32` or `int8`.
        threads: Threads of one call; 0 leaves the library's default.
        workers: Concurrent calls in one process. CTranslate2 only.
        rows_per_call: Most rows that are computed together.
        beam_size: 1 is greedy search.
        max_decoding_length: Longest answer in tokens, the prefix counted.
        device: `cpu` or `gpu`.
    """

    model: str
    precision: str = "float32"
    threads: int = 1
    workers: int = 1
    rows_per_call: int = 64
    beam_size: int = 1
    max_decoding_length: int = 256
    device: str = "cpu"

    @property
    def library_device(self) -> str:
        """Name of the device in PyTorch and CTranslate2."""
        return "cuda" if self.device == "gpu" else "cpu"

    @classmethod
    def read(cls, file: Path) -> Settings:
        """Read the settings from JSON."""
        return cls(**json.loads(file.read_text(encoding="utf-8")))

    def write(self, file: Path) -> None:
        """Write the settings as JSON."""
        file.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


class Translator(Protocol):
    """A loaded model."""

    def check(self, row: Row) -> None:
        """Raise ValueError for a row that would make its whole call fail."""

    def translate(self, rows: Sequence[Row]) -> list[list[int]]:
        """Translate rows that passed `check`, of any lengths and languages, together.

        Returns for each row the prefix and the IDs of the best hypothesis, without `</s>`.
        """
