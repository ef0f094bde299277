# SPDX-License-Identifier: Apache-2.0
"""Measures what streams take in the server while their clients do not read them.

    python benchmarks/measure_unread_streams.py [--sentences 1000] [--streams 8]

A text is sent to the demo's stream model, and read, until the server's memory no longer grows. Then
`--streams` streams of it are opened at once and not read. When their last row has been answered,
the growth of the server's memory is what Triton keeps for them.
"""

from __future__ import annotations

import argparse
import queue
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import psutil
from tritonclient.grpc import service_pb2_grpc

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "tiny")]

from ct2_triton.prepare import PrepareOptions, prepare  # noqa: E402
from server.helpers import Connection  # noqa: E402
from server.stream_client import MODEL, request  # noqa: E402
from server.test_text import COMMENTARY  # noqa: E402
from support.servers import ServerStack  # noqa: E402
from support.waiting import wait_until  # noqa: E402

TARGETS = ["de", "fr", "es", "it"]
WARM_UP = 3


class Unread:
    """An open stream that is not read before `read` is called."""

    def __init__(self, url: str, text: str) -> None:
        """Sends the text."""
        self._channel = grpc.insecure_channel(url)
        self._sent: queue.Queue[Any] = queue.Queue()
        self._sent.put(request(text, TARGETS))
        stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)
        self._responses = stub.ModelStreamInfer(iter(self._sent.get, None))

    def read(self) -> tuple[int, int]:
        """Reads the whole stream; returns the number of parts and their bytes."""
        self._sent.put(None)
        sizes = [response.ByteSize() for response in self._responses]
        self._channel.close()
        return len(sizes), sum(sizes)


def memory(pid: int) -> int:
    """Return the memory of a server and its children, in bytes."""
    process = psutil.Process(pid)
    return sum(one.memory_info().rss for one in [process, *process.children(recursive=True)])


def measure(url: str, pid: int, text: str, streams: int) -> str:
    """Runs the measurement and prints the result."""
    connection = Connection(url)

    def answered() -> int:
        return int(connection.statistics(MODEL).inference_stats.success.count)

    def wait_for(count: int) -> Callable[[], bool]:
        return lambda: answered() >= count

    for _ in range(WARM_UP):
        for stream in [Unread(url, text) for _ in range(streams)]:
            stream.read()
    before, known = memory(pid), answered()
    opened = [Unread(url, text) for _ in range(streams)]
    wait_until(wait_for(known + streams), "the answers", 150)
    grown = memory(pid) - before
    found = [stream.read() for stream in opened]
    connection.close()
    parts, size = (sum(numbers) for numbers in zip(*found, strict=True))
    return (
        f"{streams} streams that nobody reads, {len(text) / 1000:.0f} kB each into {len(TARGETS)} "
        f"languages: {parts} parts of {size / parts:.0f} bytes; the server grew by "
        f"{grown / 1e6:.1f} MB, {grown / parts:.0f} bytes a part"
    )


def main() -> None:
    """Serves the demo and measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=1000, help="of a text (default: 1000)")
    parser.add_argument("--streams", type=int, default=8, help="at once (default: 8)")
    options = parser.parse_args()
    lines = [COMMENTARY[i % len(COMMENTARY)] for i in range(options.sentences)]
    with tempfile.TemporaryDirectory() as folder, ServerStack() as stack:
        prepare(PrepareOptions("demo", Path(folder), io="stream"))
        server = stack.start(Path(folder))
        print(measure(server.grpc_url, server.process.pid, " ".join(lines), options.streams))


if __name__ == "__main__":
    main()
