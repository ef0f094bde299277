# SPDX-License-Identifier: Apache-2.0
"""Progress of steps that take minutes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Item = TypeVar("Item")
_EVERY_S = 10.0


def with_progress(
    items: Iterable[Item], count: int, step: str, report: Callable[[str], None]
) -> Iterator[Item]:
    """Yield this many sentences, or what was made of each, and report every ten seconds."""
    last_s = time.monotonic()
    for done, item in enumerate(items):
        if done and time.monotonic() - last_s >= _EVERY_S:
            last_s = time.monotonic()
            report(f"{step}: {done} of {count} sentences")
        yield item
