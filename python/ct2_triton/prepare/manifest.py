# SPDX-License-Identifier: Apache-2.0
"""Writes `ct2_model.json`: where a prepared model comes from and how it was made."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import ct2_triton
from ct2_triton.checksums import checksums
from ct2_triton.prepare.loop_proof import loop_proofs
from ct2_triton.prepared_model import FORMAT, MANIFEST_NAME, write_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ct2_triton.prepare.options import PrepareOptions
from ct2_triton.prepared_model import ModelSource


def write_manifest(
    folder: Path,
    source: ModelSource,
    options: PrepareOptions,
    versions: Mapping[str, str],
    results: Mapping[str, Any],
) -> None:
    """Write the manifest of a folder that is otherwise complete."""
    python = ".".join(map(str, sys.version_info[:3]))
    content = {
        "format": FORMAT,
        "name": folder.name,
        "source": asdict(source),
        "conversion": {
            "quantization": options.quantization,
            "instance_kind": options.instance_kind,
            "max_batch_size": options.max_batch_size,
            "settings": dict(options.settings),
        },
        "versions": {"ct2-triton": ct2_triton.__version__, "python": python, **versions},
        **results,
        "loop_proofs": loop_proofs(folder / "1" / "model", options.settings),
        "files": checksums(folder),
    }
    write_json(folder / MANIFEST_NAME, content)
