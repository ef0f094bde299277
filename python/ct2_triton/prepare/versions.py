# SPDX-License-Identifier: Apache-2.0
"""Adds a prepared model to another as a further version, which is not served before a promotion."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from ct2_triton.errors import OutputError, VersionError
from ct2_triton.model_versions import FIRST, versions_in
from ct2_triton.prepare.compatibility import check_compatible
from ct2_triton.prepare.writing import check_output, staged, written_at_once
from ct2_triton.prepared_model import CONFIG_NAME, MANIFEST_NAME, read_json, write_json
from ct2_triton.version_policy import (
    has_policy,
    keep_serving,
    read_config,
    served_versions,
    versions_served,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ct2_triton.prepare.options import PrepareOptions


def check_place(output: Path, options: PrepareOptions) -> None:
    """Say early what would make the writing of a model, or of a version, fail at the end."""
    if options.as_version is None:
        check_output(output, force=options.force)
    else:
        _check_version(output, options.as_version)


def written(output: Path, options: PrepareOptions) -> AbstractContextManager[Path]:
    """Lend a temporary folder for a whole model, and put it in place when the block ends.

    It becomes a new model, or a version of one that is there. After an exception all is as before.
    """
    if options.as_version is None:
        return written_at_once(output, force=options.force)
    return _added(output, options.as_version)


@contextmanager
def _added(model: Path, version: int) -> Iterator[Path]:
    _check_version(model, version)
    with staged(model) as folder:
        yield folder
        check_compatible(model, folder)
        _check_version(model, version)  # it may have appeared meanwhile
        keep_serving(model)
        _write_record(folder, version)
        try:
            (folder / str(FIRST)).rename(model / str(version))
        except OSError as error:
            raise OutputError(
                f"cannot put version {version} of {model} in place: {error.strerror}"
            ) from error


def _check_version(model: Path, version: int) -> None:
    if not (model / MANIFEST_NAME).is_file():
        raise VersionError(
            f"{model} is no prepared model, so there is nothing to add version {version} to; "
            "prepare it without --as-version, or choose the model with --name"
        )
    there = versions_in(model)
    if version in there:
        raise VersionError(
            f"{model} has a version {version} already, and no version is replaced; the next is "
            f"{there[-1] + 1}"
        )
    read_config(model)  # what cannot be read is told before the conversion
    if has_policy(model) and version in served_versions(model, sorted((*there, version))):
        raise VersionError(
            f"the version_policy in {model / CONFIG_NAME} would have version {version} served at "
            f"once: have it name the versions to serve, "
            f"version_policy {{ specific {{ versions: {list(versions_served(model))} }} }}"
        )


def _write_record(folder: Path, version: int) -> None:
    """Move the record of the whole model into the folder of its only version."""
    record = read_json(folder / MANIFEST_NAME)
    start = f"{FIRST}/"
    files = {
        name.removeprefix(start): digest
        for name, digest in record.pop("files").items()
        if name.startswith(start)
    }
    write_json(
        folder / str(FIRST) / MANIFEST_NAME, {**record, "model_version": version, "files": files}
    )
