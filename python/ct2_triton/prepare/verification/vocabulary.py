# SPDX-License-Identifier: Apache-2.0
"""Compares the vocabulary of a converted model with what its family says, id by id."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ct2_triton.errors import VerificationError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ct2_triton.prepare.families import ExpectedVocabulary

_SHOWN = 3


def check_vocabulary(model: Path, expected: ExpectedVocabulary) -> None:
    """Hold each vocabulary against the expected one; an error shows the first difference."""
    for path in vocabulary_files(model):
        tokens = expected.target if path.name.startswith("target") else expected.tokens
        _compare(path.name, json.loads(path.read_text(encoding="utf-8")), tokens)


def vocabulary_files(model: Path) -> list[Path]:
    """Find the vocabulary files of a converted model: one shared, or one for each side."""
    files = sorted(model.glob("*_vocabulary.json"))
    if not files:
        raise VerificationError(f"the converted model has no vocabulary file in {model}")
    return files


def _compare(name: str, found: Sequence[str], expected: Sequence[str]) -> None:
    if len(found) != len(expected):
        raise VerificationError(
            f"{name} has {len(found)} tokens where the tokenizer and the model's embedding table "
            f"call for {len(expected)}"
        )
    wrong = [i for i, (one, other) in enumerate(zip(found, expected, strict=True)) if one != other]
    if wrong:
        shown = ", ".join(f"{i}: {found[i]!r} for {expected[i]!r}" for i in wrong[:_SHOWN])
        raise VerificationError(
            f"{name} differs from the tokenizer at {len(wrong)} of {len(expected)} ids ({shown})"
        )
