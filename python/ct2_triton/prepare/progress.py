# SPDX-License-Identifier: Apache-2.0
"""How far a long step of a preparation is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Item = TypeVar("Item")
_EVERY_S = 10.0


def told(items: Sequence[Item], step: str, report: Callable[[str], None]) -> Iterator[Item]:
    """Go through sentences, and report every ten seconds how many are done."""
    last_s = time.monotonic()
    for done, item in enumerate(items):
        if done and time.monotonic() - last_s >= _EVERY_S:
            last_s = time.monotonic()
            report(f"{step}: {done} of {len(items)} sentences")
        yield item
