# SPDX-License-Identifier: Apache-2.0
"""The input of a proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ct2_triton.prepare.checkpoint import Checkpoint
    from ct2_triton.prepare.families import ExpectedVocabulary, Family
    from ct2_triton.prepare.generation import OwnSearch
    from ct2_triton.prepared_model import TokenRules


@dataclass(frozen=True)
class Conversion:
    """The converted model.

    Attributes:
        tokenizer_folder: Folder of the tokenizer files for clients.
        model: Folder of the converted model.
        quantization: Type of the stored weights.
        settings: The caller's parameters for it.
    """

    tokenizer_folder: Path
    model: Path
    quantization: str
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Subject:
    """A conversion to compare with its checkpoint.

    Attributes:
        checkpoint: The checkpoint.
        family: Its family.
        vocabulary: The vocabulary that the conversion must have.
        rules: The token rules for clients.
        search: The checkpoint's own search.
        stored: The converted model.
    """

    checkpoint: Checkpoint
    family: Family
    vocabulary: ExpectedVocabulary
    rules: TokenRules
    search: OwnSearch
    stored: Conversion
