# SPDX-License-Identifier: Apache-2.0
"""A model while it is prepared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ct2_triton.prepared_model import TOKENIZER_NAME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ct2_triton.prepare.options import PrepareOptions


@dataclass(frozen=True)
class NewModel:
    """A model while it is prepared.

    Attributes:
        folder: Its folder, which is moved to its place when it is complete.
        options: What to prepare.
        report: Called with a line of text for each step.
    """

    folder: Path
    options: PrepareOptions
    report: Callable[[str], None]

    @property
    def weights(self) -> Path:
        """Folder of the CTranslate2 model."""
        return self.folder / "1" / "model"

    @property
    def tokenizer(self) -> Path:
        """Folder of the tokenizer files and `languages.json`."""
        return self.folder / TOKENIZER_NAME
