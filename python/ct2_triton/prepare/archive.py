# SPDX-License-Identifier: Apache-2.0
"""Unpacks a model that comes as one zip file: an Argos package or an OPUS-MT archive."""

from __future__ import annotations

import shutil
import zipfile
import zlib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ct2_triton.errors import SourceError, UnsupportedModelError
from ct2_triton.prepare.layout import PACKAGE_SUFFIX, layout_of

if TYPE_CHECKING:
    from pathlib import Path

SUFFIXES = (PACKAGE_SUFFIX, ".zip")


def unpack(archive: Path, output: Path) -> None:
    """Unpack the files that a preparation reads, and no others, into an empty folder."""
    try:
        with zipfile.ZipFile(archive) as content:
            members = _members(content)
            wanted = {name: members[name] for name in layout_of(members).files}
            _check_room(archive, output, sum(entry.file_size for entry in wanted.values()))
            for name, entry in wanted.items():
                target = output / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with content.open(entry) as source, target.open("wb") as stream:
                    shutil.copyfileobj(source, stream)
    except UnsupportedModelError as error:
        raise UnsupportedModelError(f"{archive} cannot be prepared: {error}") from error
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise SourceError(f"cannot unpack {archive}: {error}") from error


def _members(content: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """List the files by name, without the one folder that all of them may lie in."""
    entries = {entry.filename: entry for entry in content.infolist() if not entry.is_dir()}
    for name in entries:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise UnsupportedModelError(f"it holds the name {name!r}, which leaves its folder")
    tops = {name.split("/")[0] for name in entries}
    if len(tops) == 1 and all("/" in name for name in entries):
        return {name.split("/", 1)[1]: entry for name, entry in entries.items()}
    return entries


def _check_room(archive: Path, output: Path, size: int) -> None:
    free = shutil.disk_usage(output).free
    if size > free:
        raise SourceError(
            f"{archive} unpacks to {size} bytes, and {output.parent} has {free}; set TMPDIR to a "
            "folder with more room"
        )
