# SPDX-License-Identifier: Apache-2.0
"""What a contender is: one way to translate rows, started, asked and stopped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Self

    from ct2_triton.bench.setup import Ids, Row, Setup

# What CTranslate2 computes with on a GPU, and PyTorch.
ENGINE_ON_GPU: tuple[str, ...] = ("float32", "float16", "bfloat16", "int8_float16", "int8")
PYTORCH_ON_GPU: tuple[str, ...] = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class ServerCounts:
    """What a server has counted since its start, over all models of a run.

    Attributes:
        rows: Rows translated.
        batches: Batches they came in.
        requests: Requests that succeeded.
        queue_ns: Time requests waited, summed over requests.
        compute_ns: Time requests were worked on, summed over requests.
        first_tokens: Rows whose first token it timed; a beam search knows none before its end.
        first_token_s: Seconds from their entry into the queue to that token, summed over rows.
        gaps: Rows of two tokens and more among them.
        gap_s: Longest wait of each between two tokens, in seconds, summed over rows.
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
        """Return what was counted after an earlier reading."""
        return ServerCounts(
            self.rows - earlier.rows,
            self.batches - earlier.batches,
            self.requests - earlier.requests,
            self.queue_ns - earlier.queue_ns,
            self.compute_ns - earlier.compute_ns,
            self.first_tokens - earlier.first_tokens,
            self.first_token_s - earlier.first_token_s,
            self.gaps - earlier.gaps,
            self.gap_s - earlier.gap_s,
        )


class Contender(ABC):
    """One way to translate rows. An asynchronous context manager: entering it starts it.

    A contender does its work in processes of its own, so that memory and CPU are told apart from
    those of the load generator.

    Attributes:
        kind: What it is called; its full name is `<kind>-<precision>`.
        precisions: Types of weights that it can compute with on a CPU.
        gpu_precisions: The same on a GPU; none where it has no way to use one.
    """

    kind: ClassVar[str]
    precisions: ClassVar[tuple[str, ...]] = ("float32", "int8")
    gpu_precisions: ClassVar[tuple[str, ...]] = ()

    def __init__(self, precision: str, setup: Setup) -> None:
        """Take what it needs and start nothing; the precision is one of those of the device."""
        self.precision = precision
        self.setup = setup

    @property
    def name(self) -> str:
        """Its name in a run, its files and its reports."""
        return f"{self.kind}-{self.precision}"

    async def __aenter__(self) -> Self:
        """Start it and return once it answers."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop it."""
        await self.stop()

    @abstractmethod
    async def start(self) -> None:
        """Start its processes; return once it answers. Undo what it did if it fails."""

    @abstractmethod
    async def stop(self) -> None:
        """End its processes."""

    @property
    @abstractmethod
    def pid(self) -> int:
        """The process whose tree is the contender."""

    @abstractmethod
    def settings(self) -> Mapping[str, str]:
        """Say for the report how it is set up: threads, batching, versions, what it leaves out."""

    @abstractmethod
    async def translate(self, row: Row) -> Ids:
        """Translate one row and give its OUTPUT_IDS: the prefix first, no end token."""

    async def server_counts(self) -> ServerCounts | None:
        """Return what its server has counted; None where nothing counts."""
        return None


class ListContender(Contender):
    """A contender that can be given all rows at once: no server, a bound for those who serve.

    Rows among others have no latency of their own here, so they are timed alone or as a list.
    """

    async def translate(self, row: Row) -> Ids:
        """Translate one row."""
        (answer,), _ = await self.translate_each([row])
        return answer

    @abstractmethod
    async def translate_each(self, rows: Sequence[Row]) -> tuple[list[Ids], list[float]]:
        """Translate one row after the other; give OUTPUT_IDS and seconds of each."""

    @abstractmethod
    async def translate_list(self, rows: Sequence[Row]) -> tuple[list[Ids], float]:
        """Translate all rows in one call; give OUTPUT_IDS of each, and the call's seconds."""
