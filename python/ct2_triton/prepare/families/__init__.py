# SPDX-License-Identifier: Apache-2.0
"""The model families that can be prepared, one class each, and their recognition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ct2_triton.errors import UnsupportedModelError
from ct2_triton.prepare.families.base import ExpectedVocabulary, Family
from ct2_triton.prepare.families.marian import Marian
from ct2_triton.prepare.families.prefixed import M2M100, NLLB, MBart25, MBart50
from ct2_triton.prepare.families.t5 import T5

if TYPE_CHECKING:
    from ct2_triton.prepare.checkpoint import Checkpoint

__all__ = ["FAMILIES", "ExpectedVocabulary", "Family", "recognise"]

# The first that recognises a checkpoint is used.
FAMILIES: tuple[Family, ...] = (NLLB(), M2M100(), MBart50(), MBart25(), Marian(), T5())

# Model types that cannot be prepared, and why.
_IN_THE_WAY = {
    "nllb-moe": "CTranslate2 has no layers of experts, so it neither converts nor runs it; the "
    "dense NLLB-200 models, such as facebook/nllb-200-3.3B, can be prepared"
}


def recognise(checkpoint: Checkpoint) -> Family:
    """Find the family of a checkpoint from its configs."""
    for family in FAMILIES:
        if family.recognises(checkpoint):
            return family
    kind = checkpoint.config.get("model_type")
    known = ", ".join(family.title for family in FAMILIES)
    if kind in _IN_THE_WAY:
        raise UnsupportedModelError(
            f"{checkpoint.source.id} is a model of type {kind!r}, which cannot be prepared: "
            f"{_IN_THE_WAY[kind]}"
        )
    raise UnsupportedModelError(
        f"{checkpoint.source.id} is a model of type {kind!r} with tokenizer "
        f"{checkpoint.tokenizer_class or 'unknown'!r}; what can be prepared: {known}"
    )
