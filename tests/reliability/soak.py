# SPDX-License-Identifier: Apache-2.0
"""Requests of ever new shapes for a long time, and what stays resident meanwhile."""

from __future__ import annotations

import math
import random
import threading
import time
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from ct2_triton.serve import TritonServer
from reliability import observe
from server.helpers import END, LANGUAGES, Connection, Ids, Reference, padded, sentences
from support.waiting import wait_until

_CLIENTS = 4
_LONGEST = 500  # tokens; the model has 512 positions
_ROWS = (1, 1, 1, 1, 2, 3, 8, 24)
_SHORT = {"max_decoding_length": 8}
_OUTPUTS = ("OUTPUT_LENGTHS", "HYPOTHESES", "HYPOTHESIS_LENGTHS", "SCORES", "FINISH_REASON")


@dataclass
class SoakReport:
    """What was sent, what was wrong, and the server's resident memory."""

    requests: int = 0
    rows: int = 0
    wrong: list[str] = field(default_factory=list)
    resident: list[tuple[float, float]] = field(default_factory=list)  # seconds, MiB
    fresh_mib: float = 0.0  # before the load, the model loaded
    trimmed_mib: float = 0.0  # after the load, once the model was unloaded and loaded again

    def median_mib(self, start: float, end: float) -> float:
        """The median between two shares of the time."""
        last = self.resident[-1][0]
        return median(mib for t, mib in self.resident if start * last <= t <= end * last)

    @property
    def warm_mib(self) -> float:
        """After a warm-up of a fifth of the time."""
        return self.median_mib(0.2, 0.3)

    @property
    def end_mib(self) -> float:
        """At the end."""
        return self.median_mib(0.9, 1.0)

    @property
    def growth(self) -> float:
        """From after the warm-up to the end, as a share."""
        return self.end_mib / self.warm_mib - 1


class Soak:
    """Clients whose requests differ in everything that takes memory."""

    def __init__(self, server: TritonServer, model: str, reference: Reference, seed: int) -> None:
        self._server = server
        self._model = model
        self._seed = seed
        self._languages = [reference.id(language) for language in LANGUAGES]
        self._english = reference.id("eng_Latn")
        self._known = [
            (row, prefix, reference.translate(row, prefix, **_SHORT))
            for row, prefix in sentences(reference, 32)
        ]
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self.report = SoakReport()

    def run(self, seconds: float = math.inf, requests: float = math.inf) -> SoakReport:
        """Sends requests for so long, or so many; the model is loaded again at the end."""
        connection = Connection(self._server.grpc_url)
        self._ask_known(connection, random.Random(self._seed))
        self.report.fresh_mib = observe.resident_mib(self._server)
        clients = [threading.Thread(target=self._work, args=(i,)) for i in range(_CLIENTS)]
        for client in clients:
            client.start()
        try:
            started = time.monotonic()
            while time.monotonic() < started + seconds and self.report.requests < requests:
                time.sleep(0.5)
                now = time.monotonic() - started
                self.report.resident.append((now, observe.resident_mib(self._server)))
        finally:
            self._stop.set()
            for client in clients:
                client.join()
        connection.raw.unload_model(self._model)
        wait_until(lambda: not connection.raw.is_model_ready(self._model), "the unload")
        connection.raw.load_model(self._model)
        self._ask_known(connection, random.Random(self._seed))
        self.report.trimmed_mib = observe.resting_mib(self._server)
        connection.close()
        return self.report

    def _work(self, client: int) -> None:
        chooser = random.Random(self._seed + client)
        connection = Connection(self._server.grpc_url)
        while not self._stop.is_set():
            ask = chooser.choice((self._ask_any, self._ask_any, self._ask_any, self._ask_known))
            if chooser.random() < 0.1:
                ask = self._ask_in_vain
            try:
                ask(connection, chooser)
            except Exception as error:
                self._complain(f"client {client}, {ask.__name__}: {error!r}")
        connection.close()

    def _complain(self, text: str) -> None:
        with self._lock:
            self.report.wrong.append(text)

    def _count(self, rows: int) -> None:
        with self._lock:
            self.report.requests += 1
            self.report.rows += rows

    def _ask_known(self, connection: Connection, chooser: random.Random) -> None:
        row, prefix, expected = chooser.choice(self._known)
        answer = connection.translate(self._model, row, prefix, **_SHORT)
        self._count(1)
        if answer != expected:
            self._complain(f"expected {expected}, got {answer}")

    def _ask_in_vain(self, connection: Connection, chooser: random.Random) -> None:
        """What is refused takes another way through the backend."""
        row = [*self._row(chooser), 10**6]
        connection.refusal(self._model, [row], [[self._languages[0]]])
        self._count(0)

    def _ask_any(self, connection: Connection, chooser: random.Random) -> None:
        rows = [self._row(chooser) for _ in range(chooser.choice(_ROWS))]
        beam = chooser.choice((1, 1, 2, 2, 3, 5, 8))
        options: dict[str, Any] = {
            "beam_size": beam,
            "num_hypotheses": chooser.randint(1, beam),
            "max_decoding_length": round(2 ** chooser.uniform(0, 7)),
        }
        answer = connection.infer(
            self._model,
            padded(rows),
            [[chooser.choice(self._languages)] for _ in rows],
            outputs=["OUTPUT_IDS", *chooser.sample(_OUTPUTS, chooser.randint(0, len(_OUTPUTS)))],
            more={"INPUT_LENGTHS": [[len(row)] for row in rows]},
            **options,
        )
        self._count(len(rows))
        if any(len(values) != len(rows) for values in answer.values()):
            self._complain(f"{len(rows)} rows, {options}: {answer}")

    def _row(self, chooser: random.Random) -> Ids:
        length = round(math.exp(chooser.uniform(0, math.log(_LONGEST - 2))))
        return [self._english, *(chooser.randrange(4, 1100) for _ in range(length)), END]
