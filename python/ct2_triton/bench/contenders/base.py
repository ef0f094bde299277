# SPDX-License-Identifier: Apache-2.0
"""The interface of a contender: one way to translate rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, ClassVar

from ct2_triton.bench.cores import first_cores, on_cores, physical_cores, usable_cores
from ct2_triton.bench.models.translator import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from typing_extensions import Self

    from ct2_triton.bench.setup import Ids, Row, Setup

# The compute types of CTranslate2 on a GPU, and of PyTorch.
ENGINE_ON_GPU: tuple[str, ...] = ("float32", "float16", "bfloat16", "int8_float16", "int8")
PYTORCH_ON_GPU: tuple[str, ...] = ("float32", "float16", "bfloat16")


def precision_of(contender: str) -> str:
    """Return the type of the weights, from a contender's name."""
    return contender.partition("@")[0].rpartition("-")[2]


@dataclass(frozen=True)
class ServerCounts:
    """Counters of a server since its start, added over all models of a run.

    Attributes:
        rows: Rows translated.
        batches: Batches that held them.
        requests: Requests that succeeded.
        queue_ns: Time in the queue, summed over requests.
        compute_ns: Computation time, input and output included, summed over requests.
        first_tokens: Rows whose first token was timed; in a beam search none is known before the
            end.
        first_token_s: Seconds from entering the queue to that token, summed over rows.
        gaps: Those of them with at least two tokens.
        gap_s: Longest time between two tokens of a row, in seconds, summed over rows.
    """

    rows: int
    batches: int
    requests: int
    queue_ns: int
    compute_ns: int
    first_tokens: int = 0
    first_token_s: float = 0.0
    gaps: int = 0
    gap_s: float = 0.0

    def since(self, earlier: ServerCounts) -> ServerCounts:
        """Return the difference from an earlier reading."""
        pairs = zip(astuple(self), astuple(earlier), strict=True)
        return ServerCounts(*(now - before for now, before in pairs))


class Client(ABC):
    """What rows are sent through. An asynchronous context manager: entering it starts it."""

    async def __aenter__(self) -> Self:
        """Start it and return when it answers."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop it."""
        await self.stop()

    @abstractmethod
    async def start(self) -> None:
        """Connect, or start processes, and return when it answers; clean up after a failure."""

    @abstractmethod
    async def stop(self) -> None:
        """Disconnect, or end the processes."""

    @abstractmethod
    async def translate(self, row: Row) -> Ids:
        """Translate one row and return its OUTPUT_IDS: the prefix first, no end token."""


class Contender(Client):
    """One way to translate rows.

    A contender runs in its own processes, so that its memory and CPU time are measured apart from
    those of the load generator.

    Attributes:
        kind: First part of its name `<kind>-<precision>`.
        precisions: Weight types that it supports on a CPU.
        gpu_precisions: Weight types that it supports on a GPU; empty if it cannot use one.
        fewer_cores: The number of cores that it has to itself; None: all that contenders have.
    """

    kind: ClassVar[str]
    precisions: ClassVar[tuple[str, ...]] = ("float32", "int8")
    gpu_precisions: ClassVar[tuple[str, ...]] = ()
    fewer_cores: int | None = None

    def __init__(self, precision: str, setup: Setup) -> None:
        """Keep the arguments and start nothing; the precision must be supported on the device."""
        self.precision = precision
        self.setup = setup

    def translator(self, model: Path, **more: int) -> Settings:
        """Return what a translator of this run loads; `more` are its threads, workers or rows."""
        return Settings(
            str(model.absolute()),
            precision=self.precision,
            beam_size=self.setup.beam_size,
            max_decoding_length=self.setup.max_decoding_length,
            device=self.setup.device,
            **more,
        )

    async def __aenter__(self) -> Self:
        """Start it on as many cores as it has."""
        with on_cores(self._cores):
            return await super().__aenter__()

    @property
    def physical_cores(self) -> int:
        """Number of cores that its cores are hyperthreads of."""
        return physical_cores(self._cores)

    @property
    def _cores(self) -> tuple[int, ...]:
        return first_cores(usable_cores(), self.setup.cores)

    @property
    def name(self) -> str:
        """Its name in runs, files and reports."""
        fewer = "" if self.fewer_cores is None else f"@{self.fewer_cores}"
        return f"{self.kind}-{self.precision}{fewer}"

    @property
    @abstractmethod
    def pid(self) -> int:
        """ID of the process that, with its descendants, is the contender."""

    @abstractmethod
    def settings(self) -> Mapping[str, str]:
        """Return its configuration for the report: threads, batching, versions, limitations."""

    def client(self) -> Client | None:
        """Return a further client of its server, for another process; None without a server."""
        return None

    async def server_counts(self) -> ServerCounts | None:
        """Return the counters of its server; None if it has none."""
        return None


class ListContender(Contender):
    """A library without a server, given all rows at once: an upper bound for the servers.

    In a list, rows have no latencies of their own, so rows are timed one by one or as a list.
    """

    async def translate(self, row: Row) -> Ids:
        """Translate one row."""
        (answer,), _ = await self.translate_each([row])
        return answer

    @abstractmethod
    async def translate_each(self, rows: Sequence[Row]) -> tuple[list[Ids], list[float]]:
        """Translate rows one after another; return the OUTPUT_IDS and the seconds of each."""

    @abstractmethod
    async def translate_list(self, rows: Sequence[Row]) -> tuple[list[Ids], float]:
        """Translate all rows in one call; return the OUTPUT_IDS of each, and the call's seconds."""
