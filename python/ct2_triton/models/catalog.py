# SPDX-License-Identifier: Apache-2.0
"""The models of a repository and their records, with what a server says of them."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import PreparedModelError
from ct2_triton.prepared_model import CONFIG_NAME, MANIFEST_NAME, read_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ct2_triton.serve.http_probe import ModelState


@dataclass(frozen=True)
class CatalogEntry:
    """One model of a repository.

    Attributes:
        folder: Its folder.
        versions: The versions that lie there, in order.
        record: Its `ct2_model.json`; empty where ct2-prepare did not write the model.
        states: What a server says of its versions, such as READY; empty where none was asked.
    """

    folder: Path
    versions: tuple[int, ...]
    record: Mapping[str, Any]
    states: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name in Triton: that of the folder."""
        return self.folder.name

    def facts(self) -> dict[str, Any]:
        """What is known of it, without the checksum of each file.

        Returns:
            Name, folder, versions and, of a prepared model, its record.
        """
        facts: dict[str, Any] = {
            "name": self.name,
            "folder": str(self.folder),
            "model_versions": list(self.versions),
        }
        if self.states:
            facts["server"] = dict(self.states)
        record = {key: value for key, value in self.record.items() if key not in {"format", "name"}}
        if "files" in record:
            record["files"] = len(record["files"])
        return {**facts, **record}


def read_catalog(repository: Path, states: Sequence[ModelState] = ()) -> list[CatalogEntry]:
    """Reads all models of a repository.

    Args:
        repository: The folder.
        states: The index of a server that has this repository.

    Returns:
        Its models by name; folders without versions and without configuration are none.

    Raises:
        PreparedModelError: There is no such folder, or the record of a model is damaged.
    """
    if not repository.is_dir():
        raise PreparedModelError(f"there is no model repository {repository}")
    folders = sorted(entry for entry in repository.iterdir() if entry.is_dir())
    return [_entry(folder, states) for folder in folders if _is_model(folder)]


def find(catalog: Sequence[CatalogEntry], names: Sequence[str]) -> list[CatalogEntry]:
    """Finds models by name.

    Args:
        catalog: Where to look.
        names: The models wanted; none for all.

    Returns:
        The models, in the order of the names.

    Raises:
        PreparedModelError: There is no such model; the text names the nearest.
    """
    by_name = {entry.name: entry for entry in catalog}
    for name in names:
        if name not in by_name:
            near = difflib.get_close_matches(name, by_name, n=3, cutoff=0.3) or sorted(by_name)[:5]
            raise PreparedModelError(
                f"there is no model {name!r}; there is: {', '.join(near) or 'none'}"
            )
    return [by_name[name] for name in names] or list(catalog)


def _is_model(folder: Path) -> bool:
    return bool(_versions(folder)) or (folder / CONFIG_NAME).is_file()


def _versions(folder: Path) -> tuple[int, ...]:
    names = (entry.name for entry in folder.iterdir() if entry.is_dir())
    return tuple(sorted(int(name) for name in names if name.isascii() and name.isdigit()))


def _entry(folder: Path, states: Sequence[ModelState]) -> CatalogEntry:
    manifest = folder / MANIFEST_NAME
    record = read_json(manifest) if manifest.exists() else {}
    mine = {state.version or "-": state.state for state in states if state.name == folder.name}
    return CatalogEntry(folder, _versions(folder), record, mine)
