# SPDX-License-Identifier: Apache-2.0
"""Holds the files of prepared models against their manifests before a server loads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ct2_triton.checksums import verify
from ct2_triton.errors import PreparedModelError
from ct2_triton.prepared_model import MANIFEST_NAME
from ct2_triton.serve.errors import ModelRepositoryError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def verify_models(repositories: Sequence[Path]) -> list[str]:
    """Check every prepared model of some repositories, and leave other models alone.

    What differs without being damage, and each model without manifest, is returned in a sentence.
    """
    notes: list[str] = []
    damages: list[str] = []
    for folder in sorted(
        entry for repository in repositories for entry in repository.iterdir() if entry.is_dir()
    ):
        if not (folder / MANIFEST_NAME).is_file():
            notes.append(f"{folder} has no {MANIFEST_NAME}: its files were not verified")
            continue
        try:
            notes += verify(folder)
        except PreparedModelError as error:
            damages.append(str(error))
    if damages:
        raise ModelRepositoryError("\n".join(damages))
    return notes
