# SPDX-License-Identifier: Apache-2.0
"""The record of a finished output, in `.NAME.ct2-translate.json` next to it.

A second run of the same command keeps a complete output, translates failed lines again, and
translates everything again if anything that the output depends on has changed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.checksums import sha256
from ct2_triton.errors import ClientError
from ct2_triton.prepared_model import CONFIG_NAME, MANIFEST_NAME, TEXT_SUFFIX, default_repository
from ct2_triton.shared_files import exclusive, replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_LOG = logging.getLogger(__name__)
_INPUT, _MODEL_CHECKSUM = "input", "model_checksum"  # among what an output is made of
# A text between quotes, or comments and white space.
_COMMENTS = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?:#[^\n]*|\s)+""")


@dataclass(frozen=True)
class Record:
    """The record of a finished output.

    Attributes:
        made_of: What the output depends on: input, model, languages, options, terms.
        failed: Numbers of the lines that failed, from 1.
        checksum: SHA-256 of the output.
    """

    made_of: Mapping[str, Any]
    failed: Sequence[int]
    checksum: str


def describe(source: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an output depends on, as values of JSON."""
    given: dict[str, Any] = json.loads(json.dumps({_INPUT: _content(source), **settings}))
    return given


def check_unchanged(source: Path, output: Path, made_of: Mapping[str, Any]) -> None:
    """Refuse to finish an output whose input was changed while it was read, line by line.

    An input that was removed was read from its open file. Raises ClientError.
    """
    if source.exists() and _content(source) != made_of[_INPUT]:
        raise ClientError(
            f"{source} was changed while it was translated, so {output} is not written; the same "
            "command again says what to remove"
        )


def _content(source: Path) -> dict[str, Any]:
    return {"bytes": source.stat().st_size, "sha256": sha256(source)}


def model_checksum(model: str, repository: Path | None) -> str | None:
    """Return the checksum of a model: of its manifests, which list its files, and its config.

    None if the model's folder is not available.
    """
    folder = Path(repository or default_repository())
    return _digest(
        folder,
        (
            path
            for name in (model, model.removesuffix(TEXT_SUFFIX))
            for pattern in (CONFIG_NAME, MANIFEST_NAME, f"*/{MANIFEST_NAME}")
            for path in (folder / name).glob(pattern)
        ),
    )


def tokenizer_checksum(folder: Path | None) -> str | None:
    """Return the checksum of a tokenizer's folder."""
    if folder is None:
        return None
    return _digest(folder, (path for path in folder.rglob("*") if path.is_file()))


def _digest(folder: Path, files: Iterable[Path]) -> str | None:
    """Return the checksum of files and their names; of configs without comments."""
    listed = [
        [path.relative_to(folder).as_posix(), _said(path) or sha256(path)]
        for path in sorted(set(files))
    ]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest() if listed else None


def _said(path: Path) -> str:
    """Return the content of a config; "" for another file."""
    if path.name != CONFIG_NAME:
        return ""
    text = path.read_text(encoding="utf-8", errors="replace")
    return _COMMENTS.sub(lambda found: found[1] or " ", text).strip()


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return what differs in the dependencies of two outputs; "" for nothing.

    A model whose folder is not available, as in another working directory, counts as the same.
    """
    differ = {name for name in {*before, *now} if before.get(name) != now.get(name)}
    if None in (before.get(_MODEL_CHECKSUM), now.get(_MODEL_CHECKSUM)):
        differ.discard(_MODEL_CHECKSUM)
    return ", ".join(sorted(differ))


def finished(output: Path, made_of: Mapping[str, Any]) -> Record | None:
    """Return the record of an output with the same dependencies; None if it must be made.

    Raises ClientError if it would be overwritten although ct2-translate did not write it.
    """
    if not output.exists():
        return None
    record = _newest(output)
    if record is None:
        raise ClientError(
            f"{output} exists, but there is no record of what it was translated from "
            f"({_path(output)} is not there): remove it to translate again, or name another "
            "--output"
        )
    changed = changes(record.made_of, made_of)
    is_same = not changed
    was_changed = record.checksum != sha256(output)
    if is_same and not record.failed:
        if was_changed:
            _LOG.warning(
                "%s was changed since it was translated, and is kept; remove it to translate again",
                output,
            )
        return record
    if was_changed:
        raise ClientError(
            f"{output} was changed since it was translated: remove it to translate again, or name "
            "another --output"
        )
    if not is_same:
        _LOG.info("%s is translated again, because these have changed: %s", output, changed)
    return record if is_same else None


def deliver(whole: Path, output: Path, made_of: Mapping[str, Any], failed: Sequence[int]) -> None:
    """Rename a complete file to the output, and write its record.

    The record is written first, so that a run killed in between leaves a record for the output.
    """
    record = json.dumps(asdict(Record(made_of, failed, sha256(whole))), sort_keys=True)
    replace_file(_pending(output), record.encode())
    _sync(whole)
    whole.replace(output)
    _pending(output).replace(_path(output))


@contextmanager
def held(outputs: Sequence[Path]) -> Iterator[None]:
    """Lock outputs against other runs while the block runs; make their folders."""
    with ExitStack() as locks:
        for output in outputs:
            try:
                output.parent.mkdir(parents=True, exist_ok=True)
                locks.enter_context(exclusive(_beside(output, "lock"), _Refusal(output)))
            except OSError as error:
                raise ClientError(f"cannot write {output}: {error.strerror}") from error
        yield


@dataclass(frozen=True)
class _Refusal:
    output: Path

    def __call__(self, owner: str) -> ClientError:
        return ClientError(
            f"another ct2-translate ({owner}) is writing {self.output}: wait until it is done, or "
            "name another --output"
        )


def _sync(path: Path) -> None:
    """Write a file to the disk, so that it is not renamed before its content is stored."""
    descriptor = os.open(path, os.O_RDWR)  # Windows syncs only writable files
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _newest(output: Path) -> Record | None:
    """Read the record of an output, and complete a renaming that a killed run has begun."""
    pending = _read(_pending(output))
    if pending is not None and pending.checksum == sha256(output):
        _pending(output).replace(_path(output))
        return pending
    return _read(_path(output))


def _read(path: Path) -> Record | None:
    try:
        return Record(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise ClientError(f"cannot read {path}: {error}") from error


def _beside(output: Path, what: str) -> Path:
    return output.with_name(f".{output.name}.ct2-translate.{what}")


def _path(output: Path) -> Path:
    return _beside(output, "json")


def _pending(output: Path) -> Path:
    return _beside(output, "pending")
