# SPDX-License-Identifier: Apache-2.0
"""Several processes that send a scenario's sentences together, each with its own connection.

One Python process sends about 2,000 rows a second. Each process has a share of the sessions, or of
the arrivals. They begin at one time, and their samples are of one clock, which processes share. On
a machine with enough cores, they have cores of their own.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time
from contextlib import suppress
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.scenarios import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from typing_extensions import Self

    from ct2_triton.bench.contenders.base import Client
    from ct2_triton.bench.scenarios import Scenario, Sentences

_LEAD_S = 0.05  # from the last process that is ready to the first sentence


class LoadGenerator:
    """The processes that send to one contender. A context manager, which ends them."""

    def __init__(self, client: Client, processes: int, cores: Collection[int] = ()) -> None:
        """Start the processes; `client` is not connected yet, and each has a copy of it.

        They run on `cores`; if there are none, on those of this process.
        """
        self._processes: dict[Connection, SpawnProcess] = {}
        spawn = multiprocessing.get_context("spawn")
        for _ in range(processes):
            ours, theirs = spawn.Pipe()
            process = spawn.Process(target=_run, args=(theirs, client, cores), daemon=True)
            process.start()
            theirs.close()  # so that its end is noticed
            self._processes[ours] = process

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes, also while they send."""
        for process in self._processes.values():
            process.kill()
            process.join()

    @property
    def pids(self) -> list[int]:
        """IDs of the processes."""
        return [process.pid for process in self._processes.values() if process.pid]

    async def run(self, scenario: Scenario, sentences: Sentences) -> Outcome:
        """Send numbered sentences, and merge what the processes record.

        Raises:
            BenchError: A process has failed or ended.
        """
        return await asyncio.to_thread(self._run, scenario, sentences)

    def _run(self, scenario: Scenario, sentences: Sentences) -> Outcome:
        parts = scenario.parts(sentences, len(self._processes))
        working = dict(zip(self._processes, parts, strict=False))
        self._exchange(working)
        started = time.perf_counter() + _LEAD_S
        return Outcome.merged(self._exchange(dict.fromkeys(working, started)))

    def _exchange(self, messages: dict[Connection, Any]) -> list[Outcome]:
        """Send each process a message, and return the answers or raise the first failure."""
        for connection, message in messages.items():
            with suppress(BrokenPipeError):  # it has ended, which its answer says
                connection.send(message)
        waiting, answers = set(messages), []
        while waiting:
            for connection in waiting.intersection(wait(waiting)):
                answers.append(self._receive(connection))
                waiting.remove(connection)
        return answers

    def _receive(self, connection: Connection) -> Outcome:
        try:
            answer: Outcome | BenchError = connection.recv()
        except (EOFError, ConnectionError):
            process = self._processes[connection]
            process.join()
            raise BenchError(
                f"a process of the load generator ended with status {process.exitcode}"
            ) from None
        if isinstance(answer, BenchError):
            raise answer
        return answer


def _run(connection: Connection, client: Client, cores: Collection[int]) -> None:
    """Send what the connection gives until it closes; a failure is its last answer."""
    if cores:
        os.sched_setaffinity(0, cores)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    try:
        asyncio.run(_send(connection, client))
    except EOFError:  # the parent has gone
        return
    except Exception as error:  # clients raise errors of many kinds
        connection.send(BenchError(str(error)))


async def _send(connection: Connection, client: Client) -> None:
    async with client:
        while True:
            scenario, sentences = await asyncio.to_thread(connection.recv)
            connection.send(Outcome())  # it is ready
            started = await asyncio.to_thread(connection.recv)
            await asyncio.sleep(started - time.perf_counter())
            connection.send(await scenario.send(client, sentences, started))
