# SPDX-License-Identifier: Apache-2.0
"""What an interrupt (Ctrl-C) leaves of long work."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

GOES_ON = "the same command goes on from here"
WHOLE_MODELS = "a model is written whole or not at all; what was downloaded is kept"


@contextmanager
def interrupts_say(text: str) -> Iterator[None]:
    """Have an interrupt of the block say what is kept; the command prints it."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(text) from None
