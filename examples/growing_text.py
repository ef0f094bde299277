# SPDX-License-Identifier: Apache-2.0
"""Prints a translation while it grows, word by word.

ct2-prepare demo --io stream && ct2-serve demo
python examples/growing_text.py "The ticket office opens at 5:45."
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import aclosing

from ct2_triton.client import TranslationClient


async def main(text: str) -> None:
    """Translate a text into German, and print it as it grows."""
    url = os.environ.get("CT2_URL", "localhost:8001")
    # aclosing ends the stream on the server if the loop is left early.
    async with (
        TranslationClient(url, os.environ.get("CT2_MODEL", "demo")) as client,
        aclosing(client.stream_text(text, source="en", targets="de")) as parts,
    ):
        async for part in parts:
            print(part.text, end="", flush=True)
    print()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
