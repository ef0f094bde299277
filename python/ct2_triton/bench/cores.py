# SPDX-License-Identifier: Apache-2.0
"""Which cores the contenders and the load generator run on."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import contextmanager, suppress
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_SYSTEM = Path("/sys/devices/system/cpu")


def usable_cores() -> frozenset[int]:
    """Return the cores that this thread may use, as numbers of Linux; hyperthreads count."""
    return frozenset(os.sched_getaffinity(0))


def count_cores() -> int:
    """Return how many of these can be busy at a time: CPU quotas of control groups count."""
    from ct2_triton import _core

    return int(_core.usable_cores())


def physical_cores(cores: Collection[int], system: Path = _SYSTEM) -> int:
    """Return how many cores these are threads of."""
    return len(_by_core(cores, system))


def cores_apart(cores: Collection[int], processes: int, system: Path = _SYSTEM) -> tuple[int, ...]:
    """Return the cores that so many processes keep for themselves.

    The last ones, one for each process, and all hyperthreads of each; none for a single process,
    which starts the contenders too, or if one for each were more than a quarter of the cores.
    """
    if processes == 1 or 4 * processes > len(cores):
        return ()
    apart: list[int] = []
    for threads in reversed(_by_core(cores, system)):
        if len(apart) < processes:
            apart += threads
    return tuple(sorted(apart))


def first_cores(cores: Collection[int], count: int, system: Path = _SYSTEM) -> tuple[int, ...]:
    """Return so many of these cores, no two hyperthreads of one while there are others."""
    each_first = chain(*zip_longest(*_by_core(cores, system)))
    return tuple(sorted([core for core in each_first if core is not None][:count]))


def _by_core(cores: Collection[int], system: Path) -> list[list[int]]:
    """Group hyperthreads of one core; a core of which Linux says nothing is alone."""
    groups = defaultdict(list)
    for core in sorted(cores):
        key = str(core)
        with suppress(OSError):
            key = (system / f"cpu{core}/topology/thread_siblings_list").read_text("ascii")
        groups[key].append(core)
    return list(groups.values())


@contextmanager
def on_cores(cores: Collection[int]) -> Iterator[None]:
    """Keep all threads of this process, and what they start meanwhile, on these cores."""
    before = usable_cores()
    _move(cores)
    try:
        yield
    finally:
        _move(before)


def _move(cores: Collection[int]) -> None:
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(thread.name), cores)
