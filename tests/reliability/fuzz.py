# SPDX-License-Identifier: Apache-2.0
"""The protocol fuzzer: generated requests, valid and not, against a live server.

Every valid request must get exactly its own right answer, known beforehand; every invalid one the
code and the words that the protocol promises for its mistake. A request is made from the seed and
its number alone, so any of them can be sent again.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ct2_triton.serve import TritonServer
from reliability import fuzz_damage, fuzz_grpc, fuzz_http, fuzz_judge, fuzz_mistakes
from reliability.fuzz_request import SERVED, Answer, encode, expected_answer, make_draft
from reliability.truths import DEFAULT_LENGTH, SHORT_INPUT, Case
from server import configs
from server.helpers import LANGUAGES
from support.repository import write_model, write_whole_lists

_KEPT_COMPLAINTS = 20
_LONGEST_BURST = 24
_TRANSPORTS = {"grpc": 30, "grpc typed": 15, "grpc stream": 15, "http": 40}


def write_fuzz_repository(repository: Path, engine_model: Path, decoding: str = "auto") -> None:
    """Writes the models of `SERVED`. They share one set of weights and so one pool of workers.

    Two of the languages have vocabulary lists, of all tokens.
    """
    length = {"max_decoding_length": DEFAULT_LENGTH, "decoding": decoding, "use_vmap": True}
    shared = {**length, "model_path": "../full/1/model"}
    more = configs.entry("output", "ALIGNMENTS", "TYPE_INT32", "[-1]")
    full = write_model(repository, "full", engine_model, configs.full(more=more, **length))
    write_whole_lists(full / "1" / "model", LANGUAGES[:2])
    texts = {
        "plain": configs.plain(max_input_length=SHORT_INPUT, **shared),
        "single": configs.full(more=more, batching="max_batch_size: 0\n", **shared),
        "wide": configs.full("TYPE_INT64", more, allowed_parameters=["x-*"], **shared),
    }
    for name, text in texts.items():
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "config.pbtxt").write_text(text, encoding="utf-8")


@dataclass
class Sent:
    """One request: how it goes, and what must come back."""

    number: int
    kind: str  # "valid", or the name of the mistake or damage
    transport: str
    message: Any
    answer: Answer
    model: str


@dataclass
class Report:
    """What a run found."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)  # (kind, transport)
    accepted: Counter[str] = field(default_factory=Counter)  # requests answered OK, by model
    complaints: list[str] = field(default_factory=list)
    wrong: int = 0

    def sent(self) -> int:
        """Number of requests."""
        return sum(self.counts.values())

    def of_kind(self, kind: str) -> int:
        """Number of requests of a kind."""
        return sum(count for (of, _), count in self.counts.items() if of == kind)


def make_request(seed: int, number: int, cases: Sequence[Case], *, loops: bool = True) -> Sent:
    """The request of this number. Equal seeds and cases give equal requests.

    `loops`: the models decode in loops, and so take a bias towards a draft.
    """
    chooser = random.Random(seed * 2**32 + number)
    draft = replace(make_draft(chooser, cases), loops=loops)
    model = draft.model.name
    luck = chooser.random()
    if luck >= 0.85 and draft.rows:
        return _damaged(number, chooser, draft)
    kind, request, answer = "valid", None, expected_answer(draft)
    if luck >= 0.55:
        mistake = chooser.choice(fuzz_mistakes.MISTAKES)
        kind = mistake.__name__
        request, answer = mistake(draft, chooser)
    request = request or encode(draft, chooser)
    (transport,) = chooser.choices(list(_TRANSPORTS), list(_TRANSPORTS.values()))
    if transport == "http":
        message: Any = fuzz_http.to_message(request, str(number), chooser)
    else:
        message = fuzz_grpc.to_message(request, str(number), transport == "grpc typed")
    return Sent(number, kind, transport, message, answer, model)


def _damaged(number: int, chooser: random.Random, draft: Any) -> Sent:
    request = encode(draft, chooser)
    message: Any
    if chooser.random() < 0.5:
        transport, message = "grpc", fuzz_grpc.to_message(request, str(number), False)
        damage = chooser.choice(fuzz_damage.GRPC_DAMAGES)
    else:
        transport = "http"
        message = fuzz_http.to_message(request, str(number), chooser, json_only=True)
        damage = chooser.choice(fuzz_damage.HTTP_DAMAGES)
    answer = damage(message, chooser) or expected_answer(draft)
    return Sent(number, damage.__name__, transport, message, answer, draft.model.name)


class Fuzzer:
    """Threads that make, send and judge requests."""

    def __init__(
        self, server: TritonServer, cases: Sequence[Case], seed: int, *, loops: bool = True
    ) -> None:
        self._server = server
        self._loops = loops
        self._cases = cases
        self._seed = seed
        self._lock = threading.Lock()
        self._numbers: Any = iter(())
        self._deadline = 0.0
        self.report = Report()

    def run(self, numbers: range, threads: int = 8, limit_s: float = 3600.0) -> Report:
        """Sends the requests of these numbers, and stops early when the time is up."""
        self._numbers = iter(numbers)
        self._deadline = time.monotonic() + limit_s
        workers = [threading.Thread(target=self._work, args=(i,)) for i in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if not self._server.is_alive():
            self._complain(self._server.failure_text())
        return self.report

    def _work(self, index: int) -> None:
        try:
            self._send_bursts(random.Random(self._seed + index))
        except Exception as error:
            self._complain(f"seed {self._seed}: a client's thread ended: {error!r}")

    def _send_bursts(self, bursts: random.Random) -> None:
        with (
            closing(fuzz_grpc.GrpcSender(self._server.grpc_url)) as grpc_sender,
            closing(fuzz_http.HttpSender(self._server.http_url)) as http_sender,
        ):
            while burst := self._take(bursts.randint(1, _LONGEST_BURST)):
                numbers = [sent.number for sent in burst]
                try:
                    for sent, reply in _exchange(burst, grpc_sender, http_sender):
                        self._judge(sent, reply)
                except Exception as error:
                    self._complain(f"seed {self._seed} requests {numbers}: {error!r}")
                    http_sender.close()

    def _take(self, most: int) -> list[Sent]:
        if time.monotonic() > self._deadline or not self._server.is_alive():
            return []
        with self._lock:
            numbers = list(itertools.islice(self._numbers, most))
        make = partial(make_request, self._seed, cases=self._cases, loops=self._loops)
        return [make(number) for number in numbers]

    def _judge(self, sent: Sent, reply: fuzz_judge.Reply) -> None:
        found = fuzz_judge.complaint(sent.answer, reply)
        if found:
            how = f"({sent.kind}, {sent.transport}, model {sent.model})"
            self._complain(f"seed {self._seed} request {sent.number} {how}: {found[:500]}")
        with self._lock:
            self.report.counts[sent.kind, sent.transport] += 1
            self.report.accepted[sent.model] += reply.code == "OK"

    def _complain(self, text: str) -> None:
        with self._lock:
            self.report.wrong += 1
            if len(self.report.complaints) < _KEPT_COMPLAINTS:
                self.report.complaints.append(text)


def _exchange(
    burst: Sequence[Sent], grpc_sender: fuzz_grpc.GrpcSender, http_sender: fuzz_http.HttpSender
) -> list[tuple[Sent, fuzz_judge.Reply]]:
    """Sends a burst: gRPC requests all at once, HTTP ones one after the other."""
    unary = [sent for sent in burst if sent.transport in {"grpc", "grpc typed"}]
    stream = [sent for sent in burst if sent.transport == "grpc stream"]
    done = list(
        zip(unary, grpc_sender.send_together([sent.message for sent in unary]), strict=True)
    )
    if stream:
        replies = grpc_sender.send_as_stream([sent.message for sent in stream])
        done += zip(stream, replies, strict=True)
    for sent in burst:
        if sent.transport == "http":
            done.append((sent, http_sender.send(sent.message)))
    return done


def served_counts(server: TritonServer) -> dict[str, int]:
    """Requests that the server counts as successes, by model."""
    import tritonclient.grpc as grpc_client

    client = grpc_client.InferenceServerClient(server.grpc_url)
    try:
        return {
            model.name: int(
                client.get_inference_statistics(model.name)
                .model_stats[0]
                .inference_stats.success.count
            )
            for model in SERVED
        }
    finally:
        client.close()
