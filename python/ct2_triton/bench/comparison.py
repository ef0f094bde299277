# SPDX-License-Identifier: Apache-2.0
"""Run a comparison: each scenario in rounds, and each contender once per round.

A measurement includes CPU time and memory, those of a process with its descendants.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from ct2_triton.bench.contenders import ListContender, make_contender, precision_of
from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.load_generator import LoadGenerator
from ct2_triton.bench.record import Round, Run, ScenarioRecord, describe_machine, describe_versions
from ct2_triton.bench.scenarios import ClosedLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import psutil

    from ct2_triton.bench.contenders import Contender, ServerCounts
    from ct2_triton.bench.scenarios import Outcome, Scenario
    from ct2_triton.bench.setup import Ids, Setup
    from ct2_triton.bench.workload import Sentence, Workload

    Answers = dict[tuple[int, int], Ids]


@dataclass(frozen=True)
class Memory:
    """Memory of processes.

    Attributes:
        rss_bytes: Resident memory; a page shared by two of them counts twice.
        pss_bytes: Resident memory; each page is divided by the number of processes that share it.
    """

    rss_bytes: int
    pss_bytes: int


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process, its descendants, and their ended children, in seconds."""
    import psutil

    seconds = 0.0
    for process in _processes(pid):
        with contextlib.suppress(psutil.Error):  # the process has ended
            times = process.cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


def memory_of(pid: int) -> Memory:
    """Return the memory of a process and its descendants."""
    import psutil

    rss = pss = 0
    for process in _processes(pid):
        with contextlib.suppress(psutil.Error):
            used = process.memory_full_info()
            rss += used.rss
            pss += used.pss
    return Memory(rss, pss)


def machine_cpu_s() -> float:
    """Return the CPU time of the whole machine since it was started, in seconds."""
    import psutil

    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)


def _processes(pid: int) -> list[psutil.Process]:
    import psutil

    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


# Triton counts a request shortly after its response; the Python backend, a whole batch.
_COUNTS_LAG_S = 5.0
_QUIET_S = 0.1


async def send(
    contender: Contender,
    scenario: Scenario,
    sentences: Sequence[Sentence],
    generator: LoadGenerator | None = None,
) -> Outcome | None:
    """Run a scenario, here or in a generator; None if it does not apply to the contender."""
    try:
        if generator is not None:
            return await generator.run(scenario, [*enumerate(sentences)])
        return await scenario.run(contender, sentences)
    except Exception as error:  # contenders raise errors of many kinds
        raise BenchError(f"{contender.name} failed in {scenario.name}: {error}") from error


async def measure(
    contender: Contender,
    scenario: Scenario,
    sentences: Sequence[Sentence],
    number: int,
    generator: LoadGenerator | None = None,
) -> tuple[Round, Answers]:
    """Run a scenario with a warm contender, and read the resources it used.

    The answers of the round are not yet compared.
    """
    counts = await _settled_counts(contender)
    before = _cpu_times(contender, generator)
    outcome = await send(contender, scenario, sentences, generator)
    assert outcome is not None  # noqa: S101 - callers know who takes part
    own, client, machine = (
        now - then for now, then in zip(_cpu_times(contender, generator), before, strict=True)
    )
    memory = memory_of(contender.pid)
    round_ = Round(
        contender=contender.name,
        number=number,
        wall_s=outcome.wall_s,
        words=sum(sentence.words * len(scenario.rows(sentence)) for sentence in sentences),
        samples=tuple(outcome.samples),
        cpu_s=own,
        client_cpu_s=client,
        client_busy=outcome.client_cpu_s / outcome.wall_s,
        other_cpu_s=max(0.0, machine - own - client),
        rss_bytes=memory.rss_bytes,
        pss_bytes=memory.pss_bytes,
        counts=counts and await _counts_after(contender, counts, len(outcome.samples)),
    )
    return round_, outcome.answers


def _cpu_times(contender: Contender, generator: LoadGenerator | None) -> tuple[float, float, float]:
    """Return the CPU seconds of the contender, of all clients and of the machine."""
    own = cpu_s(contender.pid)
    clients = time.process_time() + sum(map(cpu_s, generator.pids if generator else ()))
    return own, clients, machine_cpu_s()


async def _settled_counts(contender: Contender) -> ServerCounts | None:
    """Read the counters of a server when they no longer change."""
    now = await contender.server_counts()
    while now is not None:
        await asyncio.sleep(_QUIET_S)
        before, now = now, await contender.server_counts()
        if now == before:
            break
    return now


async def _counts_after(
    contender: Contender, before: ServerCounts, rows: int
) -> ServerCounts | None:
    """Read how much the counters of a server grew, when they include all rows."""
    deadline = time.monotonic() + _COUNTS_LAG_S
    while True:
        now = await contender.server_counts()
        counted = now and now.since(before)
        if counted is None or min(counted.rows, counted.requests) >= rows:
            return counted
        if time.monotonic() > deadline:
            return counted
        await asyncio.sleep(0.02)


_FEWEST_SENTENCES = 16


@dataclass(frozen=True)
class Plan:
    """What is measured, and how long.

    Attributes:
        contenders: Their names; the first is the baseline of all ratios.
        scenarios: The scenarios, in the order in which they run.
        rounds: Measurements of each contender in each scenario, after one warm-up.
        seconds: Approximate duration of all rounds together. Each measurement has an equal share,
            so fast contenders translate the sentences several times.
        client_processes: Processes that send sentences to a server; with 1, this process.
        client_cores: Their own cores; empty: they share those of the contenders.
    """

    contenders: tuple[str, ...]
    scenarios: tuple[Scenario, ...]
    rounds: int
    seconds: float
    client_processes: int = 1
    client_cores: tuple[int, ...] = ()

    @property
    def turns(self) -> int:
        """Number of measurements of all contenders, warm-ups included."""
        return len(self.contenders) * len(self.scenarios) * (self.rounds + 1)

    @property
    def turn_s(self) -> float:
        """Target duration of one measurement, in seconds."""
        return self.seconds / (len(self.contenders) * len(self.scenarios) * self.rounds)


def check_sentences(count: int, name: str, scenarios: Iterable[Scenario]) -> None:
    """Check that there are enough sentences that none is in progress twice at the same time.

    Raises:
        BenchError: A scenario needs more.
    """
    for scenario in scenarios:
        if count < (needed := 2 * scenario.in_flight):
            raise BenchError(
                f"{name} has {count} different sentences; {scenario.name} needs {needed}"
            )


def check_lines(lines: Iterable[str], name: str, scenarios: Iterable[Scenario]) -> None:
    """Check the number of lines before a model is prepared; some may be the same sentence.

    Raises:
        BenchError: A scenario needs more lines.
    """
    check_sentences(len({line for line in lines if line.strip()}), name, scenarios)


async def compare(
    setup: Setup, workload: Workload, plan: Plan, report: Callable[[str, int], None]
) -> Run:
    """Start all contenders, measure each in every round, and stop them.

    `report` is called with a description, and the number of measurements since the last call.
    """
    check_sentences(len(workload.sentences), workload.name, plan.scenarios)
    started = datetime.now(timezone.utc).astimezone().isoformat(timespec="seconds")
    machine = describe_machine()
    contenders = [make_contender(name, setup) for name in plan.contenders]
    async with AsyncExitStack() as stack:
        for contender in contenders:
            report(f"starting {contender.name}", 0)
            await stack.enter_async_context(contender)
        generators = {
            contender.name: stack.enter_context(
                LoadGenerator(client, plan.client_processes, plan.client_cores)
            )
            for contender in contenders
            if plan.client_processes > 1 and (client := contender.client())
        }
        scenarios = [
            await _ScenarioRun(
                scenario, contenders, generators, workload.sentences, plan, report
            ).run()
            for scenario in plan.scenarios
        ]
        settings = {
            contender.name: {
                **contender.settings(),
                "cores": str(contender.setup.cores),
                "physical cores": str(contender.physical_cores),
            }
            for contender in contenders
        }
    return Run(
        started=started,
        baseline=plan.contenders[0],
        machine=machine,
        versions=describe_versions(),
        setup={
            "model": setup.title,
            "served as": f"{len(setup.models)} model(s)",
            "device": setup.device,
            "beam": str(setup.beam_size),
            "longest answer": f"{setup.max_decoding_length} tokens",
            "rounds": str(plan.rounds),
            "processes of the load generator": str(plan.client_processes)
            + (" on cores of their own" if plan.client_cores else ""),
        },
        workload=workload.describe(),
        contenders=settings,
        scenarios=tuple(scenarios),
    )


class _ScenarioRun:
    """One scenario with all contenders."""

    def __init__(
        self,
        scenario: Scenario,
        contenders: Sequence[Contender],
        generators: Mapping[str, LoadGenerator],
        sentences: Sequence[Sentence],
        plan: Plan,
        report: Callable[[str, int], None],
    ) -> None:
        self._scenario = scenario
        self._contenders = contenders
        self._generators = generators
        self._sentences = sentences
        self._plan = plan
        self._report = report
        self._answers: dict[tuple[str, int], Answers] = {}

    async def run(self) -> ScenarioRecord:
        """Warm up, then run the rounds, each starting with a different contender."""
        rates = {}
        for contender in self._contenders:
            self._report(f"{self._scenario.name}: warming up {contender.name}", 1)
            rates[contender.name] = await self._warm_up(contender)
        if not any(rates.values()):
            raise BenchError(f"none of the contenders takes part in {self._scenario.name}")
        count = self._count(min(rate for rate in rates.values() if rate))
        rounds = []
        for number in range(self._plan.rounds):
            first = number % len(self._contenders)
            for contender in (*self._contenders[first:], *self._contenders[:first]):
                name = contender.name
                self._report(
                    f"{self._scenario.name}: round {number + 1} of {self._plan.rounds}, {name}", 1
                )
                if rate := rates[name]:
                    sentences = [*self._sentences[:count]] * self._passes(rate, count)
                    round_, answers = await measure(
                        contender, self._scenario, sentences, number, self._generators.get(name)
                    )
                    self._answers[name, number] = answers
                    rounds.append(round_)
        references = _references([c for c in self._contenders if rates[c.name]])
        return ScenarioRecord(
            name=self._scenario.name,
            description=self._scenario.description,
            sentences=count,
            answers_of=references,
            rounds=tuple(self._judged(round_, references) for round_ in rounds),
        )

    async def _warm_up(self, contender: Contender) -> float | None:
        """Return the approximate sentences per second; None if the scenario does not apply."""
        count = max(_FEWEST_SENTENCES, self._scenario.in_flight)
        generator = self._generators.get(contender.name)
        outcome = await send(contender, self._scenario, self._sentences[:count], generator)
        return None if outcome is None else min(count, len(self._sentences)) / outcome.wall_s

    def _count(self, lowest_rate: float) -> int:
        """Return the sentences per contender: as many as the slowest translates in its time."""
        fewest = max(_FEWEST_SENTENCES, 2 * self._scenario.in_flight)
        return min(len(self._sentences), max(fewest, int(lowest_rate * self._plan.turn_s)))

    def _passes(self, rate: float, count: int) -> int:
        if not isinstance(self._scenario, ClosedLoop):
            return 1
        return max(1, round(rate * self._plan.turn_s / count))

    def _judged(self, round_: Round, references: Mapping[str, str]) -> Round:
        """Compare the answers of a round with those of the reference contender."""
        expected = self._answers[references[precision_of(round_.contender)], 0]
        got = self._answers[round_.contender, round_.number]
        size = len({sentence for sentence, _ in expected})
        different = sum(expected[s % size, row] != answer for (s, row), answer in got.items())
        return replace(round_, compared_rows=len(got), different_rows=different)


def _references(contenders: Sequence[Contender]) -> dict[str, str]:
    """Return the reference by precision: a library without a server, else the first contender."""
    ranked = sorted(contenders, key=lambda contender: not isinstance(contender, ListContender))
    return {contender.precision: contender.name for contender in reversed(ranked)}
