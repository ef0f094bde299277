# SPDX-License-Identifier: Apache-2.0
"""Wait for what must come true."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(true: Callable[[], bool], what: str = "it", limit_s: float = 600.0) -> None:
    """Waits until something holds; the limit is there for what never will.

    What takes long is looked at less often: others need the processor, and it may wait for them.
    """
    deadline = time.monotonic() + limit_s
    pause_s = 0.002
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {limit_s:g} s in vain: {what}")
        time.sleep(pause_s)
        pause_s = min(1.03 * pause_s, 0.05)
