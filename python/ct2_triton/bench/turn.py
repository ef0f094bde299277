# SPDX-License-Identifier: Apache-2.0
"""One measurement: a scenario with one contender, and the resources it used.

CPU time and memory are those of a process with its descendants.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.record import Round

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psutil

    from ct2_triton.bench.contenders import Contender, ServerCounts
    from ct2_triton.bench.scenarios import Outcome, Scenario
    from ct2_triton.bench.setup import Ids
    from ct2_triton.bench.workload import Sentence

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


def tree(pid: int) -> list[int]:
    """List a process and all its descendants."""
    return [process.pid for process in _processes(pid)]


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
    contender: Contender, scenario: Scenario, sentences: Sequence[Sentence]
) -> Outcome | None:
    """Run a scenario; None if it does not apply to the contender."""
    try:
        return await scenario.run(contender, sentences)
    except Exception as error:  # contenders raise errors of many kinds
        raise BenchError(f"{contender.name} failed in {scenario.name}: {error}") from error


async def measure(
    contender: Contender, scenario: Scenario, sentences: Sequence[Sentence], number: int
) -> tuple[Round, Answers]:
    """Run a scenario with a warm contender, and read the resources it used.

    The answers of the round are not yet compared.
    """
    counts = await _settled_counts(contender)
    before = _cpu_times(contender)
    outcome = await send(contender, scenario, sentences)
    assert outcome is not None  # noqa: S101 - callers know who takes part
    own, client, machine = (
        now - then for now, then in zip(_cpu_times(contender), before, strict=True)
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
        other_cpu_s=max(0.0, machine - own - client),
        rss_bytes=memory.rss_bytes,
        pss_bytes=memory.pss_bytes,
        counts=counts and await _counts_after(contender, counts, len(outcome.samples)),
    )
    return round_, outcome.answers


def _cpu_times(contender: Contender) -> tuple[float, float, float]:
    """Return the CPU seconds of the contender, of this process and of the machine."""
    own = cpu_s(contender.pid)
    return own, time.process_time(), machine_cpu_s()


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
