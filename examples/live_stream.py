# SPDX-License-Identifier: Apache-2.0
"""Captions are translated into three languages while they arrive on standard input."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from ct2_triton.client import TranslationClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

URL = os.environ.get("CT2_URL", "localhost:8001")
MODEL = os.environ.get("CT2_MODEL", "demo")
TARGETS = ["de", "fr", "es"]


async def captions() -> AsyncIterator[str]:
    """Yield each line as soon as it arrives."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield line.rstrip("\n")


async def main() -> None:
    """Print each translation as soon as it arrives, in any order."""
    async with TranslationClient(URL, MODEL) as client:
        async for item in client.stream(
            captions(), source="en", targets=TARGETS, order="as-completed"
        ):
            print(f"{item.position} {item.target} {item.translation.text}", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
