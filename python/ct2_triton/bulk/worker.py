# SPDX-License-Identifier: Apache-2.0
"""What runs in each worker: a client, which translates block after block."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.bulk.blocks import (
    JSON,
    PARQUET,
    Block,
    as_parquet,
    kind_of,
    lines_of,
    read_lines,
    read_table,
)
from ct2_triton.client.cli import client_settings, decoding_options
from ct2_triton.client.formats import as_json, text_of, write_json
from ct2_triton.client.line_errors import concerns_one_line
from ct2_triton.client.sync_client import SyncTranslationClient
from ct2_triton.errors import (
    ClientError,
    DeadlineExceededError,
    ServerFailedError,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ct2_triton.client.inputs import Line
    from ct2_triton.client.stream import StreamItem

# What may go well another time; a line that the server refuses is refused each time.
_WORTH_ANOTHER_TRY = (DeadlineExceededError, ServerFailedError)


@dataclass(frozen=True)
class Task:
    """What is done with every block.

    Attributes:
        args: The command's arguments.
        targets: Codes of the languages; one None for a model without.
    """

    args: argparse.Namespace
    targets: tuple[str | None, ...]

    @property
    def columns(self) -> list[str]:
        """Names of a Parquet file's columns of translations."""
        return [target or "translation" for target in self.targets]


class Translator:
    """Translates blocks into files. Ray starts it again where it dies."""

    def __init__(self, task: Task) -> None:
        """Make a client, which connects with the first block.

        Args:
            task: What to do with each block.
        """
        self._task = task
        self._client = SyncTranslationClient(
            task.args.url, task.args.model, **client_settings(task.args)
        )

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Translate a block and write its file, under its name when it is whole.

        Args:
            row: The fields of a `Block`.

        Returns:
            `count`: lines; `failed`: how many of them; `error`: why the run must end, or "".
        """
        block = Block(**row)
        try:
            failed = self._translate(block)
        except (ClientError, OSError, ValueError) as error:
            return {"count": block.count, "failed": 0, "error": f"{block.source}: {error}"}
        return {"count": block.count, "failed": failed, "error": ""}

    def _translate(self, block: Block) -> int:
        table = read_table(block) if kind_of(Path(block.source)) == PARQUET else None
        if table is None:
            lines = read_lines(block)
        else:
            lines = lines_of(table, block, self._task.args.column)
        answers = self._answers(lines)
        failures = [
            {"line": line.number, "target": item.target, "text": line.text, "error": str(error)}
            for line, items in zip(lines, answers, strict=True)
            for item in items
            if isinstance(error := item.outcome, ClientError)
        ]
        # The failures first: where the part is, they are known.
        _write(block.failures, _json_lines(failures))
        _write(block.part, self._content(block, table, lines, answers))
        return len({failure["line"] for failure in failures})

    def _answers(self, lines: Sequence[Line]) -> list[list[StreamItem]]:
        """Translate lines, the longest first: those of like length are under way together."""
        found: list[dict[str | None, StreamItem]] = [{} for _ in lines]
        waiting = sorted(range(len(lines)), key=lambda number: -len(lines[number].text))
        for attempt in range(self._task.args.tries):
            again = set()
            for item in self._stream([lines[number] for number in waiting]):
                number = waiting[item.position]
                known = found[number].get(item.target)
                if known is not None and not _is_failure(known):
                    continue  # sent again for another language of its line
                found[number][item.target] = item
                if _is_failure(item) and isinstance(item.outcome, _WORTH_ANOTHER_TRY):
                    again.add(number)
            waiting = [number for number in waiting if number in again]
            if not waiting or attempt + 1 == self._task.args.tries:
                break
        return [[items[target] for target in self._task.targets] for items in found]

    def _stream(self, lines: Sequence[Line]) -> Any:  # noqa: ANN401
        args = self._task.args
        return self._client.stream(
            lines,
            source=args.source,
            targets=args.targets,
            max_in_flight=args.max_in_flight,
            order="as-completed",
            on_error="yield",
            **decoding_options(args),
        )

    def _content(
        self,
        block: Block,
        table: Any,  # noqa: ANN401 - a pyarrow.Table, or None
        lines: list[Line],
        answers: list[list[StreamItem]],
    ) -> bytes:
        kind = kind_of(Path(block.output))
        if kind == JSON:
            return _json_lines([as_json(items) for items in answers])
        if kind != PARQUET:
            return "".join(f"{text_of(item)}\n" for (item,) in answers).encode()
        if table is None:
            import pyarrow as pa

            own = {"line": [line.number for line in lines], "text": [line.text for line in lines]}
            schema = pa.schema({"line": pa.int64(), "text": pa.string()})
            table = pa.table(own, schema)
        columns = {
            name: [_column_text(items[number]) for items in answers]
            for number, name in enumerate(self._task.columns)
        }
        return as_parquet(table, columns)


def _is_failure(item: StreamItem) -> bool:
    """Say whether a line failed.

    Raises:
        ClientError: It is not the line's fault: all others would fail, too.
    """
    if not isinstance(item.outcome, ClientError):
        return False
    error = item.outcome
    if isinstance(error, ServerFailedError) or concerns_one_line(error, item.sentence.text):
        return True
    raise error


def _column_text(item: StreamItem) -> str | None:
    return None if isinstance(item.outcome, ClientError) else item.outcome.text


def _json_lines(objects: list[dict[str, Any]]) -> bytes:
    return "".join(f"{write_json(one)}\n" for one in objects).encode()


def _write(path: Path, data: bytes) -> None:
    """Write a file that is whole or not there, also when two workers write it."""
    aside = path.with_name(f"{path.name}.{os.getpid()}.new")
    aside.write_bytes(data)
    aside.replace(path)
