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


def cores_apart(cores: Collection[int], processes: int, system: Path = _SYSTEM) -> tuple[int, ...]:
    """Return the cores that so many processes keep for themselves.

    The last ones, one for each process, both hyperthreads of a core before the next; none for a
    single process, which starts the contenders too, or if these are more than a quarter of the
    cores.
    """
    if processes == 1 or 4 * processes > len(cores):
        return ()
    return tuple(sorted(list(chain(*_physical(cores, system)))[-processes:]))


def first_cores(cores: Collection[int], count: int, system: Path = _SYSTEM) -> tuple[int, ...]:
    """Return so many of these cores, no two hyperthreads of one while there are others."""
    each_first = chain(*zip_longest(*_physical(cores, system)))
    return tuple(sorted([core for core in each_first if core is not None][:count]))


def _physical(cores: Collection[int], system: Path) -> list[list[int]]:
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
