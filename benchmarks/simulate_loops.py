# SPDX-License-Identifier: Apache-2.0
"""Predicts throughput and latency of decode loops from what a step and an encoding cost.

Streams in a closed loop send each sentence to all models. Threads pick up loops as
`backend/src/queue/scheduler.cc` and `loop_work.cc` do, and idle ones encode sentences or help; the
backend itself decides how many rows join and how many loops they get. A step of n rows costs
`fixed + per_row * n`, and an encoding of n tokens `fixed + per_token * n`. Loops that step at the
same time share the memory bandwidth, so each step takes at least `shared` times their number.
measure_loops.py measures these numbers and compares predictions with measurements.

    python benchmarks/simulate_loops.py --streams 4,16,48
    python benchmarks/simulate_loops.py --streams 4,12 --models 4
    python benchmarks/simulate_loops.py --table 2:0.1,16:0.1,64:0.1 --p95-ms 300
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import math
import random
from collections import deque
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from ct2_triton import _core
from ct2_triton.bench.record import percentile
from random_rows import draw_length

if TYPE_CHECKING:
    from collections.abc import Callable

_FOR_EVER = 10**6


@dataclass(frozen=True)
class Costs:
    """What a loop's work takes, on one thread.

    Attributes:
        step_ms: Of a step, whatever the rows.
        row_ms: Of a step, for each row.
        encode_ms: Of an encoding, whatever the tokens.
        token_ms: Of an encoding, for each token.
        shared_ms: Of a step, what the machine's memory takes to read the weights once.
        not_shared: Part of a step or an encoding that helping threads do not share.
        team: Threads of a step or an encoding, at most.
    """

    step_ms: float = 0.46
    row_ms: float = 0.13
    encode_ms: float = 0.8
    token_ms: float = 0.06
    shared_ms: float = 0.0
    not_shared: float = 0.25
    team: int = 8

    def fixed_ms(self, loops: int) -> float:
        """Of a step, without its rows, while `loops` loops step at the same time."""
        return max(self.step_ms, loops * self.shared_ms)

    def part(self, threads: float) -> float:
        """Of the time of one thread, what so many need, on average."""
        return self.not_shared + (1 - self.not_shared) / min(threads, self.team)

    def step_times(self, threads: int) -> list[tuple[int, float, float]]:
        """What the backend measures when it loads the model: see `_core.loops_for`."""
        return [(n, self.fixed_ms(n) + self.row_ms, self.row_ms) for n in range(1, threads + 1)]


@dataclass(frozen=True)
class Plan:
    """What is simulated.

    Attributes:
        streams: Each sends its next sentence when all models have answered the last.
        models: That have files of their own.
        costs: Of each model.
        threads: That decode.
        client_ms: From the last answer to the next sentence of a stream.
        encode_tokens: Of rows that join between two steps.
        rows: When to stop.
        seed: Chooses the lengths.
    """

    streams: int
    models: int = 1
    costs: Costs = field(default_factory=Costs)
    threads: int = 2
    client_ms: float = 0.2
    encode_tokens: int = 150
    rows: int = 8000
    seed: int = 1


@dataclass
class Outcome:
    """What the clients saw.

    Attributes:
        tokens: Source tokens, as many as were generated.
        steps: Of all loops.
        step_rows: Rows of these steps.
        most_loops: That one model had at a time.
        wall_ms: Until the last answer.
        latencies_ms: Of each row.
        first_tokens_ms: From sending a row to its first token.
    """

    tokens: int = 0
    steps: int = 0
    step_rows: int = 0
    most_loops: int = 0
    wall_ms: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)
    first_tokens_ms: list[float] = field(default_factory=list)

    @property
    def tokens_per_s(self) -> float:
        """Source tokens a second."""
        return 1000 * self.tokens / self.wall_ms


@dataclass
class _Sentence:
    tokens: int
    sent_ms: float
    open: int  # models that have not answered


@dataclass
class _Row:
    sentence: _Sentence
    left: int  # steps until it ends
    started: bool = False


@dataclass
class _Loop:
    rows: list[_Row] = field(default_factory=list)
    known: int = 0  # rows at its last step
    busy: bool = False
    admits: bool = True
    lanes: int = 1
    last_turn: int = 0
    step_ms: float = 0.0  # of its last step
    steps_held: int = 0


class _Model:
    """Waiting rows and loops, as LoopWork has them."""

    def __init__(self, loops: int, worth: list[int]) -> None:
        self.waiting: deque[_Row] = deque()
        self.encoded: deque[_Row] = deque()  # beside the loops
        self.encoding = 0  # rows
        self._worth = worth  # loops for each number of rows
        self.loops = [_Loop() for _ in range(loops)]
        self.turn_ms = 0.0
        self.active = False
        self._turns = itertools.count(1)

    def has_work(self) -> bool:
        return bool(self.waiting or self.encoding or self.encoded or self.used())

    def used(self) -> int:
        return sum(loop.busy or loop.known > 0 for loop in self.loops)

    def _worth_loops(self, more: float = 1) -> int:
        rows = len(self.waiting) + self.encoding + len(self.encoded)
        rows += sum(len(loop.rows) for loop in self.loops)
        return self._worth[min(int(rows * more), len(self._worth) - 1)]

    def claim(self, lanes: int, *, spare: bool) -> _Loop | None:
        """Return the loop that has waited longest, or else a new loop for waiting rows."""
        running = [loop for loop in self.loops if not loop.busy and loop.known]
        if running:
            return self._claim_loop(min(running, key=lambda loop: loop.last_turn), lanes)
        free = [loop for loop in self.loops if not loop.busy]
        used = self.used()
        if not (self.waiting or self.encoded) or not free or (used >= lanes and not spare):
            return None
        if used and used >= self._worth_loops():
            return None
        return self._claim_loop(free[0], max(lanes, used + 1))

    def _claim_loop(self, loop: _Loop, lanes: int) -> _Loop:
        loop.busy, loop.last_turn = True, next(self._turns)
        kept = min(self.used(), self._worth_loops(1.25))
        loop.lanes = min(lanes, len(self.loops), max(kept, self._worth_loops()))
        order = sorted(self.loops, key=lambda other: -other.known)
        loop.admits = loop in order[: loop.lanes]
        return loop

    def admit(self, loop: _Loop, encode_tokens: int, now_ms: float) -> int:
        """Let rows join; give the tokens that are encoded."""
        if not loop.admits or not (self.waiting or self.encoded):
            return 0
        room = self._room(loop, now_ms)
        if self.encoded:
            while room and self.encoded:
                room -= 1
                loop.rows.append(self.encoded.popleft())
            return 0
        tokens = 0
        while room and self.waiting:
            row_tokens = self.waiting[0].sentence.tokens
            if tokens and tokens + row_tokens > encode_tokens:
                break
            tokens += row_tokens
            room -= 1
            loop.rows.append(self.waiting.popleft())
        return tokens

    def _room(self, loop: _Loop, now_ms: float) -> int:
        """Rows that join now; those that are encoded never wait."""
        state = {
            "rows": len(loop.rows), "sequences": len(loop.rows), "lanes": loop.lanes,
            "all_sequences": sum(other.known for other in self.loops),
        }  # fmt: skip
        waiting = len(self.waiting) + len(self.encoded)
        steps_waited = math.inf
        if loop.step_ms and not self.encoded:
            steps_waited = (now_ms - self.waiting[0].sentence.sent_ms) / loop.step_ms
        room = _core.sequences_to_admit(
            waiting, **state, steps_waited=steps_waited, steps_held=loop.steps_held
        )
        rest = {"steps_waited": math.inf, "steps_held": _FOR_EVER}
        held = room == 0 and _core.sequences_to_admit(waiting, **state, **rest) > 0
        loop.steps_held = loop.steps_held + 1 if held else 0
        return room


class _Simulation:
    """Events in order of time: a sentence is sent, a thread has run a step."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._random = random.Random(plan.seed)
        self._now_ms = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()  # of the events: those of one time in order
        times = plan.costs.step_times(plan.threads)
        rows = [max(1, n) for n in range(plan.streams * 2)]
        help_of = {"cores": plan.threads, "threads": plan.costs.team}
        worth = _core.loops_for(rows, times, plan.threads, **help_of)
        self._models = [_Model(plan.threads, worth) for _ in range(plan.models)]
        self._idle = plan.threads
        self._outcome = Outcome()

    def run(self) -> Outcome:
        for _ in range(self._plan.streams):
            self._send(self._random.random())
        while len(self._outcome.latencies_ms) < self._plan.rows:
            self._now_ms, _, happen = heapq.heappop(self._events)
            happen()
            self._start_threads()
        self._outcome.wall_ms = self._now_ms
        return self._outcome

    def _at(self, time_ms: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time_ms, next(self._numbers), happen))

    def _send(self, time_ms: float) -> None:
        tokens = draw_length(self._random)
        self._at(time_ms, partial(self._enqueue, _Sentence(tokens, time_ms, self._plan.models)))

    def _enqueue(self, sentence: _Sentence) -> None:
        for model in self._models:
            model.waiting.append(_Row(sentence, sentence.tokens))

    def _start_threads(self) -> None:
        while self._idle:
            claimed = self._claim()
            if claimed is None:
                return
            self._idle -= 1
            model, loop = claimed
            if loop is None:
                self._encode(model)
            else:
                self._start(model, loop)

    def _claim(self) -> tuple[_Model, _Loop | None] | None:
        """A loop that steps next, or a model of which a sentence is encoded.

        Models share time fairly; an idle model earns no time for later.
        """
        least_ms = min((model.turn_ms for model in self._models if model.active), default=0.0)
        for model in self._models:
            was_active, model.active = model.active, model.has_work()
            if model.active and not was_active:
                model.turn_ms = max(model.turn_ms, least_ms)
        in_turn = sorted((m for m in self._models if m.active), key=lambda model: model.turn_ms)
        lanes = max(1, self._plan.threads // max(1, len(in_turn)))
        for spare in (False, True):
            for model in in_turn:
                loop = model.claim(lanes, spare=spare)
                if loop is not None or (spare and model.waiting and model.used()):
                    return model, loop
        return None

    def _encode(self, model: _Model) -> None:
        """Encode a waiting sentence beside the loops."""
        row = model.waiting.popleft()
        model.encoding += 1
        took_ms = self._encoding_ms(row.sentence.tokens)
        self._at(self._now_ms + took_ms, partial(self._end_encoding, model, row, took_ms))

    def _part(self) -> float:
        """Of the time of one thread, what a task takes that idle threads help with."""
        busy = self._plan.threads - self._idle
        return self._plan.costs.part(1 + self._idle / busy)

    def _encoding_ms(self, tokens: int) -> float:
        costs = self._plan.costs
        return self._part() * (costs.encode_ms + costs.token_ms * tokens)

    def _step_ms(self, rows: int) -> float:
        """Memory delivers the weights to all loops in turn."""
        costs = self._plan.costs
        loops = sum(loop.busy for model in self._models for loop in model.loops)
        read_ms = loops * costs.shared_ms
        return max(self._part() * costs.step_ms, read_ms) + self._part() * costs.row_ms * rows

    def _end_encoding(self, model: _Model, row: _Row, took_ms: float) -> None:
        model.encoding -= 1
        model.encoded.append(row)
        model.turn_ms += took_ms
        self._idle += 1

    def _start(self, model: _Model, loop: _Loop) -> None:
        tokens = model.admit(loop, self._plan.encode_tokens, self._now_ms)
        took_ms = self._encoding_ms(tokens) if tokens else 0.0
        if loop.rows:
            loop.step_ms = self._step_ms(len(loop.rows))
            took_ms += loop.step_ms
            self._outcome.most_loops = max(self._outcome.most_loops, model.used())
            self._outcome.steps += 1
            self._outcome.step_rows += len(loop.rows)
        self._at(self._now_ms + took_ms, partial(self._end, model, loop, took_ms))

    def _end(self, model: _Model, loop: _Loop, took_ms: float) -> None:
        for row in loop.rows:
            if not row.started:
                self._outcome.first_tokens_ms.append(self._now_ms - row.sentence.sent_ms)
            row.started = True
            row.left -= 1
            if row.left == 0:
                self._answer(row.sentence)
        loop.rows = [row for row in loop.rows if row.left]
        loop.known, loop.busy = len(loop.rows), False
        model.turn_ms += took_ms
        self._idle += 1

    def _answer(self, sentence: _Sentence) -> None:
        self._outcome.tokens += sentence.tokens
        self._outcome.latencies_ms.append(self._now_ms - sentence.sent_ms)
        sentence.open -= 1
        if sentence.open == 0:
            self._send(self._now_ms + self._plan.client_ms)


def simulate(plan: Plan) -> Outcome:
    """Run one simulation.

    Args:
        plan: What is simulated; equal plans have equal outcomes.

    Returns:
        What the clients saw.
    """
    return _Simulation(plan).run()


def most_streams(plan: Plan, p95_ms: float) -> int:
    """Find how many streams a machine serves.

    Args:
        plan: Of which all but the streams is taken; its rows are of one stream.
        p95_ms: What the 95th percentile of the latencies may be.

    Returns:
        The largest number of streams up to 1000 that keeps it; 0 where one does not.
    """

    def fits(streams: int) -> bool:
        outcome = simulate(replace(plan, streams=streams, rows=plan.rows * streams * plan.models))
        return percentile(outcome.latencies_ms, 0.95) <= p95_ms

    fewest, beyond = 0, 1001
    while beyond - fewest > max(1, fewest // 50):
        streams = min(2 * fewest + 1, (fewest + beyond) // 2)
        fewest, beyond = (streams, beyond) if fits(streams) else (fewest, streams)
    return fewest


def _print_table(machines: str, costs: Costs, p95_ms: float) -> None:
    """Print how many streams each machine serves: `cores:shared ms`, comma-separated."""
    print("| cores | models | streams | per core |")
    print("|---:|---:|---:|---:|")
    for machine in machines.split(","):
        cores, _, shared = machine.partition(":")
        for models in (1, 8):
            of_machine = replace(costs, shared_ms=float(shared or 0))
            plan = Plan(1, models, of_machine, int(cores), rows=8)
            streams = most_streams(plan, p95_ms)
            print(f"| {cores} | {models} | {streams} | {streams / int(cores):.1f} |", flush=True)


def main() -> int:
    """Print a line for each number of streams."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", default="4,16,48", help="numbers (default: %(default)s)")
    parser.add_argument("--models", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--cores", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--table", help="machines, as cores:shared-ms: how many streams they serve")
    parser.add_argument("--p95-ms", type=float, default=300, help="default: %(default)s")
    for name, one in Costs.__dataclass_fields__.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=float, default=one.default, help="default: %(default)s")
    args = parser.parse_args()
    costs = Costs(**{name: getattr(args, name) for name in Costs.__dataclass_fields__})
    if args.table:
        _print_table(args.table, costs, args.p95_ms)
        return 0
    for streams in map(int, args.streams.split(",")):
        outcome = simulate(Plan(streams, args.models, costs, args.cores))
        print(
            f"{streams} streams, {args.models} models: {outcome.tokens_per_s:.0f} source tokens/s, "
            f"p50 {percentile(outcome.latencies_ms, 0.5):.0f} ms, "
            f"p95 {percentile(outcome.latencies_ms, 0.95):.0f} ms, first token p95 "
            f"{percentile(outcome.first_tokens_ms, 0.95):.1f} ms, "
            f"{outcome.step_rows / outcome.steps:.1f} rows a step, "
            f"at most {outcome.most_loops} loops of a model"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
