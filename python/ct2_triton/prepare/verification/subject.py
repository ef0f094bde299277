# SPDX-License-Identifier: Apache-2.0
"""What a proof is about."""

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
    """What was written.

    Attributes:
        tokenizer_folder: The tokenizer files that clients will read.
        model: Folder of the converted model.
        quantization: Type it was stored in.
        settings: The parameters that the caller chose for it.
    """

    tokenizer_folder: Path
    model: Path
    quantization: str
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Subject:
    """What is to be proved equal to its checkpoint.

    Attributes:
        checkpoint: The checkpoint.
        family: Its family.
        vocabulary: The vocabulary that the conversion must have.
        rules: What clients will go by.
        search: The search that the checkpoint asks for.
        stored: What was written.
    """

    checkpoint: Checkpoint
    family: Family
    vocabulary: ExpectedVocabulary
    rules: TokenRules
    search: OwnSearch
    stored: Conversion
