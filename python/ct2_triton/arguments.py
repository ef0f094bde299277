# SPDX-License-Identifier: Apache-2.0
"""Readers of numbers on a command line, for argparse's `type`: what is refused is said."""

from __future__ import annotations

import argparse
import math

_LAST_PORT = 65_535


def count(text: str, least: int = 1) -> int:
    """Read a whole number.

    Args:
        text: The number.
        least: The lowest that is allowed.

    Raises:
        ArgumentTypeError: The text is none.
    """
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of {least} or more")
    return value


def port_number(text: str, least: int = 0) -> int:
    """Read the number of a port, 0 for any.

    Args:
        text: The number.
        least: The lowest that is allowed.

    Raises:
        ArgumentTypeError: The text is none.
    """
    value = (
        int(text)
        if text.isascii() and text.isdecimal() and len(text) <= len(str(_LAST_PORT))
        else -1
    )
    if not least <= value <= _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port from {least} to {_LAST_PORT}")
    return value


def duration(text: str) -> float:
    """Read a finite number above 0, of seconds or minutes.

    Raises:
        ArgumentTypeError: The text is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value
