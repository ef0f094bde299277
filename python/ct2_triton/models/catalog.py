# SPDX-License-Identifier: Apache-2.0
"""The models of a repository, with their records, and their states on a server."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import PreparedModelError, VersionError
from ct2_triton.model_versions import (
    FIRST,
    followed_by,
    listed,
    read_history,
    record_of,
    served_versions,
    versions_in,
)
from ct2_triton.prepared_model import CONFIG_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ct2_triton.serve.http_probe import ModelState

_SAID_ALREADY = {"format", "name", "model_version"}


@dataclass(frozen=True)
class CatalogEntry:
    """One model of a repository.

    Attributes:
        folder: Its folder.
        versions: The versions in the folder, in order.
        records: ct2-prepare's record of each version; empty if it did not write the version.
        served: The versions that config.pbtxt selects; None if it cannot be read.
        history: Promotions and rollbacks, oldest first.
        states: States of its versions on a server, such as READY; empty without a server.
        follows: The model whose files its versions use; None if it has its own.
        damage: Why its folder or records cannot be read; empty if they can.
    """

    folder: Path
    versions: tuple[int, ...]
    records: Mapping[int, Mapping[str, Any]]
    served: tuple[int, ...] | None = None
    history: Sequence[Mapping[str, Any]] = ()
    states: Mapping[str, str] = field(default_factory=dict)
    follows: str | None = None
    damage: str = ""

    @property
    def name(self) -> str:
        """Its name in Triton, which is the folder's."""
        return self.folder.name

    @property
    def is_prepared(self) -> bool:
        """Whether ct2-prepare wrote the model."""
        return any(self.records.values())

    def facts(self) -> dict[str, Any]:
        """Return all facts about it, without the checksums of files.

        The record is that of the first version; those of later versions are in `later_versions`.
        """
        facts: dict[str, Any] = {
            "name": self.name,
            "folder": str(self.folder),
            "model_versions": list(self.versions),
        }
        if self.damage:
            facts["damage"] = self.damage
        if self.served is not None:
            facts["served_versions"] = list(self.served)
        if self.follows is not None:
            facts["files_of"] = self.follows
        if self.states:
            facts["server"] = dict(self.states)
        if self.history:
            facts["history"] = {entry["at"]: _description(entry) for entry in self.history}
        records = {version: _counted(record) for version, record in self.records.items() if record}
        first = records.pop(FIRST, {})
        if records:
            first["later_versions"] = {str(version): record for version, record in records.items()}
        return {**facts, **first}


def read_catalog(repository: Path, states: Sequence[ModelState] = ()) -> list[CatalogEntry]:
    """Read all models of a repository, ordered by name, with a server's index of models.

    Folders without versions and without configuration are not models.
    """
    if not repository.is_dir():
        raise PreparedModelError(f"there is no model repository {repository}")
    folders = sorted(entry for entry in repository.iterdir() if entry.is_dir())
    entries = (_entry(folder, states) for folder in folders)
    return [entry for entry in entries if entry is not None]


def find(catalog: Sequence[CatalogEntry], names: Sequence[str]) -> list[CatalogEntry]:
    """Find models by name, in that order; without names, all. An error names the nearest."""
    by_name = {entry.name: entry for entry in catalog}
    for name in names:
        if name not in by_name:
            near = difflib.get_close_matches(name, by_name, n=3, cutoff=0.3) or sorted(by_name)[:5]
            raise PreparedModelError(
                f"there is no model {name!r}; nearest: {', '.join(near) or 'none'}"
            )
    return [by_name[name] for name in names] or list(catalog)


def _is_model(folder: Path) -> bool:
    return bool(versions_in(folder)) or (folder / CONFIG_NAME).is_file()


def _entry(folder: Path, states: Sequence[ModelState]) -> CatalogEntry | None:
    """Return a model, also one whose records are damaged; None for another folder."""
    mine = {state.version or "-": state.state for state in states if state.name == folder.name}
    try:
        return _read_entry(folder, mine) if _is_model(folder) else None
    except (PreparedModelError, OSError) as error:
        return CatalogEntry(folder, (), {}, states=mine, damage=str(error))


def _read_entry(folder: Path, states: Mapping[str, str]) -> CatalogEntry:
    versions = versions_in(folder)
    records = {version: record_of(folder, version) for version in versions}
    served, follows = _config_of(folder, versions)
    return CatalogEntry(folder, versions, records, served, read_history(folder), states, follows)


def _config_of(folder: Path, versions: Sequence[int]) -> tuple[tuple[int, ...] | None, str | None]:
    """Return the served versions and the followed model of config.pbtxt; None if unreadable."""
    try:
        return served_versions(folder, versions), followed_by(folder)
    except (ImportError, VersionError):
        return None, None


def _counted(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the number of files in place of their checksums."""
    kept = {key: value for key, value in record.items() if key not in _SAID_ALREADY}
    if "files" in kept:
        kept["files"] = len(kept["files"])
    return kept


def _description(entry: Mapping[str, Any]) -> str:
    before, after = listed(entry["before"]), listed(entry["after"])
    return f"{entry['action']} {before} -> {after}"
