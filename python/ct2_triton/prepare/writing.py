# SPDX-License-Identifier: Apache-2.0
"""Write a folder atomically: it is complete, or does not exist."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ct2_triton
from ct2_triton.checksums import checksums
from ct2_triton.errors import OutputError
from ct2_triton.prepare.loop_proof import loop_proofs
from ct2_triton.prepared_model import (
    FORMAT,
    MANIFEST_NAME,
    STREAM_SUFFIX,
    ModelSource,
    write_json,
)
from ct2_triton.shared_files import exclusive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ct2_triton.prepare.new_model import NewModel

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_LONGEST_NAME = 255  # of a file, in bytes
_REPLACED = ".replaced"  # no model can have this name


def check_output(output: Path, *, force: bool) -> None:
    """Refuse early what would make writing fail at the end."""
    if output.is_symlink() or (output.exists() and not output.is_dir()):
        raise OutputError(f"{output} is not a folder; remove it or choose another --name")
    if output.exists() and not force:
        raise OutputError(f"{output} exists already; --force replaces it, --name chooses another")
    if output.is_mount():
        raise OutputError(
            f"{output} is a mount point, which cannot be replaced; choose another --name, or mount "
            "the model repository instead"
        )


def check_length(output: Path) -> None:
    """Refuse a name that leaves no room for what is added to it: suffixes, and those of locks."""
    longest = f"{_prefix(output.with_name(output.name + STREAM_SUFFIX))}12345678.tmp"
    if (more := len(os.fsencode(longest)) - _LONGEST_NAME) > 0:
        raise OutputError(
            f"{output.name} is longer than a model's name in {output.parent} can be, by {more} "
            "characters; choose a shorter --name"
        )


@contextmanager
def written_at_once(output: Path, *, force: bool, beside: Sequence[str] = ()) -> Iterator[Path]:
    """Yield a temporary folder that becomes `output` when the block ends without an exception.

    If possible, it is next to the parent of `output` instead of inside it, because Triton takes
    every folder of its model repository for a model, even hidden ones. Only one process at a time
    writes `output`; files of an earlier, killed process are removed. After any exception, including
    Ctrl-C, the folder is removed and `output` is unchanged.

    `beside` names folders next to `output` that are replaced together with it, by those of the
    same names next to the temporary folder; if the block has not made one there, the old one is
    removed.
    """
    outputs = [output, *(output.with_name(name) for name in beside)]
    for one in outputs:
        check_output(one, force=force)
    with staged(output) as folder, ExitStack() as locks:
        for one in outputs[1:]:
            locks.enter_context(locked(one))
        yield folder
        _put_in_place(folder.parent, outputs, force=force)


@contextmanager
def staged(output: Path) -> Iterator[Path]:
    """Yield a temporary folder with the name of `output`, on the same file system."""
    with _staging_folder(output) as staging:
        try:
            folder = staging / output.name
            folder.mkdir()
            yield folder
        except BaseException as error:
            reason = error if isinstance(error, OSError) else error.__cause__
            if isinstance(reason, OSError) and reason.errno in _NO_ROOM:
                raise OutputError(
                    f"no room for {output}: {reason.strerror}; make some, or choose another "
                    "--model-repository"
                ) from error
            raise


@contextmanager
def _staging_folder(output: Path) -> Iterator[Path]:
    """Yield a temporary folder under a lock; both are removed afterwards."""
    with ExitStack() as cleanup:
        try:
            made_parent = not output.parent.exists()
            output.parent.mkdir(parents=True, exist_ok=True)
            if made_parent:
                cleanup.callback(_remove_if_empty, output.parent)
            if not os.access(output.parent, os.W_OK | os.X_OK):  # before hours of work
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            place = _staging_place(output)
            prefix = _prefix(output)
            cleanup.enter_context(locked(output))
            _sweep(place, prefix)
            staging = Path(tempfile.mkdtemp(prefix=prefix, suffix=".tmp", dir=place))
        except OSError as error:
            raise OutputError(f"cannot write to {output.parent}: {error.strerror}") from error
        cleanup.callback(shutil.rmtree, staging, ignore_errors=True)
        yield staging


@contextmanager
def locked(output: Path) -> Iterator[None]:
    """Prevent other processes from writing a model while the block runs."""

    def refuse(owner: str) -> OutputError:
        return OutputError(
            f"another ct2-prepare or ct2-models ({owner}) is writing {output}; wait until it is "
            "done, or choose another --name"
        )

    with ExitStack() as held:
        try:
            lock = _staging_place(output) / f"{_prefix(output)}lock"
            held.enter_context(exclusive(lock, refuse))
        except OSError as error:
            raise OutputError(f"cannot write to {output.parent}: {error.strerror}") from error
        yield


def _staging_place(output: Path) -> Path:
    """Find a folder on the file system of `output`, outside its parent if possible."""
    repository = output.parent.resolve()
    outside = repository.parent
    same_device = outside.stat().st_dev == repository.stat().st_dev
    return outside if same_device and os.access(outside, os.W_OK | os.X_OK) else repository


def _prefix(output: Path) -> str:
    return f".{output.parent.resolve().name}.{output.name}."


def _sweep(place: Path, prefix: str) -> None:
    """Remove files of killed preparations of the same model; the lock ensures that none runs."""
    of_mkdtemp = re.compile(re.escape(prefix) + r"[a-z0-9_]{8}\.tmp")
    for entry in place.iterdir():
        if of_mkdtemp.fullmatch(entry.name):
            shutil.rmtree(entry, ignore_errors=True)


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _put_in_place(staging: Path, outputs: Sequence[Path], *, force: bool) -> None:
    """Replace all outputs by the folders of their names in `staging`, or none of them."""
    replaced = staging / _REPLACED
    for output in outputs:
        check_output(output, force=force)  # it may have appeared meanwhile
    try:
        replaced.mkdir()
        outputs[0].parent.mkdir(parents=True, exist_ok=True)  # another process may have removed it
        with ExitStack() as undo:
            for output in outputs:
                new, old = staging / output.name, replaced / output.name
                undo.callback(_restore, output, new if new.exists() else None, old)
                if output.exists():
                    move(output, old)
                if new.exists():
                    new.rename(output)
            undo.pop_all()
    except OSError as error:
        names = ", ".join(map(str, outputs))
        raise OutputError(f"cannot put {names} in place: {error.strerror}") from error


def _restore(output: Path, new: Path | None, old: Path) -> None:
    """Undo the replacement of one output, as far as it went."""
    if old.exists():
        shutil.rmtree(output, ignore_errors=True)
        old.rename(output)
    elif new is not None and not new.exists():
        output.rename(new)


def move(folder: Path, to: Path) -> None:
    """Rename a folder, or a complete copy of it if it is in another file system or image layer."""
    try:
        folder.rename(to)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy = to.with_name(f"{to.name}.copy")
        shutil.rmtree(copy, ignore_errors=True)  # of a killed process
        try:
            shutil.copytree(folder, copy, symlinks=True)
            copy.rename(to)
        except BaseException:
            shutil.rmtree(copy, ignore_errors=True)
            raise
        shutil.rmtree(folder)


def write_manifest(
    new: NewModel, source: ModelSource, versions: Mapping[str, str], results: Mapping[str, Any]
) -> None:
    """Write the manifest, after all other files of the folder."""
    folder, options = new.folder, new.options
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
        "loop_proofs": loop_proofs(new.weights, options.settings),
        "files": checksums(folder),
    }
    write_json(folder / MANIFEST_NAME, content)
