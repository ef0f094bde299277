# SPDX-License-Identifier: Apache-2.0
"""How often Triton's batcher sleeps through its wake-up when a queue policy is set.

The pattern of its defect: one request, three more while it runs, nothing after them. All four
should be done when the first would be, plus the time of the three.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median

from ct2_triton.serve import TritonServer
from server import configs
from server.helpers import Connection, Ids

_STALL_S = 0.45  # the batcher sleeps 0.5 s
_LONG = {"beam_size": 2, "max_decoding_length": 400, "min_decoding_length": 400}
_SHORT = {"beam_size": 1, "max_decoding_length": 5}

POLICIES = {
    "none": "",
    "max_queue_size": "default_queue_policy { max_queue_size: 64 }",
    "timeout": "default_queue_policy { default_timeout_microseconds: 60000000 }",
    "timeout + override": "default_queue_policy { default_timeout_microseconds: 60000000 "
    "allow_timeout_override: true }",
    "priority_levels": "priority_levels: 2 default_priority_level: 2",
}
SETTINGS = {"default": {}, "queue full": {"max_queued_rows": 1}}


def model_name(policy: str, setting: str) -> str:
    """The model that is served with this policy and this setting."""
    return re.sub(r"\W+", "-", f"{policy}-{setting}")


def model_config(policy: str, setting: str, decoding: str = "auto") -> str:
    """Its config.pbtxt; one worker, so that the three requests have to wait."""
    batching = f"max_batch_size: 256\ndynamic_batching {{ {POLICIES[policy]} }}\n"
    return configs.plain(batching=batching, inter_threads=1, decoding=decoding, **SETTINGS[setting])


@dataclass(frozen=True)
class StallReport:
    """What a model's batcher did."""

    runs: int
    stalls: int
    median_s: float  # until all four were done
    worst_s: float
    requests_per_s: float  # of 16 clients that ask again and again


def measure(
    server: TritonServer, model: str, rows: Sequence[tuple[Ids, Ids]], runs: int
) -> StallReport:
    """Repeats the pattern, then asks for the steady rate."""
    connection = Connection(server.grpc_url)
    (row, prefix), *others = rows
    connection.translate(model, row, prefix, **_SHORT)
    took = []
    for _ in range(runs):
        started = time.monotonic()
        pending = [connection.start(model, [row], [prefix], **_LONG)]
        time.sleep(0.03)
        pending += [connection.start(model, [r], [p], **_SHORT) for r, p in others[:3]]
        for request in pending:
            request.get_result()
        took.append(time.monotonic() - started)
        time.sleep(0.1)
    connection.close()
    best = min(took)
    stalls = sum(one > best + _STALL_S for one in took)
    return StallReport(runs, stalls, median(took), max(took), _steady_rate(server, model, others))


def _steady_rate(server: TritonServer, model: str, rows: Sequence[tuple[Ids, Ids]]) -> float:
    requests = 640

    def ask(i: int) -> None:
        row, prefix = rows[i % len(rows)]
        connections[i % 16].translate(model, row, prefix, **_SHORT)

    connections = [Connection(server.grpc_url) for _ in range(16)]
    started = time.monotonic()
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(ask, range(requests)))
    rate = requests / (time.monotonic() - started)
    for connection in connections:
        connection.close()
    return rate
