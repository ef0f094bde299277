# SPDX-License-Identifier: Apache-2.0
"""Picks from a tritonserver log the lines that say why it failed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# E1121 10:56:06.833726 7997 model_lifecycle.cc:642] "text, escaped as in JSON"
_ERROR_LINE = re.compile(r"^[EF]\d{4} [\d:.]+ \d+ [\w.]+:\d+\] ?(?P<text>.*)$")
_FINAL_LINE = re.compile(r"^error: (?P<text>.*)$")
# .../bin/tritonserver: unrecognized option '--no-such', before 400 lines of usage
_OPTION_LINE = re.compile(r"^\S*tritonserver: (?P<text>.*option.*)$")
# What every server without a GPU says; it fails nothing.
_HARMLESS = ("CudaDriverHelper has not been initialized", "unable to create stream")
_MAX_LINES = 20


def lines_that_matter(log: Iterable[str]) -> list[str]:
    """Pick the errors from a log, in plain text and without repetitions.

    They are at most 20: the first errors, and the server's last word.
    """
    texts: list[str] = []
    for line in log:
        text = _error_text(line.rstrip("\n"))
        if text and text not in texts:
            texts.append(text)
    if len(texts) <= _MAX_LINES:
        return texts
    left_out = len(texts) - _MAX_LINES
    return [*texts[: _MAX_LINES - 1], f"... {left_out} more errors ...", texts[-1]]


def _error_text(line: str) -> str | None:
    match = _ERROR_LINE.match(line) or _FINAL_LINE.match(line) or _OPTION_LINE.match(line)
    if match is None:
        return None
    text = _unescape(match["text"])
    if any(harmless in text for harmless in _HARMLESS):
        return None
    return text


def _unescape(text: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError:
        return text
