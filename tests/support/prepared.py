# SPDX-License-Identifier: Apache-2.0
"""Prepared models made of the tiny checkpoints, by ct2-prepare itself."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from ct2_triton.prepare.options import PrepareOptions
from ct2_triton.prepare.pipeline import prepare
from support.tiny import tiny_checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ct2_triton.prepared_model import PreparedModel
    from support.tiny import TinyOptions


@contextmanager
def proofs_of(tokens: int) -> Iterator[None]:
    """Lets proofs compare so many tokens of each sentence, and not 32.

    The proof is most of the work of preparing a tiny model; where it is not the subject, few do.
    """
    from ct2_triton.prepare.verification import own_search, proof

    with ExitStack() as stack:
        for module in (own_search, proof):
            stack.enter_context(patch.object(module, "_MAX_OUTPUT_TOKENS", tokens))
        yield


def prepare_tiny(
    family: str,
    repository: Path,
    name: str,
    tiny: TinyOptions | None = None,
    **options: Any,
) -> PreparedModel:
    """Prepares the tiny checkpoint of a family in float32, with a short proof.

    `options` are PrepareOptions's.
    """
    given = {"quantization": "float32", "instance_kind": "cpu", "placeholders": False}
    options = given | options
    checkpoint = tiny_checkpoint(family, tiny)
    with proofs_of(4):
        return prepare(PrepareOptions(str(checkpoint), repository, name, **options))
