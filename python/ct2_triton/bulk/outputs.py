# SPDX-License-Identifier: Apache-2.0
"""Outputs of a bulk run: parts on disk, which survive an interruption, then one file."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from ct2_triton.bulk.blocks import PARQUET, Block, kind_of, parts_folder
from ct2_triton.errors import ClientError
from ct2_triton.lock import replace_file
from ct2_triton.translate.records import changes, deliver

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ct2_triton.translate.files import Job

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
