# SPDX-License-Identifier: Apache-2.0
"""Translate blocks with Ray Data: one actor for each worker, restarted if it dies.

Each worker has a client that translates one block after another.
"""

from __future__ import annotations

import json
import logging
import os
import signal
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

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
from ct2_triton.client.sync_client import SyncTranslationClient
from ct2_triton.connection_arguments import client_settings
from ct2_triton.errors import ClientError, DeadlineExceededError, ServerFailedError
from ct2_triton.shared_files import replace_file
from ct2_triton.translate.cli import decoding_options
from ct2_triton.translate.formats import as_json, text_of, write_json
from ct2_triton.translate.inputs import judged
from ct2_triton.translate.line_errors import concerns_one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from ct2_triton.client.stream import StreamItem
    from ct2_triton.translate.inputs import Line

# Errors that another attempt may avoid; a refused line is refused each time.
_WORTH_ANOTHER_TRY = (DeadlineExceededError, ServerFailedError)


Row: TypeAlias = "str | tuple[str | None, ...]"
"""The output of a line: a line of text, or the values of its columns."""


@dataclass(frozen=True)
class Task:
    """The settings that all blocks share.

    Attributes:
        args: The command's arguments.
        targets: Codes of the target languages; one None for a model without them.
        settings: Settings that the translations depend on.
    """

    args: argparse.Namespace
    targets: tuple[str | None, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """Names of the columns of translations in a Parquet file."""
        return [target or "translation" for target in self.targets]


class Translator:
    """Translates blocks into files. Ray restarts it if it dies."""

    def __init__(self, task: Task) -> None:
        """Make a client, which connects for the first block."""
        self._task = task
        self._client = SyncTranslationClient(
            task.args.url, task.args.model, **client_settings(task.args)
        )

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Translate the block with these fields and write its file atomically.

        Returns `count`, the number of lines; `failed`, how many of them failed; and `error`, why
        the run must end, or "".
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
        rows: list[Row | None] = [None] * len(lines)
        if block.earlier.exists():
            rows = self._earlier(block)
        wanted = [line for line, row in zip(lines, rows, strict=True) if row is None]
        answers = self._answers(wanted)
        for line, items in zip(wanted, answers, strict=True):
            rows[line.number - 1 - block.first] = self._row(block, items)
        failures = [
            {"line": line.number, "target": item.target, "text": line.text, "error": str(error)}
            for line, items in zip(wanted, answers, strict=True)
            for item in items
            if isinstance(error := item.outcome, ClientError)
        ]
        self._save(block, self._packed(block, table, lines, rows), _json_lines(failures))
        return len({failure["line"] for failure in failures})

    def _save(self, block: Block, content: bytes, failures: bytes) -> None:
        """Write a block's output and failures; if it is killed, no failed line is lost."""
        try:
            if block.earlier.exists():  # belongs to the failures of its run
                replace_file(block.part, content)
                block.earlier.unlink()
                replace_file(block.failures, failures)
            else:  # the failures must exist before the part
                replace_file(block.failures, failures)
                replace_file(block.part, content)
        except OSError as error:
            text = f"cannot write {block.part}: {error.strerror or error}"
            raise ClientError(text) from error

    def _earlier(self, block: Block) -> list[Row | None]:
        """Return the translations of an earlier run; None for failed lines."""
        rows: list[Row | None]
        if kind_of(Path(block.output)) == PARQUET:
            from pyarrow import parquet

            table = parquet.read_table(block.earlier, columns=self._task.columns)
            rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        else:
            rows = list(block.earlier.read_bytes().decode().split("\n")[:-1])
        for line in block.failures.read_bytes().splitlines():  # str would split at U+2028
            rows[json.loads(line)["line"] - 1 - block.first] = None
        return rows

    def _answers(self, lines: Sequence[Line]) -> list[list[StreamItem]]:
        """Translate lines, longest first, so that lines of similar length run together."""
        found: list[dict[str | None, StreamItem]] = [{} for _ in lines]
        waiting = sorted(range(len(lines)), key=lambda number: -len(lines[number].text))
        for attempt in range(self._task.args.tries):
            again = set()
            for given in self._stream([lines[number] for number in waiting]):
                item = judged(given)
                number = waiting[item.position]
                known = found[number].get(item.target)
                if known is not None and not _is_failure(known):
                    continue  # sent again because another language of its line failed
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

    def _row(self, block: Block, items: list[StreamItem]) -> Row:
        """Return the output of a line: a line of text, or the values of its columns."""
        kind = kind_of(Path(block.output))
        if kind == PARQUET:
            return tuple(map(_column_text, items))
        return write_json(as_json(items)) if kind == JSON else text_of(items[0])

    def _packed(
        self,
        block: Block,
        table: Any,  # noqa: ANN401 - a pyarrow.Table, or None
        lines: list[Line],
        rows: Sequence[Row | None],
    ) -> bytes:
        if kind_of(Path(block.output)) != PARQUET:
            return "".join(f"{row}\n" for row in rows).encode()
        if table is None:
            import pyarrow as pa

            own = {"line": [line.number for line in lines], "text": [line.text for line in lines]}
            schema = pa.schema({"line": pa.int64(), "text": pa.string()})
            table = pa.table(own, schema)
        columns = {
            name: [None if row is None else row[number] for row in rows]
            for number, name in enumerate(self._task.columns)
        }
        return as_parquet(table, columns)


def _is_failure(item: StreamItem) -> bool:
    """Return whether a line failed; raise an error that all other lines would have too."""
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


_STORE_BYTES = 80 << 20  # Ray's minimum; only the names of blocks are sent
# Silence messages for Ray's developers, and disable Ray's usage statistics.
_QUIET = {
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
# Ray listens on all addresses, unless clusters are disabled: then on 127.0.0.1.
_ON_THIS_MACHINE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


@contextmanager
def cluster(address: str | None, workers: int) -> Iterator[None]:
    """Start Ray for this machine only, or join a cluster; its processes end with the block.

    Each of the `workers` translates one block at a time.
    """
    settings = _QUIET | (_ON_THIS_MACHINE if address is None else {})
    for name, value in settings.items():  # read when Ray is imported
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ClientError(
            f"Ray cannot be imported ({error}): pip install 'ct2-triton-client[bulk]'"
        ) from error
    own: dict[str, Any] = {
        "num_cpus": workers,
        "include_dashboard": False,
        "object_store_memory": _STORE_BYTES,
    }
    try:
        with _no_native_log(), _own_signals():
            ray.init(
                address=address or "local",
                log_to_driver=False,
                logging_level=logging.ERROR,
                **(own if address is None else {}),
            )
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ClientError(f"Ray does not start: {error}") from error
    try:
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        yield
    finally:
        ray.shutdown()


@contextmanager
def _own_signals() -> Iterator[None]:
    """Take the signal handler back that Ray sets for the process."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


@contextmanager
def _no_native_log() -> Iterator[None]:
    """Discard standard error, where Ray's core reports that its logging is disabled."""
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def translate(blocks: Sequence[Block], task: Task, workers: int) -> Iterator[dict[str, Any]]:
    """Translate one or more blocks, in any order. Must be called in a `cluster`.

    Yields what `Translator` returns, for each block.
    """
    import ray

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    rows = ray.data.from_items(list(map(asdict, blocks)), override_num_blocks=len(blocks))
    translator: Any = Translator  # Ray's type hints allow only functions
    done = rows.map(
        translator,
        fn_constructor_args=(task,),
        compute=ray.data.ActorPoolStrategy(size=min(workers, len(blocks))),
    )
    try:
        for row in done.iter_rows():
            if row["error"]:
                raise ClientError(row["error"])
            yield row
    except ray.exceptions.RayError as error:
        raise ClientError(f"Ray failed: {str(error).splitlines()[0]}") from error
