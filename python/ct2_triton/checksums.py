# SPDX-License-Identifier: Apache-2.0
"""SHA-256 checksums of a prepared model's files: written by ct2-prepare, verified on request.

They detect damage (a broken disk, a truncated copy), but not an attacker, who could also change
the manifest.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ct2_triton.errors import PreparedModelError
from ct2_triton.model_versions import FIRST, HISTORY_NAME, has_own_record, record_of, versions_in
from ct2_triton.prepared_model import CONFIG_NAME, MANIFEST_NAME, read_json

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

_BLOCK_BYTES = 1 << 20


def checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a model except the manifest, by relative path, sorted."""
    return {name: sha256(folder / name) for name in _names(folder)}


def verify(folder: Path) -> list[str]:
    """Compare the files of a prepared model with its manifest; raise PreparedModelError for damage.

    A version with its own record is compared with that. Version 1 may have been removed if there is
    another. A changed `config.pbtxt` and additional files are not damage: a sentence about each is
    returned.
    """
    versions = [version for version in versions_in(folder) if has_own_record(folder, version)]
    notes = _verify(folder, set(map(str, versions)), first_may_miss=bool(versions))
    for version in versions:
        notes += _verify(folder / str(version))
    return notes


def verify_version(folder: Path, version: int) -> None:
    """Raise PreparedModelError if files of a version differ from its record, if it has one."""
    if has_own_record(folder, version):
        _verify(folder / str(version))
    elif record_of(folder, version):
        others = {str(other) for other in versions_in(folder) if other != version}
        _verify(folder, others)


def _verify(
    folder: Path, apart: Collection[str] = (), *, first_may_miss: bool = False
) -> list[str]:
    """Compare files with their record, except the folders `apart`, which have their own."""
    listed = read_json(folder / MANIFEST_NAME).get("files")
    if not isinstance(listed, dict) or not listed:
        raise PreparedModelError(
            f"{folder / MANIFEST_NAME} is damaged: it lists no files; prepare the model again with "
            "ct2-prepare"
        )
    there = [name for name in _names(folder) if _folder_of(name) not in apart]
    left_out = (
        {*apart, str(FIRST)} if first_may_miss and not (folder / str(FIRST)).exists() else apart
    )
    listed = {name: digest for name, digest in listed.items() if _folder_of(name) not in left_out}
    missing = [name for name in listed if name not in there]
    changed = [name for name in listed if name in there and _differs(folder / name, listed[name])]
    damaged = [f"{name} is missing" for name in missing]
    damaged += [f"{name} has changed" for name in changed if name != CONFIG_NAME]
    if damaged:
        raise PreparedModelError(
            f"{folder} is not what ct2-prepare wrote: {'; '.join(damaged)} (SHA-256 in "
            f"{MANIFEST_NAME}); copy it again, or prepare it again with ct2-prepare --force"
        )
    notes = [f"{folder / name} is not in {MANIFEST_NAME}" for name in there if name not in listed]
    if CONFIG_NAME in changed:
        notes.insert(0, f"{folder / CONFIG_NAME} has changed since the model was prepared")
    return notes


def _folder_of(name: str) -> str:
    return name.partition("/")[0]


def _names(folder: Path) -> list[str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    ours = {folder / MANIFEST_NAME, folder / HISTORY_NAME}
    return [path.relative_to(folder).as_posix() for path in paths if path not in ours]


def _differs(path: Path, digest: object) -> bool:
    try:
        return sha256(path) != digest
    except OSError as error:
        raise PreparedModelError(f"cannot read {path}: {error.strerror}") from error


def sha256(path: Path) -> str:
    """Hash a file: SHA-256 in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
