# SPDX-License-Identifier: Apache-2.0
"""Prepared models made of the tiny checkpoints, by ct2-prepare itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ct2_triton.prepare.options import PrepareOptions
from ct2_triton.prepare.pipeline import prepare
from support.tiny import tiny_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    from ct2_triton.prepared_model import PreparedModel
    from support.tiny import TinyOptions


def prepare_tiny(
    family: str,
    repository: Path,
    name: str,
    tiny: TinyOptions | None = None,
    **options: Any,
) -> PreparedModel:
    """Prepares the tiny checkpoint of a family in float32; `options` are PrepareOptions's."""
    given = {"quantization": "float32", "instance_kind": "cpu", "placeholders": False}
    options = given | options
    checkpoint = tiny_checkpoint(family, tiny)
    return prepare(PrepareOptions(str(checkpoint), repository, name, **options))
