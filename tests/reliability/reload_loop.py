# SPDX-License-Identifier: Apache-2.0
"""Loads, reloads and unloads a model again and again under traffic, beside one of two versions."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tritonclient.utils import InferenceServerException

from ct2_triton.serve import TritonServer
from reliability import observe
from server import configs
from server.helpers import Connection, Ids, Reference, sentences
from support.repository import write_model
from support.tiny import TinyOptions, tiny_engine_model
from support.waiting import wait_until

LOOP, STEADY = "loop", "steady"
_LIMIT = {"max_decoding_length": 8}
_ROWS = 16
_UNLOAD_EVERY = 4  # rounds
_ANSWERS_PER_ROUND = 10
_WORKERS = {"inter_threads": 2}  # memory and threads are those of two, however many cores there are


def large_models() -> list[Path]:
    """Two models with the same vocabulary, other weights, large enough to be seen in memory."""
    sizes = TinyOptions(vocab_size=40_000, d_model=128)
    return [tiny_engine_model("nllb", sizes), tiny_engine_model("nllb", replace(sizes, layers=1))]


def write_reload_repository(
    repository: Path, engine_models: Sequence[Path], decoding: str = "auto"
) -> None:
    """Writes the model that is reloaded, and one whose versions 1 and 2 are left alone."""
    settings = {**_WORKERS, "decoding": decoding}
    write_model(repository, LOOP, engine_models[0], configs.plain(**settings))
    all_versions = configs.plain("version_policy { all {} }", **settings)
    folder = write_model(repository, STEADY, engine_models[0], all_versions)
    shutil.copytree(engine_models[1], folder / "2" / "model")


@dataclass
class ReloadReport:
    """What happened in all rounds; memory is that of a moment with all models loaded."""

    rounds: int = 0
    answered: Counter[str] = field(default_factory=Counter)  # by model; "gone": while unloaded
    wrong: list[str] = field(default_factory=list)
    resident_mib: list[float] = field(default_factory=list)  # after each round
    threads: list[int] = field(default_factory=list)  # after each round

    def growth_mib(self) -> float:
        """How much more is resident at the end than after the first fifth of the rounds."""
        fifth = max(1, len(self.resident_mib) // 5)
        early = sorted(self.resident_mib[fifth : 2 * fifth])[fifth // 2]
        late = sorted(self.resident_mib[-fifth:])[fifth // 2]
        return late - early


class ReloadLoop:
    """The operator who reloads, and four clients."""

    def __init__(
        self, server: TritonServer, repository: Path, engine_models: Sequence[Path]
    ) -> None:
        self._server = server
        self._files = repository / LOOP / "1" / "model"
        self._engine_models = engine_models
        references = [Reference(folder) for folder in engine_models]
        self._rows = sentences(references[0], _ROWS)
        self._truths = [
            [reference.translate(row, prefix, **_LIMIT) for row, prefix in self._rows]
            for reference in references
        ]
        self._lock = threading.Lock()
        self._current: set[int] = {0}  # the weights that may answer a request sent now
        self._gone = False
        self._stop = threading.Event()
        self.report = ReloadReport()

    def run(self, rounds: int) -> ReloadReport:
        """Does so many loads under traffic."""
        clients = [threading.Thread(target=self._ask, args=(i,)) for i in range(4)]
        for client in clients:
            client.start()
        operator = Connection(self._server.grpc_url)
        try:
            for number in range(rounds):
                self._round(operator, number)
        finally:
            self._stop.set()
            for client in clients:
                client.join()
            operator.close()
        return self.report

    def _round(self, operator: Connection, number: int) -> None:
        new = (number + 1) % len(self._engine_models)
        if number % _UNLOAD_EVERY == _UNLOAD_EVERY - 1:
            self._set(current=self._current, gone=True)
            operator.raw.unload_model(LOOP)
            wait_until(lambda: not operator.raw.is_model_ready(LOOP), "the unload")
        self._replace_files(self._engine_models[new])
        self._set(current=self._current | {new}, gone=self._gone)
        operator.raw.load_model(LOOP)
        self._set(current={new}, gone=False)
        wanted = self.report.answered[LOOP] + _ANSWERS_PER_ROUND
        wait_until(
            lambda: self.report.answered[LOOP] >= wanted or bool(self.report.wrong), "answers"
        )
        self.report.rounds += 1
        self.report.resident_mib.append(observe.resident_mib(self._server))
        self.report.threads.append(observe.thread_count(self._server))

    def _replace_files(self, engine_model: Path) -> None:
        """Puts new files in place of the old ones, which are not written to."""
        coming, going = self._files.with_name("coming"), self._files.with_name("going")
        shutil.copytree(engine_model, coming)
        self._files.rename(going)
        coming.rename(self._files)
        shutil.rmtree(going)

    def _set(self, *, current: set[int], gone: bool) -> None:
        with self._lock:
            self._current, self._gone = current, gone

    def _ask(self, client: int) -> None:
        connection = Connection(self._server.grpc_url)
        number = client
        while not self._stop.is_set():
            number += 1
            row, turn = number % _ROWS, number % 5
            if turn < 2:  # both versions of the model that is left alone
                answer = self._answer(connection, STEADY, row, version=str(turn + 1))
                self._judge(STEADY, row, answer, {turn}, gone=False)
            else:
                allowed, gone = self._expected()
                answer = self._answer(connection, LOOP, row)
                allowed_after, gone_after = self._expected()
                self._judge(LOOP, row, answer, allowed | allowed_after, gone=gone or gone_after)
        connection.close()

    def _expected(self) -> tuple[set[int], bool]:
        with self._lock:
            return self._current, self._gone

    def _answer(
        self, connection: Connection, model: str, row: int, version: str = ""
    ) -> Ids | Exception:
        ids, prefix = self._rows[row]
        try:
            return connection.translate(model, ids, prefix, version=version, **_LIMIT)
        except InferenceServerException as error:
            return error

    def _judge(
        self, model: str, row: int, answer: Ids | Exception, allowed: set[int], *, gone: bool
    ) -> None:
        with self._lock:
            if isinstance(answer, Exception):
                if gone and LOOP in str(answer):
                    self.report.answered["gone"] += 1
                else:
                    self.report.wrong.append(f"{model}: {answer}")
                return
            self.report.answered[model] += 1
            if answer not in [self._truths[weights][row] for weights in allowed]:
                self.report.wrong.append(f"{model}, row {row}: {answer}, weights {allowed}")
