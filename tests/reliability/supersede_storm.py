# SPDX-License-Identifier: Apache-2.0
"""Short requests that supersede each other over gRPC and HTTP; others must not notice."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tritonclient.utils import InferenceServerException

from ct2_triton.serve import TritonServer
from server.helpers import Connection, Ids, Reference, json_inputs, post, sentences

SUPERSEDED = "superseded by a newer request with the same supersede_key"
_SEARCHES: list[dict[str, Any]] = [{"beam_size": 1}, {"beam_size": 3}]
_LIMIT = {"max_decoding_length": 24}
_ROWS = 48
_AT_ONCE = 6  # requests of one key that follow each other without waiting


@dataclass
class StormReport:
    """What the clients saw."""

    answered: Counter[str] = field(default_factory=Counter)  # by transport and outcome
    wrong: list[str] = field(default_factory=list)


class SupersedeStorm:
    """Clients of a few keys over gRPC and HTTP, and clients without a key."""

    def __init__(
        self,
        server: TritonServer,
        model: str,
        reference: Reference,
        seed: int,
        *,
        drafts: bool = False,
    ) -> None:
        self._server = server
        self._drafts = drafts  # the model declares DRAFT_IDS
        self._model = model
        self._lock = threading.Lock()
        self._seed = seed
        self._cases: list[tuple[Ids, Ids, dict[str, Any], Ids]] = [
            (row, prefix, search, reference.translate(row, prefix, **search, **_LIMIT))
            for row, prefix in sentences(reference, _ROWS)
            for search in _SEARCHES
        ]
        self.report = StormReport()

    def run(self, seconds: float) -> StormReport:
        """Lets all clients work for so long."""
        ends = time.monotonic() + seconds
        # Three threads of a kind, two keys: requests of one key come from several clients.
        kinds = [self._grpc, self._http, self._without_key]
        threads = [
            threading.Thread(target=self._work, args=(kind, i, ends))
            for kind in kinds
            for i in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.report

    def _work(
        self, kind: Callable[[random.Random, Connection, str], None], number: int, ends: float
    ) -> None:
        chooser = random.Random(f"{self._seed} {kind.__name__} {number}")
        connection = Connection(self._server.grpc_url)
        try:
            while time.monotonic() < ends:
                kind(chooser, connection, f"speaker-{number % 2}")
        except Exception as error:
            with self._lock:
                self.report.wrong.append(f"{kind.__name__}: {error!r}")
        finally:
            connection.close()

    def _grpc(self, chooser: random.Random, connection: Connection, key: str) -> None:
        sent = []
        for _ in range(chooser.randint(1, _AT_ONCE)):
            row, prefix, search, truth = chooser.choice(self._cases)
            draft = self._draft(chooser, search, truth[len(prefix) :])
            options = {**search, **_LIMIT, **draft, "supersede_key": key}
            sent.append((connection.start(self._model, [row], [prefix], **options), truth))
            time.sleep(chooser.choice((0, 0, 0.001, 0.005)))
        for pending, truth in sent:
            try:
                got = pending.get_result().as_numpy("OUTPUT_IDS").tolist()
                self._note("grpc", "answered", got == [truth], f"{truth} {got}")
            except InferenceServerException as error:
                right = (error.status(), error.message()) == ("StatusCode.CANCELLED", SUPERSEDED)
                self._note("grpc", "superseded", right, str(error))

    def _http(self, chooser: random.Random, _: Connection, key: str) -> None:
        row, prefix, search, truth = chooser.choice(self._cases)
        status, reply = http_infer(
            self._server, self._model, row, prefix, **search, **_LIMIT, supersede_key=key
        )
        if status == 200:
            (output,) = (one for one in reply["outputs"] if one["name"] == "OUTPUT_IDS")
            self._note("http", "answered", output["data"] == truth, f"{truth} {output['data']}")
        else:
            # Triton 2.51 has no HTTP status for it: it says 400, later ones say 499.
            right = status in {400, 499} and reply == {"error": SUPERSEDED}
            self._note("http", "superseded", right, reply)

    def _without_key(self, chooser: random.Random, connection: Connection, _: str) -> None:
        row, prefix, search, truth = chooser.choice(self._cases)
        draft = self._draft(chooser, search, truth[len(prefix) :])
        answer = connection.infer(self._model, [row], [prefix], **search, **_LIMIT, **draft)
        [got] = answer["OUTPUT_IDS"].tolist()
        self._note("neighbour", "answered", got == truth, f"{truth} {got}")

    def _draft(self, chooser: random.Random, search: dict[str, Any], answer: Ids) -> dict[str, Any]:
        """A draft that leaves the answer as it is: any; with a bias, the right one."""
        if not self._drafts or search["beam_size"] > 1:
            return {}
        at = chooser.randint(0, len(answer))
        wrong = [*answer[:at], 9, *answer[at + 1 :]]
        favored = {"more": {"DRAFT_IDS": [answer]}, "draft_bias": 0.5}
        return chooser.choice([{}, {"more": {"DRAFT_IDS": [wrong]}}, favored if answer else {}])

    def _note(self, transport: str, outcome: str, right: bool, seen: Any) -> None:
        with self._lock:
            self.report.answered[f"{transport} {outcome}"] += 1
            if not right:
                self.report.wrong.append(f"{transport} {outcome}: {seen}")


def http_infer(
    server: TritonServer, model: str, row: Ids, prefix: Ids, **parameters: Any
) -> tuple[int, Any]:
    """Sends one row over HTTP; gives the status and the JSON of the answer."""
    inputs = json_inputs("INT32", {"INPUT_IDS": row, "TARGET_PREFIX": prefix})
    status, sent = post(server, f"{model}/infer", {"inputs": inputs, "parameters": parameters})
    return status, json.loads(sent)
