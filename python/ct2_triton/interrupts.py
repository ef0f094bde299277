# SPDX-License-Identifier: Apache-2.0
"""What an interrupt (Ctrl-C) of long work keeps, said by the command."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

GOES_ON = "the same command continues from here"
WHOLE_MODELS = "a model is written whole or not at all; what was downloaded is kept"


@contextmanager
def interrupts_say(text: str) -> Iterator[None]:
    """Add a text about what is kept to an interrupt of the block; the command prints it."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(text) from None
