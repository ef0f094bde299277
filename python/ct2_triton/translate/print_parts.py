# SPDX-License-Identifier: Apache-2.0
"""`ct2-translate --stream`: translations are printed while they grow."""

from __future__ import annotations

import logging
from contextlib import aclosing
from typing import TYPE_CHECKING

from ct2_triton.client.blocking import iterate_in_thread
from ct2_triton.errors import (
    ClientError,
    RequestRejectedError,
    ServerBusyError,
    ServerUnreachableError,
)
from ct2_triton.translate.line_errors import WORD, check_word, concerns_one_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from ct2_triton.client.results import TextPart, Verdict
    from ct2_triton.translate.inputs import Line

_LOG = logging.getLogger(__name__)


async def print_parts(
    stream: Callable[[str], AsyncGenerator[TextPart, None]],
    lines: Iterator[Line],
    write: Callable[[str], None],
) -> int:
    """Translate line after line and print each part when it comes; count lines that failed.

    Those are printed as far as they came. What concerns more than one line is raised.
    """
    failed = 0
    is_right = False  # whether the server takes what the lines have in common
    async for line in iterate_in_thread(lines):
        try:
            if line.problem is not None:
                raise line.problem
            async with aclosing(stream(line.text)) as parts:
                async for part in parts:
                    write(part.text)
                    if part.verdict is not None:
                        report_flags(line, part.verdict)
            is_right = True
        except (ServerBusyError, ServerUnreachableError) as error:
            raise type(error)(f"not translated from {line} on: {error}") from error
        except ClientError as error:
            if not concerns_one_line(error, line.text):
                raise
            if not is_right and isinstance(error, RequestRejectedError):
                await check_word(_translate_word(stream), f"not translated from {line} on")
                is_right = True
            failed += 1
            _LOG.error("%s: %s", line, error)
        write("\n")
    return failed


def report_flags(line: object, verdict: Verdict) -> None:
    """Name in the log what looks wrong with the translation of a line."""
    if verdict.flags:
        _LOG.warning("%s: flagged: %s", line, ", ".join(verdict.flags))


async def _translate_word(stream: Callable[[str], AsyncGenerator[TextPart, None]]) -> None:
    async with aclosing(stream(WORD)) as parts:
        await anext(parts, None)


def check_choices(*, targets: int, as_json: bool, has_output: bool) -> None:
    """Refuse what a line that grows cannot be."""
    if targets > 1:
        raise ClientError(f"--stream prints one target language; --to names {targets}")
    if as_json or has_output:
        raise ClientError("--stream prints lines while they grow; leave out --json and --output")
