# SPDX-License-Identifier: Apache-2.0
"""Ten times what the server can do, for a while: closed loop, and open loop with a queue limit.

A closed loop waits for answers before it asks again; an open one asks at its own rate, as a crowd
of independent clients does, and so needs a limit on what may wait.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from ct2_triton.serve import TritonServer
from reliability import fuzz_grpc, observe
from reliability.cancel_storm import id_tensors
from reliability.fuzz_request import Request
from reliability.truths import LEAST_GAP, gap
from server import configs
from server.helpers import Ids, Reference, sentences
from support.repository import write_model
from support.servers import suspended
from support.waiting import wait_until

# About 10 ms of one core for a row, so that a Python client can offer ten times as much.
WORK: dict[str, Any] = {"beam_size": 1, "max_decoding_length": 200, "min_decoding_length": 200}

# As many on any machine: one client process must be able to offer ten times what they can do.
WORKERS = {"inter_threads": 2}
CLIENTS_FOR_ALL = 32  # keep them busy
UNLIMITED, LIMITED = "unlimited", "limited"
# What may wait is what Triton's queue holds, plus the rows that the backend has taken from it.
MOST_WAITING = 64
_LIMITED_BATCHING = (
    "max_batch_size: 256\ndynamic_batching { default_queue_policy { "
    f"max_queue_size: {MOST_WAITING} }} }}\n"
)


def write_overload_repository(repository: Path, engine_model: Path, decoding: str = "auto") -> None:
    """Writes a model without any limit on what waits, and one with."""
    settings = {**WORKERS, "decoding": decoding}
    write_model(repository, UNLIMITED, engine_model, configs.plain(**settings))
    write_model(repository, LIMITED, engine_model, limited_config(**settings))


def limited_config(**settings: Any) -> str:
    """The config.pbtxt of a model of which few requests may wait."""
    return configs.plain(batching=_LIMITED_BATCHING, max_queued_rows=MOST_WAITING, **settings)


@dataclass
class LoadReport:
    """What was offered, what came back, and what it cost."""

    offered: int = 0
    answered: Counter[str] = field(default_factory=Counter)  # by status
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0
    start_mib: float = 0.0
    peak_mib: float = 0.0
    end_mib: float = 0.0
    most_in_flight: int = 0

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.answered["OK"] / self.seconds


def distinct_rows(reference: Reference, count: int) -> list[tuple[Ids, Ids, Ids]]:
    """Rows with their answers; all differ, because equal rows that wait run once."""
    rows = sentences(reference, count, seed=11)
    solved = []
    for start in range(0, count, 32):
        together = rows[start : start + 32]
        results = reference.run_together(together, return_logits_vocab=True, **WORK)
        for (row, prefix), result in zip(together, results, strict=True):
            # Where two tokens tie, rounding decides, and with it the company in the call.
            if all(gap(np.array(step)) > LEAST_GAP for step in result.logits[0]):
                truth = [reference.id(token) for token in result.hypotheses[0]]
                solved.append((row, prefix, truth))
    return solved


class Load:
    """One client process that sends rows whose answers it knows, asynchronously."""

    def __init__(
        self, server: TritonServer, model: str, rows: Sequence[tuple[Ids, Ids, Ids]]
    ) -> None:
        self._server = server
        self._messages = []
        for row, prefix, truth in rows:
            request = Request(model, id_tensors(row, prefix), dict(WORK), ["OUTPUT_IDS"])
            self._messages.append((fuzz_grpc.to_message(request, "", typed=False), truth))
        self._lock = threading.Lock()
        self._in_flight = 0
        self._room = threading.Semaphore(0)
        self.report = LoadReport()

    def closed_loop(self, clients: int, seconds: float) -> LoadReport:
        """So many requests are always on their way."""

        def pace(_: int) -> None:
            self._room.acquire(timeout=600)

        return self._run(seconds, pace, clients)

    def open_loop(self, per_second: float, seconds: float) -> LoadReport:
        """Requests come at their own rate, whatever becomes of them."""
        started = time.monotonic()

        def pace(number: int) -> None:
            ahead = started + number / per_second - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)

        return self._run(seconds, pace)

    def burst(self, requests: int, refused: int, then: Callable[[], object]) -> LoadReport:
        """So many requests at once; `then` once as many have been refused."""
        report = self.report
        report.start_mib = observe.resident_mib(self._server)
        with fuzz_grpc.open_channel(self._server.grpc_url) as channel:
            for _ in range(requests):
                self._send(channel, report.offered)
                report.offered += 1
            wait_until(lambda: report.answered["UNAVAILABLE"] >= refused, f"{refused} refusals")
            then()
            wait_until(lambda: self._in_flight == 0, "all requests to be answered")
        report.peak_mib = report.end_mib = observe.resident_mib(self._server)
        return report

    def _run(self, seconds: float, pace: Any, at_once: int = 0) -> LoadReport:
        report = self.report
        report.start_mib = observe.resident_mib(self._server)
        with fuzz_grpc.open_channel(self._server.grpc_url) as channel:
            self._send_at_once(channel, at_once)
            started = time.monotonic()
            while time.monotonic() < started + seconds and not report.wrong:
                pace(report.offered)
                self._send(channel, report.offered)
                report.offered += 1
                if report.offered % 100 == 0:
                    report.peak_mib = max(report.peak_mib, observe.resident_mib(self._server))
            wait_until(lambda: self._in_flight == 0, "all requests to be answered")
        report.seconds = time.monotonic() - started
        report.end_mib = observe.resident_mib(self._server)
        return report

    def _send_at_once(self, channel: grpc.Channel, count: int) -> None:
        """The server is suspended meanwhile, and so answers none before all are sent."""
        with suspended(self._server):
            for _ in range(count):
                self._send(channel, self.report.offered)
                self.report.offered += 1

    def _send(self, channel: grpc.Channel, number: int) -> None:
        message, truth = self._messages[number % len(self._messages)]
        with self._lock:
            self._in_flight += 1
            self.report.most_in_flight = max(self.report.most_in_flight, self._in_flight)
        call = fuzz_grpc.stub(channel).ModelInfer.future(message, timeout=600)
        call.add_done_callback(lambda done: self._done(done, truth))

    def _done(self, call: Any, truth: Ids) -> None:
        reply = fuzz_grpc.reply_of(call)
        with self._lock:
            self._in_flight -= 1
            self.report.answered[reply.code] += 1
            if reply.code == "OK" and reply.outputs["OUTPUT_IDS"].tolist() != [truth]:
                self.report.wrong.append(f"expected {truth}, got {reply.outputs['OUTPUT_IDS']}")
            elif reply.code not in {"OK", "UNAVAILABLE"}:
                self.report.wrong.append(f"{reply.code} {reply.message}")
        self._room.release()
