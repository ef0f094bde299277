# SPDX-License-Identifier: Apache-2.0
"""Translated files: written line by line, continued after an interruption, renamed at the end.

While a file is translated, its lines are written to `NAME.partial`. `NAME.partial.json` records its
input and settings, and `NAME.partial.failed` the failed lines. A line is valid when its end is
written, so the process may be killed at any time.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import ClientError
from ct2_triton.shared_files import replace_file
from ct2_triton.subtitles import is_subtitles
from ct2_triton.translate.records import changes, deliver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ct2_triton.translate.inputs import Line
    from ct2_triton.translate.records import Record

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


def plan(sources: Sequence[Path], output: Path) -> list[Job]:
    """Return the output of each source: one source into a file, several into a folder.

    Outputs must differ.
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
            raise ClientError(f"--output {job.output} is also an input: name another file")
    return jobs


class PartialFile:
    """An incomplete output, to which lines are added.

    If an earlier run finished the output without some lines, only those are added, and the others
    are copied.
    """

    def __init__(self, output: Path, descriptor: int, made_of: Mapping[str, Any]) -> None:
        """Read the existing lines, and truncate after the last whole one."""
        self._output = output
        self._descriptor = descriptor
        self._made_of = made_of
        self.done, size = _whole_lines(descriptor)
        os.ftruncate(descriptor, size)
        os.lseek(descriptor, size, os.SEEK_SET)
        noted = _failed(output).read_text("ascii").split() if _failed(output).exists() else []
        self.failed = sorted({int(number) for number in noted if int(number) <= self.done})
        replace_file(_failed(output), "".join(f"{number}\n" for number in self.failed).encode())
        self._again: list[int] | None = None
        self._good: Iterator[bytes] = iter(())

    def keep(self, good: Iterator[bytes], again: Sequence[int]) -> None:
        """Copy the lines of a finished output, except those with the numbers `again`, from 1."""
        self._again = [number for number in again if number > self.done]
        self._good = islice(good, self.done, None)

    def wanted(self, lines: Iterator[Line]) -> Iterator[Line]:
        """Yield the lines of the input to translate."""
        if self._again is None:
            return islice(lines, self.done, None)
        again = set(self._again)
        return (line for line in lines if line.number in again)

    def progress(self, total: int) -> Progress:
        """Return the progress for an input of `total` lines."""
        return Progress(total, self.done) if self._again is None else Progress(len(self._again), 0)

    def write(self, line: str, *, failed: bool = False) -> None:
        """Write a line at once; another run translates a failed one again."""
        try:
            self._copy()
            next(self._good, None)
            if failed:  # recorded first, so that no failed line is mistaken for a good one
                self.failed.append(self.done + 1)
                with _failed(self._output).open("a", encoding="ascii") as file:
                    file.write(f"{self.done + 1}\n")
            self._append(f"{line}\n".encode())
        except OSError as error:
            raise ClientError(f"cannot write {_partial(self._output)}: {error.strerror}") from error

    def finish(self, convert: Callable[[Path, Path], None] | None = None) -> None:
        """Rename the file to the output; `convert` makes the output from it if given."""
        whole = _partial(self._output)
        try:
            self._copy()
            if convert is not None:
                whole = self._output.with_name(f"{self._output.name}.converted")
                convert(_partial(self._output), whole)
            deliver(whole, self._output, self._made_of, self.failed)
        except OSError as error:
            raise ClientError(f"cannot write {whole}: {error.strerror}") from error
        remove_partial(self._output, self._made_of)

    def _copy(self) -> None:
        """Copy good lines up to the next one to translate again."""
        if self._again is None:
            return
        again = next((number for number in self._again if number > self.done), None)
        count = None if again is None else again - self.done - 1
        for line in islice(self._good, count):
            self._append(line)

    def _append(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._descriptor, data) :]
        self.done += 1


@contextlib.contextmanager
def partial_file(
    job: Job, made_of: Mapping[str, Any], earlier: Record | None
) -> Iterator[PartialFile]:
    """Open an output: a new one, an interrupted one, or the failed lines of a finished one.

    An interrupted run must have had the same settings and input. `earlier` is the record of a
    finished output with the same settings and input, if there is one.
    """
    with contextlib.ExitStack() as files:
        try:
            _check_record(job.output, made_of)
            descriptor = os.open(_partial(job.output), os.O_RDWR | os.O_CREAT, 0o666)
            files.callback(os.close, descriptor)
            output = PartialFile(job.output, descriptor, made_of)
            if earlier is not None and not is_subtitles(job.output):
                output.keep(files.enter_context(job.output.open("rb")), earlier.failed)
        except OSError as error:
            raise ClientError(f"cannot write {job.output}: {error.strerror}") from error
        yield output


def remove_partial(output: Path, made_of: Mapping[str, Any]) -> None:
    """Remove the files of an interrupted run, unless it had other settings or another input."""
    if not changes(_begun_of(output), made_of):
        for path in (_partial(output), _failed(output), _record(output)):
            path.unlink(missing_ok=True)


def count_lines(path: Path) -> int:
    """Count lines; the last one may lack an end."""
    lines, last = 0, b"\n"
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            lines += chunk.count(b"\n")
            last = chunk[-1:]
    return lines + (last != b"\n")


@dataclass
class Progress:
    """Progress of a run, and its remaining time at the current speed.

    Attributes:
        total: Number of lines.
        done: Number of translated lines.
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
        """Return the lines per second of this run."""
        return (self.done - self._first) / max(time.monotonic() - self._start_s, 1e-9)

    def __str__(self) -> str:
        """Return the progress in one line."""
        share = 100 * self.done // self.total if self.total else 100
        text = f"{share} %, {self.done} of {self.total} lines"
        if self.done == self._first:
            return text
        per_line_s = (time.monotonic() - self._start_s) / (self.done - self._first)
        minutes, seconds = divmod(round(per_line_s * (self.total - self.done)), 60)
        return f"{text}, {minutes}:{seconds:02d} left"


def _check_record(output: Path, made_of: Mapping[str, Any]) -> None:
    """Write the input and settings of the output, or compare them with an earlier run's."""
    path = _record(output)
    if not _partial(output).exists():
        _failed(output).unlink(missing_ok=True)
        replace_file(path, json.dumps(made_of, sort_keys=True).encode())
        return
    if changed := changes(_begun_of(output), made_of):
        raise ClientError(
            f"{_partial(output)} was begun with another text or other settings "
            f"({changed}): give the same ones, or remove it and {path.name}"
        )


def _begun_of(output: Path) -> dict[str, Any]:
    """Read the recorded input and settings of an incomplete output."""
    try:
        found: dict[str, Any] = json.loads(_record(output).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found


def _whole_lines(descriptor: int) -> tuple[int, int]:
    """Count the whole lines of a file, and their bytes."""
    lines = size = at = 0
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        lines += chunk.count(b"\n")
        size = at + chunk.rfind(b"\n") + 1 if b"\n" in chunk else size
        at += len(chunk)
    return lines, size


def _partial(output: Path) -> Path:
    return output.with_name(f"{output.name}.partial")


def _record(output: Path) -> Path:
    return output.with_name(f"{output.name}.partial.json")


def _failed(output: Path) -> Path:
    return output.with_name(f"{output.name}.partial.failed")
