# SPDX-License-Identifier: Apache-2.0
"""What a running server tells about itself: memory, threads, counts."""

from __future__ import annotations

import re
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ct2_triton.serve import TritonServer
from support.waiting import wait_until

_METRIC = re.compile(r"^(\w+)\{([^}]*)\} (\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def resident_mib(server: TritonServer) -> float:
    """Memory of the server's process that is resident."""
    return _status_kib(server, "VmRSS") / 1024


def resting_mib(server: TritonServer) -> float:
    """Resident memory once it falls no more: memory that is free goes back a little later."""
    before, now = float("inf"), resident_mib(server)
    while now < before - 1:
        time.sleep(1)
        before, now = now, resident_mib(server)
    return now


def thread_count(server: TritonServer) -> int:
    """Threads of the server's process."""
    return len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))


def open_files(server: TritonServer) -> int:
    """File descriptors of the server's process."""
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


def resources(server: TritonServer) -> dict[str, float]:
    """What the server holds."""
    return {
        "resident MiB": round(resident_mib(server)),
        "threads": thread_count(server),
        "open files": open_files(server),
    }


def _status_kib(server: TritonServer, field: str) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    return int(status.split(f"{field}:")[1].split()[0])


@dataclass(frozen=True)
class Counts:
    """What the server counted for one model since it was loaded."""

    success: int  # requests
    failures: dict[str, int]  # requests, by reason
    rows: int
    calls: int
    pending: int  # requests in Triton's own queue

    @property
    def failed(self) -> int:
        """Requests that failed, for any reason."""
        return sum(self.failures.values())


def counts(server: TritonServer, model: str) -> Counts:
    """Reads them from the Prometheus page."""
    with urllib.request.urlopen(server.metrics_url, timeout=600) as page:  # noqa: S310
        lines = page.read().decode().splitlines()
    totals: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for line in lines:
        match = _METRIC.match(line)
        if match is None:
            continue
        name, labels, value = match[1], dict(_LABEL.findall(match[2])), float(match[3])
        if labels.get("model") != model:
            continue
        totals[name] += int(value)
        if name == "nv_inference_request_failure":
            failures[labels["reason"]] += int(value)
    return Counts(
        success=totals["nv_inference_request_success"],
        failures={reason: count for reason, count in failures.items() if count},
        rows=totals["nv_inference_count"],
        calls=totals["nv_inference_exec_count"],
        pending=totals["nv_inference_pending_request_count"],
    )


def settled(server: TritonServer, model: str) -> Counts:
    """Counts once nothing waits and they have stopped moving."""
    last = counts(server, model)

    def quiet() -> bool:
        nonlocal last
        time.sleep(0.3)
        before, last = last, counts(server, model)
        return before == last and last.pending == 0

    wait_until(quiet, f"model {model} to become quiet")
    return last
