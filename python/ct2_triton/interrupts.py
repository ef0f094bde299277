# SPDX-License-Identifier: Apache-2.0
"""What the end of long work by Ctrl-C or a signal keeps, said by the command."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

GOES_ON = "the same command continues from here"
WHOLE_MODELS = "a model is written whole or not at all; what was downloaded is kept"
# Signals that end a process; a closed terminal sends SIGHUP, which Windows does not have.
_ENDING_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class EndedBySignalError(KeyboardInterrupt):
    """A signal that would have ended the process, raised so that it cleans up."""

    def __init__(self, number: int) -> None:
        """Keep the number of the signal."""
        super().__init__()
        self.number = number


@contextmanager
def interrupts_say(text: str) -> Iterator[None]:
    """Add a text about what is kept to an interrupt of the block; the command prints it.

    In the main thread, signals that would end the process interrupt it, too.
    """
    try:
        with _signals_interrupt():
            yield
    except KeyboardInterrupt as error:
        error.args = (text,)
        raise


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Raise EndedBySignalError in the block for a signal, if it runs in the main thread.

    A signal that is ignored, as SIGHUP is by nohup, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, _interrupt)
        for number in _ENDING_SIGNALS
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    raise EndedBySignalError(number)
