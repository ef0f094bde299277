# SPDX-License-Identifier: Apache-2.0
"""Blocks of consecutive lines of an input file, and the outputs made of them.

Each block becomes a part on disk, which survives an interruption; the parts become one file.
"""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ct2_triton.client.tasks import text_of_line
from ct2_triton.errors import ClientError
from ct2_triton.shared_files import replace_file
from ct2_triton.translate.inputs import (
    BROKEN,
    Line,
    check_text,
    from_json,
    line_of,
    warn_of_encoding,
)
from ct2_triton.translate.records import changes, deliver

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ct2_triton.translate.files import Job

TEXT, JSON, PARQUET = "text", "jsonl", "parquet"
_PARTS = ".blocks"
_BUFFER_BYTES = 1 << 20  # per column; without it, a whole row group is read


@dataclass(frozen=True)
class Block:
    """Lines of one input that are translated together.

    Attributes:
        source: The input.
        output: The file of the translations of all its blocks.
        number: Index among the blocks of its input, from 0.
        first: Index of its first line, from 0.
        count: Number of its lines.
        offset: Where it begins in a file of lines, in bytes.
    """

    source: str
    output: str
    number: int
    first: int
    count: int
    offset: int

    @property
    def part(self) -> Path:
        """The file of its translations."""
        return parts_folder(Path(self.output)) / f"{self.number:09d}"

    @property
    def failures(self) -> Path:
        """The file that lists its failures."""
        return self.part.with_suffix(".failed")

    @property
    def earlier(self) -> Path:
        """The file of translations of an earlier run, except the lines that `failures` lists."""
        return self.part.with_suffix(".earlier")


def parts_folder(output: Path) -> Path:
    """Return the folder of the blocks of an incomplete output."""
    return output.with_name(output.name + _PARTS)


def kind_of(path: Path) -> str:
    """Return the kind of a file by its name: "parquet", "jsonl", or "text"."""
    return {".parquet": PARQUET, ".jsonl": JSON}.get(path.suffix, TEXT)


def cut(source: Path, output: Path, lines: int) -> Iterator[Block]:
    """Split an input into blocks, in order; the last one may have fewer lines.

    An empty input has no blocks, but an empty one if the output is a table, to define the columns.
    """
    try:
        cuts = _cut_rows(source, lines) if kind_of(source) == PARQUET else _cut_lines(source, lines)
        first = 0
        for number, (count, offset) in enumerate(cuts):
            yield Block(str(source), str(output), number, first, count, offset)
            first += count
        if first == 0 and kind_of(output) == PARQUET:
            yield Block(str(source), str(output), 0, 0, 0, 0)
    except (OSError, ValueError) as error:  # the base classes of pyarrow's errors
        raise ClientError(f"cannot read {source}: {error}") from error


def _cut_lines(source: Path, lines: int) -> Iterator[tuple[int, int]]:
    with source.open("rb") as file:
        offset = 0
        watched = _watched(file, source)
        while count := sum(1 for _ in islice(watched, lines)):
            yield count, offset
            offset = file.tell()


def _watched(file: BinaryIO, source: Path) -> Iterator[bytes]:
    """Yield the lines of a file; warn once about a line that is not UTF-8."""
    is_whole = True
    for number, raw in enumerate(file, 1):
        line = Line(text_of_line(raw.removesuffix(b"\n")), number=number, file=source)
        check_text(line)
        if is_whole and BROKEN in line.text:
            is_whole = False
            warn_of_encoding(line)
        yield raw


def _cut_rows(source: Path, lines: int) -> Iterator[tuple[int, int]]:
    from pyarrow import parquet

    rows = parquet.read_metadata(source).num_rows
    for first in range(0, rows, lines):
        yield min(lines, rows - first), 0


def read_lines(block: Block) -> list[Line]:
    """Read a block of a file of lines, as ct2-translate does."""
    source = Path(block.source)
    with source.open("rb") as file:
        file.seek(block.offset)
        raw = [line.removesuffix(b"\n") for line in islice(file, block.count)]
    lines = [
        line_of(text_of_line(text), block.first + number, source)
        for number, text in enumerate(raw, 1)
    ]
    return list(map(from_json, lines)) if kind_of(source) == JSON else lines


def read_table(block: Block) -> Any:  # noqa: ANN401 - a pyarrow.Table
    """Read a block of a Parquet file with little extra memory, even from large row groups."""
    import pyarrow as pa
    from pyarrow import parquet

    with parquet.ParquetFile(block.source, buffer_size=_BUFFER_BYTES) as file:
        groups: list[int] = []
        start = skipped = 0
        for group in range(file.num_row_groups):
            end = start + file.metadata.row_group(group).num_rows
            if start < block.first + block.count and end > block.first:
                skipped = skipped if groups else block.first - start
                groups.append(group)
            start = end
        batches = file.iter_batches(max(block.count, 1), row_groups=groups)
        found = list(_slices(batches, skipped, skipped + block.count))
        return pa.Table.from_batches(found, file.schema_arrow)


def _slices(batches: Iterator[Any], begin: int, end: int) -> Iterator[Any]:
    """Yield the rows of a range as parts of batches; earlier batches are skipped."""
    start = 0
    for batch in batches:
        first, last = max(begin - start, 0), min(end - start, batch.num_rows)
        if first < last:
            yield batch.slice(first, last - first)
        start += batch.num_rows
        if start >= end:
            return


def lines_of(table: Any, block: Block, column: str) -> list[Line]:  # noqa: ANN401
    """Return the rows of a pyarrow.Table as lines with the other columns as fields.

    A null text is read as "".
    """
    rows: list[dict[str, Any]] = table.to_pylist()
    return [
        Line(
            row.pop(column) or "",
            number=block.first + number,
            file=Path(block.source),
            fields=row,
        )
        for number, row in enumerate(rows, 1)
    ]


def check_columns(source: Path, column: str, added: Sequence[str]) -> None:
    """Check that a Parquet file has the text column, and not yet the columns of translations."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        schema = parquet.read_schema(source)
    except (OSError, ValueError) as error:
        raise ClientError(f"cannot read {source}: {error}") from error
    if column not in schema.names:
        known = ", ".join(schema.names)
        raise ClientError(f"{source} has no column {column!r}: give one of {known} with --column")
    kind = schema.field(column).type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise ClientError(f"column {column!r} of {source} is {kind}; it must be text")
    if taken := sorted(set(added) & set(schema.names)):
        raise ClientError(
            f"{source} has a column {taken[0]!r} already, the name of a column of translations: "
            "rename it, or name an output .jsonl"
        )


def as_parquet(table: Any, columns: dict[str, list[str | None]]) -> bytes:  # noqa: ANN401
    """Add text columns to a table and return it as a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    for name, texts in columns.items():
        table = table.append_column(name, pa.array(texts, pa.string()))
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return buffer.getvalue()


_RECORD = "run.json"
_FINISHED = "finished"


def open_parts(job: Job, made_of: Mapping[str, Any]) -> None:
    """Make the folder of a job's parts, or continue in that of an earlier run.

    Raises ClientError if an interrupted run had other settings or another input.
    """
    folder = parts_folder(job.output)
    path = folder / _RECORD
    try:
        if folder.exists() and not path.exists():
            shutil.rmtree(folder)  # left by an interrupted removal: it has no record
        before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else made_of
        changed = changes(before, made_of)
        if changed and (folder / _FINISHED).exists():
            shutil.rmtree(folder)
        elif changed:
            raise ClientError(
                f"{folder} was begun with another text or other settings "
                f"({changed}): give the same ones, or remove it"
            )
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(made_of, sort_keys=True).encode())
    except (OSError, ValueError) as error:
        raise ClientError(f"cannot use {folder}: {error}") from error


def remove_parts(job: Job, made_of: Mapping[str, Any]) -> None:
    """Remove the parts left by a run that was killed after it finished the output.

    Parts of an interrupted run with other settings or another input are kept.
    """
    folder = parts_folder(job.output)
    path = folder / _RECORD
    try:
        before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else made_of
    except (OSError, ValueError) as error:
        raise ClientError(f"cannot use {folder}: {error}") from error
    if all(before.get(name) == value for name, value in made_of.items()):
        shutil.rmtree(folder, ignore_errors=True)


def open_blocks(blocks: Sequence[Block]) -> None:
    """Mark the failed lines of existing blocks for translation."""
    try:
        for block in blocks:
            if block.part.exists() and block.failures.stat().st_size:
                block.part.replace(block.earlier)
    except OSError as error:
        raise ClientError(f"cannot read the blocks of {block.output}: {error}") from error


def finish(job: Job, blocks: Sequence[Block], made_of: Mapping[str, Any]) -> int:
    """Join the parts in order into the output; return the number of failed entries.

    Failures are listed in `OUTPUT.failed.jsonl`, and the parts are then kept, so that another run
    translates only the failed lines.
    """
    folder = parts_folder(job.output)
    listed = job.output.with_name(f"{job.output.name}.failed.jsonl")
    try:
        failures = b"".join(block.failures.read_bytes() for block in blocks)
        listed.unlink(missing_ok=True)
        if failures:
            listed.write_bytes(failures)
        join = _join_tables if kind_of(job.output) == PARQUET else _join_bytes
        join([block.part for block in blocks], folder / "whole")
        failed = sorted({json.loads(line)["line"] for line in failures.splitlines()})
        deliver(folder / "whole", job.output, made_of, failed)
        if failed:
            (folder / _FINISHED).touch()
        else:
            remove_parts(job, made_of)
    except OSError as error:
        raise ClientError(f"cannot write {job.output}: {error}") from error
    return failures.count(b"\n")


def _join_bytes(parts: Sequence[Path], whole: Path) -> None:
    with whole.open("wb") as output:
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, output)


def _join_tables(parts: Sequence[Path], whole: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetWriter(whole, parquet.read_schema(parts[0])) as writer:
            for part in parts:
                writer.write_table(parquet.read_table(part))
    except pa.ArrowException as error:
        raise ClientError(f"cannot join the tables of {parts[0].parent}: {error}") from error
