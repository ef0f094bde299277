# SPDX-License-Identifier: Apache-2.0
"""Predicts throughput and latency of the worker pool from what a decoding step costs.

Clients in a closed loop, workers of one thread, calls as `backend/src/queue/call_plan.cc`
puts them together. A step of a call with n rows that have not ended costs `fixed + per_row * n`:
fit both to the engine's source tokens/s at several rows per call. So the gain of another plan can
be estimated before it is implemented.

    python benchmarks/simulate_calls.py --clients 16,48,192
    python benchmarks/simulate_calls.py --clients 48 --answers-at-end
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import math
import random
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from ct2_triton.bench.record import percentile
from sentence_lengths import draw_length

if TYPE_CHECKING:
    from collections.abc import Callable

_SPECIAL = 2  # tokens of a row that are not of its sentence


@dataclass(frozen=True)
class Plan:
    """What is simulated.

    Attributes:
        clients: Each sends its next row when the last is answered.
        workers: Calls at once.
        fixed_ms: Of a step, whatever the rows.
        per_row_ms: Of a step, for each row that has not ended.
        max_rows: Of a call.
        answers_at_end: Rows are answered when their call ends, not when they do.
        client_ms: From an answer to the next row of its client.
        rows: When to stop.
        seed: Chooses the lengths.
    """

    clients: int
    workers: int = 2
    fixed_ms: float = 5.1
    per_row_ms: float = 0.63
    max_rows: int = 32
    answers_at_end: bool = False
    client_ms: float = 2.0
    rows: int = 8000
    seed: int = 1


@dataclass(frozen=True)
class Row:
    """A row, and when it was sent."""

    tokens: int
    sent_ms: float


@dataclass
class Outcome:
    """What the clients saw.

    Attributes:
        tokens: Source tokens, as many as were generated.
        calls: How many.
        wall_ms: Until the last answer.
        latencies_ms: Of each row.
    """

    tokens: int = 0
    calls: int = 0
    wall_ms: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)

    def percentile_ms(self, percent: float) -> float:
        """Nearest rank."""
        return percentile(self.latencies_ms, percent / 100)


class _Simulation:
    """Events in order of time: a row is sent, a row is answered, a worker is free."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._random = random.Random(plan.seed)
        self._now_ms = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()  # of the events: those of one time in order
        self._queue: list[Row] = []
        self._free = plan.workers
        self._running = 0
        self._outcome = Outcome()

    def run(self) -> Outcome:
        for _ in range(self._plan.clients):
            self._send(self._random.random())
        while len(self._outcome.latencies_ms) < self._plan.rows:
            self._now_ms, _, happen = heapq.heappop(self._events)
            happen()
            while self._free and self._queue:
                self._call()
        self._outcome.wall_ms = self._now_ms
        return self._outcome

    def _at(self, time_ms: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time_ms, next(self._numbers), happen))

    def _send(self, time_ms: float) -> None:
        tokens = draw_length(self._random) + _SPECIAL
        self._at(time_ms, partial(self._enqueue, Row(tokens, time_ms)))

    def _enqueue(self, row: Row) -> None:
        self._queue.append(row)

    def _answer(self, row: Row) -> None:
        self._running -= 1
        self._outcome.tokens += row.tokens
        self._outcome.latencies_ms.append(self._now_ms - row.sent_ms)
        self._send(self._now_ms + self._plan.client_ms)

    def _end_call(self) -> None:
        self._free += 1

    def _call(self) -> None:
        """Take the row that waited longest and the nearest in length, up to the fair share."""
        share = math.ceil((len(self._queue) + self._running) / self._plan.workers)
        first = self._queue[0]
        self._queue.sort(key=lambda row: abs(row.tokens - first.tokens))
        count = min(self._plan.max_rows, share)
        rows, rest = self._queue[:count], self._queue[count:]
        self._queue = sorted(rest, key=lambda row: row.sent_ms)
        self._free -= 1
        self._running += len(rows)
        self._outcome.calls += 1
        ends_ms = self._ends(sorted(row.tokens for row in rows))
        last_ms = max(ends_ms.values())
        for row in rows:
            answered_ms = last_ms if self._plan.answers_at_end else ends_ms[row.tokens]
            self._at(answered_ms, partial(self._answer, row))
        self._at(last_ms, self._end_call)

    def _ends(self, lengths: list[int]) -> dict[int, float]:
        """When rows of each length end."""
        ends, done, now_ms = {}, 0, self._now_ms
        for ended, tokens in enumerate(lengths):
            step_ms = self._plan.fixed_ms + self._plan.per_row_ms * (len(lengths) - ended)
            now_ms += (tokens - done) * step_ms
            ends[tokens], done = now_ms, tokens
        return ends


def simulate(plan: Plan) -> Outcome:
    """Run one simulation.

    Args:
        plan: What is simulated; equal plans have equal outcomes.

    Returns:
        What the clients saw.
    """
    return _Simulation(plan).run()


def main() -> int:
    """Print a line for each number of clients."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", default="16,48", help="numbers, by commas (default: 16,48)")
    parser.add_argument("--answers-at-end", action="store_true", help="of each call")
    for name in ("workers", "max_rows", "fixed_ms", "per_row_ms"):
        default = Plan.__dataclass_fields__[name].default
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=type(default), default=default,
            help="(default: %(default)s)",
        )  # fmt: skip
    args = vars(parser.parse_args())
    for clients in map(int, args.pop("clients").split(",")):
        outcome = simulate(Plan(clients, **args))
        print(
            f"{clients} clients: {1000 * outcome.tokens / outcome.wall_ms:.0f} source tokens/s, "
            f"p50 {outcome.percentile_ms(50):.0f} ms, p95 {outcome.percentile_ms(95):.0f} ms, "
            f"{len(outcome.latencies_ms) / outcome.calls:.1f} rows a call"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
