# SPDX-License-Identifier: Apache-2.0
"""The logs of the commands: level and format, and the access log of web servers.

The library logs under `ct2_triton` and configures nothing, so that the program decides.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

from ct2_triton.arguments import port_number

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
_FORMATS = ("short", "full", "json")
SHARED_METRICS = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus_client's variable for the folder of metrics that processes share."""
ACCESS = "ct2_triton.access"
"""Name of the access log's logger; the `fields` of a record become members of its JSON."""


def add_log_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `-v`, `-q` and `--log-format`."""
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
            default=argparse.SUPPRESS,  # -v and -q share one variable
            help=f"{text} [${LOG_VARIABLE}={level}]",
        )
    chosen = parser.add_argument(
        "--log-format",
        choices=_FORMATS,
        default="short",
        help="what a line of the log has: short: command and text; full: also time and level; "
        "json: all of it, as JSON (default: %(default)s)",
    )
    chosen.variable = "CT2_LOG_FORMAT"  # type: ignore[attr-defined]  # of all commands


def add_access_log_argument(parser: argparse.ArgumentParser) -> None:
    """Declare `--access-log` for web servers."""
    parser.add_argument(
        "--access-log",
        action="store_true",
        help="log each request: client, path, status, bytes and milliseconds",
    )


def add_metrics_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `--metrics-port` and `--metrics-host` for web servers."""
    parser.add_argument(
        "--metrics-port",
        metavar="PORT",
        type=partial(port_number, least=1),
        help="serve metrics for Prometheus at /metrics of this port (default: off)",
    )
    parser.add_argument(
        "--metrics-host",
        metavar="HOST",
        default="127.0.0.1",
        help="address of --metrics-port; metrics need no key there (default: %(default)s)",
    )


def set_up(
    parser: argparse.ArgumentParser, args: argparse.Namespace, variables: Mapping[str, str]
) -> None:
    """Write the library's log to standard error, each line with the name of the command.

    An invalid variable ends the process, like an invalid flag.
    """
    name = args.log_level or variables.get(LOG_VARIABLE) or "info"
    if name.lower() not in LEVELS:
        parser.error(f"{LOG_VARIABLE} is {name!r}; it must be one of {', '.join(LEVELS)}")
    formatters = {"short": _Formatter, "full": _FullFormatter, "json": _JsonFormatter}
    handler = logging.StreamHandler()
    handler.setFormatter(formatters[args.log_format](parser.prog))
    logger = logging.getLogger(_LIBRARY)
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(LEVELS[name.lower()])
    if logger.level > logging.INFO or args.log_format == "json":
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # as huggingface_hub reads it
    wanted = getattr(args, "access_log", False) and logger.level <= logging.INFO
    logging.getLogger(ACCESS).setLevel(logging.INFO if wanted else logging.WARNING)


class _Formatter(logging.Formatter):
    """Write `command: text`; warnings are marked, and details have their module."""

    def __init__(self, program: str) -> None:
        super().__init__()
        self._program = program

    def format(self, record: logging.LogRecord) -> str:
        kind = {logging.WARNING: "warning: ", logging.DEBUG: f"{record.name}: "}
        text = f"{self._program}: {kind.get(record.levelno, '')}{record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text

    def time_of(self, record: logging.LogRecord) -> str:
        """Return the time of a record in UTC, as in RFC 3339."""
        time = datetime.fromtimestamp(record.created, timezone.utc)
        return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _FullFormatter(_Formatter):
    """Also write time and level."""

    def format(self, record: logging.LogRecord) -> str:
        text = f"{self.time_of(record)} {record.levelname} {self._program}: {record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class _JsonFormatter(_Formatter):
    """Write one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        members = {
            "time": self.time_of(record),
            "level": record.levelname.lower(),
            "command": self._program,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            members["exception"] = self.formatException(record.exc_info)
        return json.dumps(members, ensure_ascii=False)
