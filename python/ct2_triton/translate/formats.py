# SPDX-License-Identifier: Apache-2.0
"""Output formats of translations: lines, JSON objects, or growing text (`--stream`)."""

from __future__ import annotations

import json
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from ct2_triton.client.calls import is_unicode
from ct2_triton.client.tasks import iterate_in_thread
from ct2_triton.errors import (
    ClientError,
    RequestRejectedError,
    ServerBusyError,
    ServerUnreachableError,
)
from ct2_triton.translate.line_errors import WORD, check_word, concerns_one_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from ct2_triton.client.results import Hypothesis, TextPart, Translation, Verdict
    from ct2_triton.client.stream import StreamItem
    from ct2_triton.translate.inputs import Line

_OWN = ("file", "line", "text", "translations", "input")


def text_of(item: StreamItem) -> str:
    """Return a translation as one line; empty if it failed."""
    failed = isinstance(item.outcome, ClientError)
    return "" if failed else " ".join(item.translation.text.splitlines())


def write_json(value: object) -> str:
    """Return a line of JSON without its end; unsupported values are converted to text.

    Characters are escaped only if there is half of a surrogate pair.
    """
    line = json.dumps(value, ensure_ascii=False, default=str)
    return line if is_unicode(line) else json.dumps(value, default=str)


def as_json(items: list[StreamItem]) -> dict[str, Any]:
    """Return all translations of a line, one per language in order, as a JSON object.

    Input fields with the names of output fields are moved into `input`.
    """
    first = items[0]
    answers = []
    for item in items:
        if isinstance(item.outcome, ClientError):
            answers.append({"target": item.target, "error": str(item.outcome)})
        else:
            answers.append({"target": item.target, **_answer(item.outcome)})
    line = cast("Line", first.sentence)
    place = {} if line.file is None else {"file": str(line.file)}
    text = {} if line.problem is not None else {"text": line.text}
    own = {**place, "line": line.number, **text, "translations": answers}
    given = {name: value for name, value in line.fields.items() if name not in _OWN}
    nested = {name: value for name, value in line.fields.items() if name in _OWN}
    return {**given, **({"input": nested} if nested else {}), **own}


def _answer(translation: Translation) -> dict[str, Any]:
    answer = _hypothesis(translation.hypotheses[0])
    if translation.version:
        answer["version"] = translation.version
    if translation.unknown_tokens:
        answer["unknown_tokens"] = translation.unknown_tokens
    if translation.verdict is not None:
        answer["verdict"] = translation.verdict.to_dict()
    if len(translation.hypotheses) > 1:
        answer["hypotheses"] = [_hypothesis(one) for one in translation.hypotheses]
    return answer


def _hypothesis(one: Hypothesis) -> dict[str, Any]:
    fields: dict[str, Any] = {"text": one.text, "score": one.score}
    fields["finish_reason"] = one.finish_reason
    fields |= {"ids": one.alignments and one.ids, "alignments": one.alignments}
    return {name: value for name, value in fields.items() if value is not None}


_LOG = logging.getLogger(__name__)


async def print_parts(
    stream: Callable[[str], AsyncGenerator[TextPart, None]],
    lines: Iterator[Line],
    write: Callable[[str], None],
) -> int:
    """Translate one line after another and print parts as they arrive; return the failures.

    A failed line is printed up to its failure. An error that concerns more than one line is raised.
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
    """Log the flags of a line's verdict."""
    if verdict.flags:
        _LOG.warning("%s: flagged: %s", line, ", ".join(verdict.flags))


async def _translate_word(stream: Callable[[str], AsyncGenerator[TextPart, None]]) -> None:
    async with aclosing(stream(WORD)) as parts:
        await anext(parts, None)


def check_choices(*, targets: int, as_json: bool, has_output: bool) -> None:
    """Refuse options that growing lines do not support."""
    if targets > 1:
        raise ClientError(f"--stream prints one target language; --to names {targets}")
    if as_json or has_output:
        raise ClientError("--stream prints lines while they grow; leave out --json and --output")
