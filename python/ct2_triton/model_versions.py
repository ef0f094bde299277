# SPDX-License-Identifier: Apache-2.0
"""The versions of a model in a repository, and the record of each.

`ct2_model.json` in the model's folder is the record of the version that was prepared with it,
and of the tokenizer and config that all versions share. A later version has one of its own:

    <name>/ct2_model.json        of version 1, tokenizer/ and config.pbtxt
    <name>/1/model/
    <name>/2/ct2_model.json      of version 2; its list of files is relative to <name>/2
    <name>/2/model/
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ct2_triton.errors import PreparedModelError
from ct2_triton.prepared_model import MANIFEST_NAME, read_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HISTORY_NAME = "ct2_versions.json"
"""File with the history of served versions, next to the model's own record."""

FIRST = 1
"""The version that ct2-prepare writes by default."""


def versions_in(model: Path) -> tuple[int, ...]:
    """List the versions of a model."""
    names = (entry.name for entry in model.iterdir() if entry.is_dir())
    return tuple(sorted(int(name) for name in names if name.isascii() and name.isdigit()))


def listed(versions: Sequence[int]) -> str:
    """List versions for a sentence."""
    return ", ".join(map(str, versions)) or "none"


def has_own_record(model: Path, version: int) -> bool:
    """Return whether a version has its own record, from `ct2-prepare --as-version`."""
    return (model / str(version) / MANIFEST_NAME).is_file()


def record_of(model: Path, version: int) -> dict[str, Any]:
    """Read the `ct2_model.json` of a version; empty if ct2-prepare did not write it."""
    if has_own_record(model, version):
        return read_json(model / str(version) / MANIFEST_NAME)
    if version == FIRST and (model / MANIFEST_NAME).is_file():
        return read_json(model / MANIFEST_NAME)
    return {}


def read_history(model: Path) -> list[dict[str, Any]]:
    """Read the history of promotions and rollbacks, oldest first.

    Each entry has `at` (UTC), `action`, and the versions served `before` and `after`.
    """
    path = model / HISTORY_NAME
    if not path.is_file():
        return []
    entries = read_json(path).get("history")
    if not isinstance(entries, list):
        raise PreparedModelError(f"{path} is damaged: it has no history; remove it to start anew")
    for number, entry in enumerate(entries, 1):
        if not _is_entry(entry):
            raise PreparedModelError(
                f"{path} is damaged: entry {number} of its history is neither a promotion nor a "
                "rollback of versions; remove it to start anew"
            )
    return entries


def _is_entry(entry: object) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("at"), str)
        and entry.get("action") in ("promote", "rollback")
        and all(_are_versions(entry.get(key)) for key in ("before", "after"))
    )


def _are_versions(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(version, int) for version in value)
