# SPDX-License-Identifier: Apache-2.0
"""Signals that end long work: which of them interrupt it."""

from __future__ import annotations

import signal

import pytest

from ct2_triton.interrupts import EndedBySignalError, interrupts_say


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_interrupts_the_block_and_says_what_is_kept(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with (
        pytest.raises(KeyboardInterrupt, match="all is kept") as caught,
        interrupts_say("all is kept"),
    ):
        signal.raise_signal(number)
    assert isinstance(caught.value, EndedBySignalError) == (number != signal.SIGINT)
    assert signal.getsignal(number) is before


def test_a_hangup_that_nohup_ignores_ends_nothing() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupts_say("all is kept"):
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
