# SPDX-License-Identifier: Apache-2.0
"""What a process and its descendants use, and how busy the machine is, read from /proc."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
# Fields of /proc/<pid>/stat behind the command's name, which ends with the last ')'.
_PARENT, _USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM = 1, 11, 12, 13, 14


@dataclass(frozen=True)
class Memory:
    """Memory of processes.

    Attributes:
        rss_bytes: Resident, a page shared by two of them counted twice.
        pss_bytes: Resident, each page divided by the number of processes that share it.
    """

    rss_bytes: int
    pss_bytes: int


def tree(pid: int) -> list[int]:
    """Lists a process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                children.setdefault(int(_stat(int(entry.name))[_PARENT]), []).append(
                    int(entry.name)
                )
    found = [pid]
    for member in found:
        found.extend(children.get(member, []))
    return found


def cpu_s(pid: int) -> float:
    """Sums the CPU time of a process, its descendants, and their ended children."""
    ticks = 0
    for member in tree(pid):
        with contextlib.suppress(OSError):
            stat = _stat(member)
            ticks += sum(int(stat[i]) for i in (_USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM))
    return ticks / _ticks_per_s()


def memory(pid: int) -> Memory:
    """Sums the memory of a process and its descendants."""
    rss = pss = 0
    for member in tree(pid):
        with contextlib.suppress(OSError):
            for line in (_PROC / str(member) / "smaps_rollup").read_text().splitlines():
                name, _, value = line.partition(":")
                rss += 1024 * int(value.split()[0]) if name == "Rss" else 0
                pss += 1024 * int(value.split()[0]) if name == "Pss" else 0
    return Memory(rss, pss)


def machine_cpu_s() -> float:
    """Gives the CPU time that the whole machine has been busy, since it was started."""
    fields = (_PROC / "stat").read_text(encoding="ascii").splitlines()[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq = (int(field) for field in fields[:7])
    return (user + nice + system + irq + softirq) / _ticks_per_s()


def _ticks_per_s() -> int:
    return os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    return text.rpartition(")")[2].split()
