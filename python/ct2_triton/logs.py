# SPDX-License-Identifier: Apache-2.0
"""What the commands log: `-v`, `-q` and CT2_LOG say how much, and standard error gets it.

The library logs under `ct2_triton` and sets nothing up, so that a program that uses it decides.
"""

from __future__ import annotations

import argparse
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

LOG_VARIABLE = "CT2_LOG"
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_LIBRARY = "ct2_triton"


def add_log_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `-v` and `-q`.

    Args:
        parser: Receives them.
    """
    group = parser.add_mutually_exclusive_group()
    for flags, level, text in (
        (("-v", "--verbose"), "debug", "log each step"),
        (("-q", "--quiet"), "error", "log nothing but errors"),
    ):
        group.add_argument(
            *flags,
            dest="log_level",
            action="store_const",
            const=level,
            default=argparse.SUPPRESS,  # both have one variable
            help=f"{text} [${LOG_VARIABLE}={level}]",
        )


def set_up(
    parser: argparse.ArgumentParser, level: str | None, variables: Mapping[str, str]
) -> None:
    """Send what the library logs to standard error, each line with the name of the command.

    Args:
        parser: Of the command; a wrong variable ends the process, as a wrong flag does.
        level: What `-v` or `-q` says; None without them.
        variables: The environment.
    """
    name = level or variables.get(LOG_VARIABLE) or "info"
    if name.lower() not in LEVELS:
        parser.error(f"{LOG_VARIABLE} is {name!r}; it must be one of {', '.join(LEVELS)}")
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter(parser.prog))
    logger = logging.getLogger(_LIBRARY)
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(LEVELS[name.lower()])


class _Formatter(logging.Formatter):
    """Write `command: text`, and say where a warning or a detail is none of the command's own."""

    def __init__(self, program: str) -> None:
        super().__init__()
        self._program = program

    def format(self, record: logging.LogRecord) -> str:
        kind = {logging.WARNING: "warning: ", logging.DEBUG: f"{record.name}: "}
        text = f"{self._program}: {kind.get(record.levelno, '')}{record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text
