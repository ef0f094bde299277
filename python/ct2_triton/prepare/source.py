# SPDX-License-Identifier: Apache-2.0
"""Get a model from a local directory, an archive, the hub, or the hub's local cache."""

from __future__ import annotations

import os
import shutil
import time
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ct2_triton.errors import SourceError, UnsupportedModelError
from ct2_triton.prepare import shipped
from ct2_triton.prepare.checkpoint import (
    CARD_FILE,
    PACKAGE_SUFFIX,
    Checkpoint,
    layout_in,
    layout_of,
)
from ct2_triton.prepare.environment import check_conversion
from ct2_triton.prepared_model import ModelSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from huggingface_hub.hf_api import ModelInfo

_DOWNLOAD_ATTEMPTS = 3
_DOWNLOAD_WORKERS = 4
_RETRY_PAUSE_S = 1.0

_NO_NETWORK = (
    "Give a local directory that holds the checkpoint, or set HF_HOME to a cache that has it, "
    "or HF_ENDPOINT to a mirror that can be reached."
)


def find_checkpoint(source: str, revision: str | None, scratch: Path) -> Checkpoint:
    """Find a model, and download missing files.

    `demo` is the model in the package. An existing path is a local directory or an archive;
    anything else is a hub ID. An interrupted download is resumed. Without a network, a complete
    snapshot in the hub's cache is used.

    Args:
        source: `demo`, local directory, archive or hub ID.
        revision: Branch, tag or commit of a hub ID; None is the default branch.
        scratch: An empty folder, for the content of an archive.

    Returns:
        The model, in the directory given, in the hub's cache or in `scratch`.

    Raises:
        SourceError: The directory, repository or revision does not exist; no access; no network.
        UnsupportedModelError: Files are missing.
        MissingPackageError: The conversion needs a package; nothing was downloaded.
    """
    if source == shipped.NAME:
        return shipped.checkpoint(revision)
    checkpoint = _find(source, revision)
    package = checkpoint.folder
    if package.is_dir():
        weights = layout_in(checkpoint.folder).weights
        if not weights.endswith(PACKAGE_SUFFIX):
            return checkpoint
        package /= weights
    unpack(package, scratch)
    return _local(scratch, checkpoint.source)


def _find(source: str, revision: str | None) -> Checkpoint:
    path = Path(source).expanduser()
    if path.is_file():
        return _archive(path, source, revision)
    if path.is_dir():
        if revision is not None:
            raise SourceError(f"{source} is a local directory: it has no revision {revision!r}")
        folder = path.resolve()
        licence = _license_of_card(path)
        return _local(folder, ModelSource(id=source, license=licence, path=str(folder)))
    check_path(source)
    return _from_hub(source, revision)


def check_path(source: str) -> None:
    """Raise SourceError if a source is written as a path, but nothing is there."""
    if _looks_like_path(source) and not Path(source).expanduser().exists():
        raise SourceError(
            f"there is no file or folder {source}, and it is not a hub ID (owner/name)"
        )


def _archive(path: Path, source: str, revision: str | None) -> Checkpoint:
    if revision is not None:
        raise SourceError(f"{source} is a local file: it has no revision {revision!r}")
    if path.suffix not in SUFFIXES:
        raise SourceError(
            f"{source} is a file; give a directory, or an archive ({', '.join(SUFFIXES)})"
        )
    archive = path.resolve()
    return Checkpoint(archive, ModelSource(id=source, path=str(archive)))


def _looks_like_path(source: str) -> bool:
    is_archive = source.endswith(SUFFIXES)
    return is_archive or source.startswith((".", "/", "~", os.sep)) or source.count("/") > 1


def _local(folder: Path, source: ModelSource) -> Checkpoint:
    checkpoint = Checkpoint(folder, source)
    try:
        check_conversion(layout_in(checkpoint.folder).kind)
    except UnsupportedModelError as error:
        raise UnsupportedModelError(f"{source.id} cannot be prepared: {error}") from error
    if missing := checkpoint.missing_shards():
        raise UnsupportedModelError(
            f"{source.id} cannot be prepared: weight files are missing: {', '.join(missing)}"
        )
    return checkpoint


def _from_hub(hub_id: str, revision: str | None) -> Checkpoint:
    """Ask the hub for the repository's files, then download the needed ones at that commit."""
    import huggingface_hub
    from huggingface_hub.errors import HFValidationError

    from ct2_triton.prepare.hub_errors import TRANSPORT_ERRORS, describe, is_unreachable

    try:
        info = huggingface_hub.HfApi().model_info(hub_id, revision=revision)
    except HFValidationError as error:
        raise SourceError(
            f"there is no file or folder {hub_id}, and it is not a hub ID (owner/name): {error}"
        ) from error
    except TRANSPORT_ERRORS as error:
        if is_unreachable(error):
            return _from_cache(hub_id, revision, error)
        raise SourceError(describe(error, hub_id, revision)) from error
    return _download(hub_id, revision, info)


def _download(hub_id: str, revision: str | None, info: ModelInfo) -> Checkpoint:
    try:
        layout = layout_of({entry.rfilename for entry in info.siblings or ()})
    except UnsupportedModelError as error:
        raise UnsupportedModelError(f"{hub_id} cannot be prepared: {error}") from error
    check_conversion(layout.kind)
    folder = _download_with_retries(hub_id, revision, layout.files)
    absent = [name for name in layout.files if not (folder / name).is_file()]
    if absent:
        raise SourceError(
            f"the download of {hub_id} is not complete ({', '.join(absent)} missing): run the "
            "command again to resume it"
        )
    # The branch may have moved meanwhile; the folder's name is the downloaded commit.
    source = ModelSource(hub_id, revision or "main", folder.name, _license_of_card(folder))
    return _local(folder, source)


def _download_with_retries(hub_id: str, revision: str | None, names: Sequence[str]) -> Path:
    """Download into the cache; after a broken connection, continue with what was received."""
    import huggingface_hub

    from ct2_triton.prepare.hub_errors import TRANSPORT_ERRORS, describe, is_unreachable

    for attempt in range(1, _DOWNLOAD_ATTEMPTS + 1):
        try:
            # By the name of the revision, which the cache stores, so that a later run without
            # network finds the snapshot.
            folder = huggingface_hub.snapshot_download(
                hub_id, revision=revision, allow_patterns=list(names), max_workers=_DOWNLOAD_WORKERS
            )
            return Path(folder)
        except TRANSPORT_ERRORS as error:
            if attempt == _DOWNLOAD_ATTEMPTS or not is_unreachable(error):
                raise SourceError(describe(error, hub_id, revision)) from error
        time.sleep(_RETRY_PAUSE_S * attempt)
    raise AssertionError("the last attempt returns or raises")


def _from_cache(hub_id: str, revision: str | None, cause: Exception) -> Checkpoint:
    """Find a complete snapshot of an earlier run in the hub's cache."""
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    from ct2_triton.prepare.hub_errors import one_line

    try:
        # Only one file is requested, because huggingface_hub 2 finds no snapshot if any requested
        # file is missing, and files that are not needed are. The layout is checked.
        folder = Path(
            huggingface_hub.snapshot_download(
                hub_id, revision=revision, allow_patterns=[CARD_FILE], local_files_only=True
            )
        )
        source = ModelSource(hub_id, revision or "main", folder.name, _license_of_card(folder))
        return _local(folder, source)
    except (LocalEntryNotFoundError, UnsupportedModelError) as error:
        endpoint = huggingface_hub.constants.ENDPOINT
        raise SourceError(
            f"{hub_id} is not in the local cache, and {endpoint} cannot be reached "
            f"({one_line(cause)}). {_NO_NETWORK}"
        ) from error


def _license_of_card(folder: Path) -> str | None:
    """Read the licence from the front matter of a model card."""
    from huggingface_hub.repocard import metadata_load

    card = folder / CARD_FILE
    if not card.is_file():
        return None
    try:
        metadata = metadata_load(card) or {}
    except ValueError:  # a card whose front matter is not a YAML mapping
        return None
    name = metadata.get("license")
    if name == "other":
        name = metadata.get("license_name") or metadata.get("license_link") or name
    return ", ".join(map(str, name)) if isinstance(name, list) else (str(name) if name else None)


SUFFIXES = (PACKAGE_SUFFIX, ".zip")


def unpack(archive: Path, output: Path) -> None:
    """Unpack only the files that a preparation reads into an empty folder."""
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
    """Return the files by name, without the folder that contains all of them, if there is one."""
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
