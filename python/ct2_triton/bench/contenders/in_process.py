# SPDX-License-Identifier: Apache-2.0
"""A library without a server, given the whole list: an upper bound for servers that use it.

It runs in its own process and times its own calls, so that the figures exclude the load generator
and the pipe between them.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import shutil
import time
from abc import abstractmethod
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, TypeVar

from ct2_triton.bench.contenders.base import ENGINE_ON_GPU, PYTORCH_ON_GPU, ListContender
from ct2_triton.bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ct2_triton.bench.models.translator import Settings
    from ct2_triton.bench.setup import Ids, Row, Setup

    Translate = Callable[[Sequence[Row]], tuple[list[list[int]], float]]

T = TypeVar("T")

_ENGINE_ROWS_PER_CALL = 32


class InProcessContender(ListContender):
    """A translator in its own process; a subclass chooses which."""

    def __init__(self, precision: str, setup: Setup) -> None:
        """Start nothing."""
        super().__init__(precision, setup)
        self._pool: ProcessPoolExecutor | None = None
        self._pid = 0

    @staticmethod
    @abstractmethod
    def load(settings: Settings) -> Translate:
        """Load the model in the process that will translate.

        Returns a function that translates rows and returns the seconds it took.
        """

    @abstractmethod
    def translator_settings(self) -> Settings:
        """Return what to load, after preparing it if necessary."""

    async def start(self) -> None:
        """Start the process and load the model in it."""
        settings = await asyncio.to_thread(self.translator_settings)
        self._pool = ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), _load, (type(self), settings)
        )
        try:
            self._pid = await self._in_process(os.getpid)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End the process."""
        if self._pool is not None:
            await asyncio.to_thread(self._pool.shutdown)

    @property
    def pid(self) -> int:
        """ID of the library's process."""
        return self._pid

    async def translate_each(self, rows: Sequence[Row]) -> tuple[list[Ids], list[float]]:
        """Call the library once for each row."""
        results = [await self._in_process(_run, [row]) for row in rows]
        return [answer for (answer,), _ in results], [seconds for _, seconds in results]

    async def translate_list(self, rows: Sequence[Row]) -> tuple[list[Ids], float]:
        """Call the library once for all rows."""
        return await self._in_process(_run, list(rows))

    async def _in_process(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)


class EngineContender(InProcessContender):
    """CTranslate2 on the whole list, sorted by length: one single-threaded worker per core.

    This is the fastest configuration on a CPU; larger calls did not raise throughput with the rows
    of benchmarks/README.md.
    """

    kind = "ctranslate2"
    gpu_precisions = ENGINE_ON_GPU

    @staticmethod
    def load(settings: Settings) -> Translate:
        """Load the model."""
        from ct2_triton.bench.models.engine import EngineTranslator

        return EngineTranslator(settings).timed_translate

    @property
    def _workers(self) -> int:
        return 1 if self.setup.device == "gpu" else self.setup.cores

    def translator_settings(self) -> Settings:
        """Give it all cores."""
        model = self.setup.prepared(self.precision).model_folder
        return self.translator(model, workers=self._workers, rows_per_call=_ENGINE_ROWS_PER_CALL)

    def settings(self) -> Mapping[str, str]:
        """Return how the list is cut."""
        return {
            "server": f"none: ctranslate2 {version('ctranslate2')} on the whole list",
            "workers": f"{self._workers} of one thread",
            "calls": f"up to {_ENGINE_ROWS_PER_CALL} rows, sorted by length",
            "not in its times": "ids to tokens and back",
        }


class TransformersContender(InProcessContender):
    """Hugging Face `generate` on the whole list, sorted by length; see `models/hugging_face.py`.

    It shows how much of the library's throughput a server keeps.
    """

    kind = "transformers"
    gpu_precisions = PYTORCH_ON_GPU

    @staticmethod
    def load(settings: Settings) -> Translate:
        """Load the checkpoint."""
        from ct2_triton.bench.models.hugging_face import HuggingFaceTranslator

        translator = HuggingFaceTranslator(settings)

        def timed_translate(rows: Sequence[Row]) -> tuple[list[list[int]], float]:
            started = time.perf_counter()
            answers = translator.translate(rows)
            return answers, time.perf_counter() - started

        return timed_translate

    def translator_settings(self) -> Settings:
        """Give it all cores."""
        return self.translator(self.setup.checkpoint(), threads=self.setup.cores)

    def settings(self) -> Mapping[str, str]:
        """Return how the list is cut."""
        settings = self.translator_settings()
        return {
            "server": f"none: transformers {version('transformers')} on torch {version('torch')}, "
            "on the whole list",
            "threads": str(settings.threads),
            "calls": f"up to {settings.rows_per_call} rows, sorted by length",
        }


_translate: Translate | None = None


def _load(contender: type[InProcessContender], settings: Settings) -> None:
    global _translate
    _translate = contender.load(settings)


def _run(rows: Sequence[Row]) -> tuple[list[Ids], float]:
    assert _translate is not None  # noqa: S101 - the pool's initializer made it
    answers, seconds = _translate(rows)
    return [tuple(ids) for ids in answers], seconds


_ROWS_PER_BATCH = 32


class MarianContender(InProcessContender):
    """Marian's Python module, one thread per core; see `models/marian.py`."""

    kind = "marian"

    @staticmethod
    def load(settings: Settings) -> Translate:
        """Load the model."""
        from ct2_triton.bench.models.marian import MarianTranslator

        return MarianTranslator(settings).timed_translate

    def translator_settings(self) -> Settings:
        """Write the weights for Marian, and return settings with all cores."""
        from ct2_triton.bench.models.marian import CONFIG_NAME, ENGINE_NAME
        from ct2_triton.bench.models.marian_file import write_marian_file

        checkpoint = self.setup.checkpoint()
        config = json.loads((checkpoint / CONFIG_NAME).read_text(encoding="utf-8"))
        family = config["model_type"]
        if family != "marian":
            raise BenchError(
                f"Marian cannot run a model of the family {family}; --shape marian-base makes one "
                "that it can"
            )
        try:
            version("pymarian")
        except PackageNotFoundError as error:
            raise BenchError("pymarian is missing: pip install pymarian") from error
        folder = self.setup.folder / self.name
        folder.mkdir()
        write_marian_file(checkpoint, folder)
        shutil.copyfile(checkpoint / CONFIG_NAME, folder / CONFIG_NAME)
        engine = self.setup.prepared("float32").model_folder.absolute()
        (folder / ENGINE_NAME).symlink_to(engine)
        return self.translator(folder, threads=self.setup.cores, rows_per_call=_ROWS_PER_BATCH)

    def settings(self) -> Mapping[str, str]:
        """Return how the list is cut."""
        from ct2_triton.bench.models.marian import COMPARED_ROWS, LENGTH_FACTOR, int8_type

        return {
            "server": f"none: pymarian {version('pymarian')} on the whole list",
            "threads": str(self.setup.cores),
            "batches": f"up to {_ROWS_PER_BATCH} rows, sorted by length",
            "weights": int8_type() if self.precision == "int8" else self.precision,
            "longest answer": f"{LENGTH_FACTOR} times the source",
            "checked": f"{COMPARED_ROWS} rows equal CTranslate2's in float32",
            "not in its times": "ids to text and back",
        }
