# SPDX-License-Identifier: Apache-2.0
"""A limit on restarts after crashes."""

from __future__ import annotations

import time
from collections import deque

PERIOD_S = 60.0


class RestartLimit:
    """A limit on the restarts within 60 seconds."""

    def __init__(self, most: int) -> None:
        """Allow `most` restarts within 60 seconds; 0 for none."""
        self.most = most
        self._times: deque[float] = deque()

    def __len__(self) -> int:
        """Count the restarts of the last 60 seconds."""
        while self._times and self._times[0] <= time.monotonic() - PERIOD_S:
            self._times.popleft()
        return len(self._times)

    def try_one(self) -> bool:
        """Count a restart if it is allowed now; return whether it is."""
        if len(self) >= self.most:
            return False
        self._times.append(time.monotonic())
        return True
