# SPDX-License-Identifier: Apache-2.0
"""CPU time and memory of a process with its descendants, and of the machine."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil


@dataclass(frozen=True)
class Memory:
    """Memory of processes.

    Attributes:
        rss_bytes: Resident memory; a page shared by two of them counts twice.
        pss_bytes: Resident memory; each page is divided by the number of processes that share it.
    """

    rss_bytes: int
    pss_bytes: int


def tree(pid: int) -> list[int]:
    """List a process and all its descendants."""
    return [process.pid for process in _processes(pid)]


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process, its descendants, and their ended children, in seconds."""
    import psutil

    seconds = 0.0
    for process in _processes(pid):
        with contextlib.suppress(psutil.Error):  # the process has ended
            times = process.cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


def memory(pid: int) -> Memory:
    """Return the memory of a process and its descendants."""
    import psutil

    rss = pss = 0
    for process in _processes(pid):
        with contextlib.suppress(psutil.Error):
            used = process.memory_full_info()
            rss += used.rss
            pss += used.pss
    return Memory(rss, pss)


def machine_cpu_s() -> float:
    """Return the CPU time of the whole machine since it was started, in seconds."""
    import psutil

    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)


def _processes(pid: int) -> list[psutil.Process]:
    import psutil

    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
