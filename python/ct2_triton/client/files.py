# SPDX-License-Identifier: Apache-2.0
"""Translated files: written line by line, gone on with after an interruption, named at the end.

While a file is translated, its lines go to `NAME.partial`, and `NAME.partial.json` says what it is
made of. A line counts when its end is written, so a process may be killed at any moment.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Job:
    """A file to translate.

    Attributes:
        source: The text.
        output: The translation.
    """

    source: Path
    output: Path

    def is_done(self) -> bool:
        """Say whether the output is there.

        Raises:
            ClientError: It is older than the text.
        """
        if not self.output.exists():
            return False
        if self.output.stat().st_mtime_ns < self.source.stat().st_mtime_ns:
            raise ClientError(
                f"{self.output} is older than {self.source}: remove it to translate again"
            )
        return True


def plan(sources: Sequence[Path], output: Path) -> list[Job]:
    """Say which file is translated into which.

    Args:
        sources: The texts.
        output: A file for one text; a folder, for files of the same names.

    Returns:
        A job for each text.

    Raises:
        ClientError: There is no text, one cannot be read, or two have one output.
    """
    if not sources:
        raise ClientError("--output needs files to translate: name them with --input")
    is_folder = output.is_dir() or len(sources) > 1
    jobs = [Job(source, output / source.name if is_folder else output) for source in sources]
    for job in jobs:
        if not job.source.is_file():
            is_there = job.source.exists()
            why = "it is a folder or a device" if is_there else "there is no such file"
            raise ClientError(f"cannot read {job.source}: {why}")
        same = [str(one.source) for one in jobs if one.output == job.output]
        if len(same) > 1:
            raise ClientError(f"{' and '.join(same)} would both become {job.output}")
        if job.output.exists() and not job.output.is_file():
            raise ClientError(
                f"cannot write {job.output}: it is a folder or a device; leave out --output for "
                "standard output"
            )
        if job.output.exists() and job.output.samefile(job.source):
            raise ClientError(f"{job.source} would be written over: name another --output")
    return jobs


@dataclass
class PartialFile:
    """The lines of an output that are there already; takes the next ones.

    Attributes:
        done: How many lines are there.
    """

    done: int
    _output: Path
    _descriptor: int

    def write(self, line: str) -> None:
        """Add a line, at once.

        Raises:
            ClientError: It cannot be written.
        """
        data = f"{line}\n".encode()
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            raise ClientError(f"cannot write {_partial(self._output)}: {error.strerror}") from error
        self.done += 1

    def finish(self, convert: Callable[[Path, Path], None] | None = None) -> None:
        """Give the file its name.

        Args:
            convert: Makes the output of the lines: reads the first path, writes the second.

        Raises:
            ClientError: The output cannot be written.
        """
        whole = _partial(self._output)
        if convert is not None:
            whole = self._output.with_name(f"{self._output.name}.converted")
            try:
                convert(_partial(self._output), whole)
            except OSError as error:
                raise ClientError(f"cannot write {whole}: {error.strerror}") from error
        whole.replace(self._output)
        _partial(self._output).unlink(missing_ok=True)
        _record(self._output).unlink()


@contextlib.contextmanager
def partial_file(job: Job, settings: Mapping[str, Any]) -> Iterator[PartialFile]:
    """Open an output, new or where an earlier run was interrupted.

    Args:
        job: The file.
        settings: What decides the translations; an earlier run must have had the same.

    Yields:
        The output.

    Raises:
        ClientError: It cannot be written, or an earlier run had other settings or another text.
    """
    record = json.dumps({"input": _checksum(job.source), **settings}, sort_keys=True)
    try:
        job.output.parent.mkdir(parents=True, exist_ok=True)
        _check_record(job.output, record)
        descriptor = os.open(_partial(job.output), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise ClientError(f"cannot write {job.output}: {error.strerror}") from error
    try:
        done, size = _whole_lines(descriptor)
        os.ftruncate(descriptor, size)
        os.lseek(descriptor, size, os.SEEK_SET)
        yield PartialFile(done, job.output, descriptor)
    finally:
        os.close(descriptor)


def count_lines(path: Path) -> int:
    """Count lines; the last one may have no end."""
    lines, last = 0, b"\n"
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            lines += chunk.count(b"\n")
            last = chunk[-1:]
    return lines + (last != b"\n")


@dataclass
class Progress:
    """How far a run is, and when it will have ended at the speed so far.

    Attributes:
        total: Lines in all.
        done: Lines that are translated.
    """

    total: int
    done: int
    _first: int = field(init=False)
    _start_s: float = field(init=False)

    def __post_init__(self) -> None:
        """Start the clock."""
        self._first = self.done
        self._start_s = time.monotonic()

    def rate(self) -> float:
        """Give the lines a second so far, of this run."""
        return (self.done - self._first) / max(time.monotonic() - self._start_s, 1e-9)

    def __str__(self) -> str:
        """Say it in a line."""
        share = 100 * self.done // self.total if self.total else 100
        text = f"{share} %, {self.done} of {self.total} lines"
        if self.done == self._first:
            return text
        per_line_s = (time.monotonic() - self._start_s) / (self.done - self._first)
        minutes, seconds = divmod(round(per_line_s * (self.total - self.done)), 60)
        return f"{text}, {minutes}:{seconds:02d} left"


def _check_record(output: Path, record: str) -> None:
    """Write what the output is made of, or compare it with what an earlier run wrote."""
    path = _record(output)
    if not _partial(output).exists():
        aside = path.with_name(f"{path.name}.new")
        aside.write_text(record, encoding="utf-8")
        aside.replace(path)
    elif not path.exists() or path.read_text(encoding="utf-8") != record:
        raise ClientError(
            f"{_partial(output)} was begun with another text or other settings: give the same "
            f"ones, or remove it and {path.name}"
        )


def _whole_lines(descriptor: int) -> tuple[int, int]:
    """Count the whole lines of a file, and their bytes."""
    lines = size = at = 0
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        lines += chunk.count(b"\n")
        size = at + chunk.rfind(b"\n") + 1 if b"\n" in chunk else size
        at += len(chunk)
    return lines, size


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _partial(output: Path) -> Path:
    return output.with_name(f"{output.name}.partial")


def _record(output: Path) -> Path:
    return output.with_name(f"{output.name}.partial.json")
