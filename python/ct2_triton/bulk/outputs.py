# SPDX-License-Identifier: Apache-2.0
"""Outputs of a bulk run: parts on disk, which an interrupted run leaves, then one file."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from ct2_triton.bulk.blocks import PARQUET, Block, kind_of, parts_folder
from ct2_triton.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ct2_triton.client.files import Job

_RECORD = "run.json"


def open_parts(job: Job, settings: Mapping[str, Any]) -> None:
    """Make the folder of a job's parts, or go on with that of an earlier run.

    Args:
        job: What is translated into what.
        settings: What decides the translations and the blocks.

    Raises:
        ClientError: It cannot be written, or the earlier run had another input or other settings.
    """
    folder = parts_folder(job.output)
    state = job.source.stat()
    record = json.dumps(
        {"bytes": state.st_size, "changed_ns": state.st_mtime_ns, **settings}, sort_keys=True
    )
    path = folder / _RECORD
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            if path.read_text(encoding="utf-8") != record:
                raise ClientError(
                    f"{folder} was begun with another text or other settings: give the same ones, "
                    "or remove it"
                )
        else:
            aside = path.with_suffix(".new")
            aside.write_text(record, encoding="utf-8")
            aside.replace(path)
    except OSError as error:
        raise ClientError(f"cannot write {folder}: {error.strerror}") from error


def finish(job: Job, blocks: Sequence[Block]) -> int:
    """Put the parts together in order, give the output its name, and remove them.

    What failed is listed in `OUTPUT.failed.jsonl`, if anything did.

    Args:
        job: The output.
        blocks: All its blocks, each with its part on disk.

    Returns:
        How many entries that list has.

    Raises:
        ClientError: Something cannot be written.
    """
    whole = parts_folder(job.output) / "whole"
    listed = job.output.with_name(f"{job.output.name}.failed.jsonl")
    try:
        failures = b"".join(block.failures.read_bytes() for block in blocks)
        listed.unlink(missing_ok=True)
        if failures:
            listed.write_bytes(failures)
        join = _join_tables if kind_of(job.output) == PARQUET else _join_bytes
        join([block.part for block in blocks], whole)
        whole.replace(job.output)
        shutil.rmtree(parts_folder(job.output))
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
