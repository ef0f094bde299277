# SPDX-License-Identifier: Apache-2.0
"""The scenarios: how sentences are sent to a contender, and what is recorded."""

from __future__ import annotations

import asyncio
import math
import re
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ct2_triton.bench.contenders import ListContender
from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.record import Sample
from ct2_triton.bench.workload import bursts, paced, poisson
from ct2_triton.client.tasks import run_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from typing_extensions import Self

    from ct2_triton.bench.contenders import Client, Contender
    from ct2_triton.bench.setup import Ids, Row
    from ct2_triton.bench.workload import Sentence

    Sentences = Sequence[tuple[int, Sentence]]
    """Numbered."""

_SEED = 4
_NAME = re.compile(r"(single|streams|poisson|bursts):(\d+(?:\.\d+)?)(?:@(\d+(?:\.\d+)?))?")


@dataclass
class Outcome:
    """Samples and answers of one run of a scenario.

    Attributes:
        samples: Every row.
        answers: OUTPUT_IDS by the indices of the sentence and of its row.
        wall_s: Seconds from the first row sent to the last answer.
        client_cpu_s: CPU time of the process that sent; of several, of the busiest.
    """

    samples: list[Sample] = field(default_factory=list)
    answers: dict[tuple[int, int], Ids] = field(default_factory=dict)
    wall_s: float = 0.0
    client_cpu_s: float = 0.0

    def add(
        self, key: tuple[int, int], row: Row, answer: Ids, due_s: float, done_s: float | None
    ) -> None:
        """Record one answer; `done_s` is None if it was not timed individually."""
        generated = len(answer) - len(row.target_prefix)
        self.samples.append(Sample(*key, due_s, done_s, len(row.input_ids), generated))
        self.answers[key] = answer

    @classmethod
    def merged(cls, parts: Iterable[Outcome]) -> Outcome:
        """Merge what several processes sent at the same time."""
        whole = cls()
        for part in parts:
            whole.samples += part.samples
            whole.answers |= part.answers
            whole.wall_s = max(whole.wall_s, part.wall_s)
            whole.client_cpu_s = max(whole.client_cpu_s, part.client_cpu_s)
        return whole


@dataclass(frozen=True)
class Scenario(ABC):
    """A way to send sentences.

    Attributes:
        name: Name on the command line.
        fan_out: Whether each sentence goes to all its languages or models, instead of the first.
    """

    name: str
    fan_out: bool

    @property
    @abstractmethod
    def description(self) -> str:
        """Says in words what happens."""

    @property
    @abstractmethod
    def in_flight(self) -> int:
        """Number of sentences in progress at a time, as far as the scenario determines it."""

    @abstractmethod
    async def run(self, contender: Contender, sentences: Sequence[Sentence]) -> Outcome | None:
        """Send sentences, in order; None if the scenario does not apply to the contender."""

    async def send(self, client: Client, sentences: Sentences, started: float) -> Outcome:
        """Send numbered sentences; times count from `started` on the clock of `perf_counter`."""
        outcome = Outcome()
        used_s = time.process_time()
        await self._send_all(client, sentences, started, outcome)
        outcome.wall_s = time.perf_counter() - started
        outcome.client_cpu_s = time.process_time() - used_s
        return outcome

    @abstractmethod
    async def _send_all(
        self, client: Client, sentences: Sentences, started: float, outcome: Outcome
    ) -> None:
        """Send sentences and record the answers."""

    @abstractmethod
    def parts(self, sentences: Sentences, most: int) -> list[tuple[Self, Sentences]]:
        """Divide it among processes, at most so many."""

    def rows(self, sentence: Sentence) -> tuple[Row, ...]:
        """Return the rows of a sentence that are sent."""
        return sentence.rows if self.fan_out else sentence.rows[:1]


@dataclass(frozen=True)
class ClosedLoop(Scenario):
    """Sessions that send the next sentence when the previous one is answered in every language."""

    sessions: int

    @property
    def description(self) -> str:
        """Says in words what happens."""
        rows = "a sentence in all languages" if self.fan_out else "a sentence"
        return f"closed loop, {self.sessions} at a time, each {rows}"

    @property
    def in_flight(self) -> int:
        """One sentence per session."""
        return self.sessions

    async def run(self, contender: Contender, sentences: Sequence[Sentence]) -> Outcome:
        """Send sentences."""
        if isinstance(contender, ListContender):
            return await self._run_list(contender, sentences)
        return await self.send(contender, [*enumerate(sentences)], time.perf_counter())

    async def _send_all(
        self, client: Client, sentences: Sentences, started: float, outcome: Outcome
    ) -> None:
        queue = iter(sentences)

        async def session() -> None:
            for number, sentence in queue:  # shared by the sessions
                due_s = time.perf_counter() - started
                await _send(client, outcome, started, number, self.rows(sentence), due_s)

        await run_all(session() for _ in range(self.sessions))

    def parts(self, sentences: Sentences, most: int) -> list[tuple[Self, Sentences]]:
        """Divide the sessions, and the sentences in proportion."""
        count = min(most, self.sessions)
        return [
            (
                replace(self, sessions=len(range(part, self.sessions, count))),
                [one for one in sentences if one[0] % self.sessions % count == part],
            )
            for part in range(count)
        ]

    async def _run_list(self, contender: ListContender, sentences: Sequence[Sentence]) -> Outcome:
        keyed = [
            ((number, position), row)
            for number, sentence in enumerate(sentences)
            for position, row in enumerate(self.rows(sentence))
        ]
        rows = [row for _, row in keyed]
        if self.sessions == 1 and not self.fan_out:
            answers, seconds = await contender.translate_each(rows)
            outcome = Outcome(wall_s=sum(seconds))
            each: list[float | None] = [*seconds]
        else:
            answers, wall_s = await contender.translate_list(rows)
            outcome = Outcome(wall_s=wall_s)
            each = [None] * len(rows)
        for (key, row), answer, done_s in zip(keyed, answers, each, strict=True):
            outcome.add(key, row, answer, 0.0, done_s)
        return outcome


@dataclass(frozen=True)
class OpenLoop(Scenario):
    """Sentences that are sent when they are due, even if earlier ones are not answered."""

    kind: str
    amount: float
    interval_s: float = 0.0

    @property
    def description(self) -> str:
        """Says in words what happens."""
        return {
            "poisson": f"open loop, {self.amount:g} sentences/s, Poisson arrivals",
            "bursts": f"{self.amount:g} sentences at once, every {self.interval_s:g} s",
            "streams": f"{self.amount:g} sessions, each a sentence in all languages every "
            f"{self.interval_s:g} s",
        }[self.kind]

    @property
    def in_flight(self) -> int:
        """The sentences of one burst or second."""
        return math.ceil(self.amount)

    async def run(self, contender: Contender, sentences: Sequence[Sentence]) -> Outcome | None:
        """Send sentences; latencies count from when a sentence was due."""
        if isinstance(contender, ListContender):
            return None
        return await self.send(contender, [*enumerate(sentences)], time.perf_counter())

    async def _send_all(
        self, client: Client, sentences: Sentences, started: float, outcome: Outcome
    ) -> None:
        due = self._due(1 + max(number for number, _ in sentences))

        async def send(number: int, sentence: Sentence, due_s: float) -> None:
            await asyncio.sleep(started + due_s - time.perf_counter())
            await _send(client, outcome, started, number, self.rows(sentence), due_s)

        await run_all(send(number, sentence, due[number]) for number, sentence in sentences)

    def parts(self, sentences: Sentences, most: int) -> list[tuple[Self, Sentences]]:
        """Divide the sentences; each is due at the same time as in one process."""
        count = min(most, len(sentences))
        return [(self, sentences[part::count]) for part in range(count)]

    def _due(self, count: int) -> list[float]:
        if self.kind == "poisson":
            return poisson(self.amount, count, _SEED)
        if self.kind == "bursts":
            return bursts(int(self.amount), self.interval_s, count)
        return paced(int(self.amount), self.interval_s, count, _SEED)


def parse_scenario(name: str) -> Scenario:
    """Read a scenario's name.

    It is `single:CLIENTS`, `streams:SESSIONS`, `streams:SESSIONS@SECONDS`, `poisson:RATE` or
    `bursts:SENTENCES@SECONDS`.
    """
    match = _NAME.fullmatch(name)
    if match:
        kind, amount, interval = match[1], float(match[2]), float(match[3] or 0)
        whole = amount >= 1 and amount.is_integer()
        if kind in {"single", "streams"} and whole and not match[3]:
            return ClosedLoop(name, kind == "streams", int(amount))
        if kind in {"streams", "bursts"} and whole and interval > 0:
            return OpenLoop(name, kind == "streams", kind, amount, interval)
        if kind == "poisson" and amount > 0 and not match[3]:
            return OpenLoop(name, fan_out=False, kind=kind, amount=amount)
    raise BenchError(
        f"{name!r} is not a scenario; give single:CLIENTS, streams:SESSIONS, "
        "streams:SESSIONS@SECONDS, poisson:RATE or bursts:SENTENCES@SECONDS"
    )


async def _send(
    client: Client,
    outcome: Outcome,
    started: float,
    number: int,
    rows: Sequence[Row],
    due_s: float,
) -> None:
    """Send the rows of a sentence together, and record each answer when it arrives."""

    async def one(position: int, row: Row) -> None:
        answer = await client.translate(row)
        outcome.add((number, position), row, answer, due_s, time.perf_counter() - started)

    if len(rows) == 1:
        await one(0, rows[0])
    else:
        await run_all(one(position, row) for position, row in enumerate(rows))
