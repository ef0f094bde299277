# SPDX-License-Identifier: Apache-2.0
"""CTranslate2 itself, without a server: the bound for all who serve with it.

It runs in a process of its own and times its own calls, so that neither the load generator nor the
pipe to it is part of a figure.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from ct2_triton.bench.contenders.base import ListContender

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ct2_triton.bench.setup import Ids, Row, Setup

T = TypeVar("T")

# More rows a call gave no more throughput on a CPU with the rows of docs/benchmarks.md.
_ROWS_PER_CALL = 32


class EngineContender(ListContender):
    """The whole list, sorted by length; one worker of one thread per core, the quickest way."""

    kind = "ctranslate2"

    def __init__(self, precision: str, setup: Setup) -> None:
        """Starts nothing."""
        super().__init__(precision, setup)
        self._pool: ProcessPoolExecutor | None = None
        self._pid = 0

    async def start(self) -> None:
        """Starts the process and loads the model in it."""
        prepared = await asyncio.to_thread(self.setup.prepared, self.precision)
        self._pool = ProcessPoolExecutor(
            1,
            multiprocessing.get_context("spawn"),
            _load,
            (prepared.model_folder, self.precision, self.setup),
        )
        try:
            self._pid = await self._in_process(os.getpid)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Ends the process."""
        if self._pool is not None:
            await asyncio.to_thread(self._pool.shutdown)

    @property
    def pid(self) -> int:
        """The engine's process."""
        return self._pid

    def settings(self) -> Mapping[str, str]:
        """Says how the list is cut."""
        return {
            "server": "none: Python's ctranslate2 on the whole list",
            "workers": f"{self.setup.cores} of one thread",
            "calls": f"up to {_ROWS_PER_CALL} rows, sorted by length",
            "not in its times": "ids to tokens and back",
        }

    async def translate_each(self, rows: Sequence[Row]) -> tuple[list[Ids], list[float]]:
        """Calls the engine for one row after the other."""
        results = [await self._in_process(_translate, [row]) for row in rows]
        return [answer for (answer,), _ in results], [seconds for _, seconds in results]

    async def translate_list(self, rows: Sequence[Row]) -> tuple[list[Ids], float]:
        """Calls the engine once."""
        return await self._in_process(_translate, list(rows))

    async def _in_process(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)


class _Engine:
    """What the engine's process keeps."""

    def __init__(self, model: Path, precision: str, setup: Setup) -> None:
        import ctranslate2

        shared = model / "shared_vocabulary.json"
        source = shared if shared.exists() else model / "source_vocabulary.json"
        target = shared if shared.exists() else model / "target_vocabulary.json"
        self.source_tokens: list[str] = json.loads(source.read_text(encoding="utf-8"))
        self.target_tokens: list[str] = json.loads(target.read_text(encoding="utf-8"))
        pairs = reversed(list(enumerate(self.target_tokens)))
        self.target_ids = {token: i for i, token in pairs}  # of equal tokens, the first
        self.options = {
            "beam_size": setup.beam_size,
            "max_decoding_length": setup.max_decoding_length,
            "max_batch_size": _ROWS_PER_CALL,
        }
        self.translator = ctranslate2.Translator(
            str(model),
            device="cpu",
            compute_type=precision,
            inter_threads=setup.cores,
            intra_threads=1,
        )

    def translate(self, rows: Sequence[Row]) -> tuple[list[Ids], float]:
        sources = [[self.source_tokens[i] for i in row.input_ids] for row in rows]
        prefixes = [[self.target_tokens[i] for i in row.target_prefix] for row in rows]
        started = time.perf_counter()
        results = self.translator.translate_batch(sources, prefixes, **self.options)
        seconds = time.perf_counter() - started
        answers = [tuple(self.target_ids[t] for t in result.hypotheses[0]) for result in results]
        return answers, seconds


_engine: _Engine | None = None


def _load(model: Path, precision: str, setup: Setup) -> None:
    global _engine
    _engine = _Engine(model, precision, setup)


def _translate(rows: Sequence[Row]) -> tuple[list[Ids], float]:
    assert _engine is not None  # noqa: S101 - the pool's initializer made it
    return _engine.translate(rows)
