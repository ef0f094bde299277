# SPDX-License-Identifier: Apache-2.0
"""Clients that leave: cancelled calls, tiny deadlines, connections that break in every state."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc

from ct2_triton.serve import TritonServer
from reliability import fuzz_grpc
from reliability.fuzz_request import Request, Tensor
from reliability.post_mortem import ended_by_triton
from server.helpers import Ids, Reference, sentences
from support.waiting import wait_until

# Enough work that a client is gone before it is done.
_LONG = {"max_decoding_length": 300, "min_decoding_length": 300}
_SHORT = {"max_decoding_length": 8}
_ROWS = 64
_ROUND = 1000  # actions
_MOST_SERVERS = 5  # that Triton may end in a round


@dataclass
class StormReport:
    """What the clients saw."""

    did: Counter[str] = field(default_factory=Counter)  # by behaviour
    answered: Counter[str] = field(default_factory=Counter)  # by status
    requests: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, other: StormReport) -> None:
        """Counts what others saw as well."""
        self.did += other.did
        self.answered += other.answered
        self.requests += other.requests
        self.wrong += other.wrong


class CancelStorm:
    """Threads of clients that behave badly, among others that wait for their answers."""

    def __init__(
        self,
        server: TritonServer,
        model: str,
        reference: Reference,
        seed: int,
        *,
        streams: bool = False,
    ) -> None:
        self._server = server
        self._model = model
        self._seed = seed
        self._lock = threading.Lock()
        rows = sentences(reference, _ROWS)
        self._truths = [
            (row, prefix, reference.translate(row, prefix, **_SHORT)) for row, prefix in rows
        ]
        self.report = StormReport()
        self._behaviours: list[Callable[[random.Random], None]] = [
            self._wait,
            self._wait,
            self._cancel,
            self._tiny_deadline,
            self._close_channel,
            self._reset_http,
            self._reset_grpc,
        ]
        if streams:
            self._behaviours.append(self._cancel_stream)

    def run(self, actions: int, threads: int = 8) -> StormReport:
        """Lets every thread do its share of the actions."""
        workers = [
            threading.Thread(target=self._work, args=(self._seed + i, actions // threads))
            for i in range(threads)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return self.report

    def _work(self, seed: int, actions: int) -> None:
        chooser = random.Random(seed)
        for _ in range(actions):
            behave = chooser.choice(self._behaviours)
            try:
                behave(chooser)
            except Exception as error:
                self._complain(f"seed {seed}, {behave.__name__}: {error!r}")
            with self._lock:
                self.report.did[behave.__name__.strip("_")] += 1

    def _complain(self, text: str) -> None:
        with self._lock:
            self.report.wrong.append(text)

    def _message(self, chooser: random.Random, *, long: bool) -> tuple[Any, Ids]:
        row, prefix, truth = chooser.choice(self._truths)
        parameters: dict[str, Any] = dict(_LONG if long else _SHORT)
        if long:
            parameters["beam_size"] = chooser.choice((1, 1, 2))
        request = Request(self._model, id_tensors(row, prefix), parameters, ["OUTPUT_IDS"])
        with self._lock:
            self.report.requests += 1
        return fuzz_grpc.to_message(request, "", typed=False), truth

    def _call(self, channel: grpc.Channel, message: Any, timeout_s: float) -> Any:
        return fuzz_grpc.stub(channel).ModelInfer.future(message, timeout=timeout_s)

    def _note(self, call: Any, truth: Ids | None = None) -> None:
        """Counts how a call ended, and holds an answer against the truth."""
        reply = fuzz_grpc.reply_of(call)
        with self._lock:
            self.report.answered[reply.code] += 1
        if reply.code == "OK" and truth is not None:
            got = reply.outputs["OUTPUT_IDS"].tolist()
            if got != [truth]:
                self._complain(f"expected {truth}, got {got}")

    def _wait(self, chooser: random.Random) -> None:
        """A client that waits must get its own right answer."""
        message, truth = self._message(chooser, long=False)
        with fuzz_grpc.open_channel(self._server.grpc_url) as channel:
            call = self._call(channel, message, timeout_s=120)
            self._note(call, truth)
            if call.code() is not grpc.StatusCode.OK:
                self._complain(f"a client that waited got {call.code()}: {call.details()}")

    def _cancel(self, chooser: random.Random) -> None:
        with fuzz_grpc.open_channel(self._server.grpc_url) as channel:
            calls = [
                self._call(channel, self._message(chooser, long=True)[0], timeout_s=120)
                for _ in range(chooser.randint(1, 4))
            ]
            time.sleep(chooser.uniform(0, 0.03))
            for call in calls:
                call.cancel()
            for call in calls:
                self._note(call)

    def _tiny_deadline(self, chooser: random.Random) -> None:
        with fuzz_grpc.open_channel(self._server.grpc_url) as channel:
            message, truth = self._message(chooser, long=False)
            self._note(self._call(channel, message, chooser.uniform(0.001, 0.03)), truth)

    def _close_channel(self, chooser: random.Random) -> None:
        channel = fuzz_grpc.open_channel(self._server.grpc_url)
        calls = [self._call(channel, self._message(chooser, long=True)[0], 120) for _ in range(3)]
        time.sleep(chooser.uniform(0, 0.02))
        channel.close()
        for call in calls:
            self._note(call)

    def _cancel_stream(self, chooser: random.Random) -> None:
        """What tritonserver 2.51 does not survive for ever, whatever the backend.

        Its handler of ModelStreamInfer frees the state of a cancelled request while the thread
        that brings the response still writes to it, and forgets connections. See
        benchmarks/reliability.md. All other clients here make unary calls, as ours does.
        """
        messages = [
            self._message(chooser, long=chooser.random() < 0.5)[0]
            for _ in range(chooser.randint(1, 8))
        ]
        with fuzz_grpc.open_channel(self._server.grpc_url) as channel:
            stream = fuzz_grpc.stub(channel).ModelStreamInfer(iter(messages), timeout=600)
            time.sleep(chooser.uniform(0, 0.03))
            stream.cancel()
            with contextlib.suppress(grpc.RpcError):
                for _ in stream:
                    pass

    def _reset_http(self, chooser: random.Random) -> None:
        """A request, whole or cut anywhere, and then the connection is reset."""
        row, prefix, _ = chooser.choice(self._truths)
        data = http_request(self._model, row, prefix, beam_size=1, **_LONG)
        whole = chooser.random() < 0.5
        with self._lock:
            self.report.requests += whole
        send_and_reset(
            self._server.ports.http,
            data if whole else data[: chooser.randrange(1, len(data))],
            chooser.uniform(0, 0.01),
        )

    def _reset_grpc(self, chooser: random.Random) -> None:
        """What is no HTTP/2, or breaks off early."""
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        noise = chooser.randbytes(chooser.randint(1, 2000))
        data = chooser.choice((preface + noise, noise, preface, preface[:7]))
        send_and_reset(self._server.ports.grpc, data, chooser.uniform(0, 0.01))


@dataclass
class Storm:
    """What is left after a storm."""

    server: TritonServer
    report: StormReport  # of the clients of this server
    ended: int = 0  # servers that Triton itself ended before


def run_storm(
    start: Callable[[], TritonServer],
    model: str,
    reference: Reference,
    seed: int,
    actions: int,
    on_end: Callable[[TritonServer], object] = lambda _: None,
) -> Storm:
    """Runs a storm in rounds; where Triton itself ends the server, the round is repeated.

    `on_end` is called with each server that ended.
    """
    rounds = max(1, actions // _ROUND)
    storm = Storm(start(), StormReport())
    done = 0
    while done < rounds:
        attempt = CancelStorm(storm.server, model, reference, seed + 100 * (done + storm.ended))
        report = attempt.run(actions // rounds)
        if _is_alive(storm.server):
            storm.report.add(report)
            done += 1
            continue
        on_end(storm.server)
        if not ended_by_triton(storm.server.log_text()):
            storm.report.add(report)
            return storm
        mixed_up = [text for text in report.wrong if text.startswith("expected")]
        assert not mixed_up, mixed_up[:5]
        assert storm.ended < _MOST_SERVERS * rounds, f"Triton ended {storm.ended + 1} servers"
        storm = Storm(start(), StormReport(), storm.ended + 1)
    return storm


def _is_alive(server: TritonServer) -> bool:
    if "Signal (" in server.log_text():  # it answers while it writes its stack
        wait_until(lambda: not server.is_alive(), "the end after a signal")
    return server.is_alive()


def send_and_reset(port: int, data: bytes, after_s: float) -> None:
    """Sends bytes over a connection of their own, and resets it."""
    with sent_and_reset(port, data):
        time.sleep(after_s)


@contextlib.contextmanager
def sent_and_reset(port: int, data: bytes) -> Iterator[None]:
    """Sends bytes over a connection of their own, and resets it at the end of the block."""
    with socket.create_connection(("127.0.0.1", port), timeout=600) as wire:
        with contextlib.suppress(OSError):
            wire.sendall(data)
        yield
        # Linger of 0 seconds: close sends a reset.
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def http_request(model: str, row: Ids, prefix: Ids, **parameters: Any) -> bytes:
    """One row as a whole HTTP request."""
    inputs = [
        {"name": t.name, "datatype": t.datatype, "shape": t.shape, "data": t.data.tolist()}
        for t in id_tensors(row, prefix)
    ]
    body = json.dumps({"inputs": inputs, "parameters": parameters}).encode()
    head = f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def id_tensors(row: Ids, prefix: Ids) -> list[Tensor]:
    import numpy as np

    return [
        Tensor("INPUT_IDS", "INT32", [1, len(row)], np.array([row], np.int32)),
        Tensor("TARGET_PREFIX", "INT32", [1, len(prefix)], np.array([prefix], np.int32)),
    ]
