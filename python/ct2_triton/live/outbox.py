# SPDX-License-Identifier: Apache-2.0
"""Captions on their way to a reader, who may be slow."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ct2_triton.live.updates import Caption


class Outbox:
    """Hold at most one caption of each segment and language: the newest.

    A slow reader so skips captions that newer ones replaced, and never a final, which nothing
    replaces. Captions come in the order in which their segment and language had to wait.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._captions: dict[tuple[str, str | None], Caption] = {}
        self._changed = asyncio.Event()
        self._ended = False

    def __len__(self) -> int:
        """Count the captions that wait."""
        return len(self._captions)

    def put(self, caption: Caption) -> None:
        """Add a caption, in place of an older one of its segment and language."""
        self._captions[caption.segment, caption.target] = caption
        self._changed.set()

    def end(self) -> None:
        """Say that no more captions come."""
        self._ended = True
        self._changed.set()

    async def get(self) -> Caption | None:
        """Wait for a caption and take it; give None at the end."""
        while not self._captions:
            if self._ended:
                return None
            self._changed.clear()
            await self._changed.wait()
        return self._captions.pop(next(iter(self._captions)))
