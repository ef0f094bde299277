# SPDX-License-Identifier: Apache-2.0
"""Small faults of a line of C++ or Python: negations, off by one, lost calls, other constants."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What is found in a line, what takes its place. `and`, `or` and `not` occur in Python alone.
_REPLACEMENTS = [
    ("comparison", r" < (?!<)", " <= "),
    ("comparison", r" <= ", " < "),
    ("comparison", r" > (?!>)", " >= "),
    ("comparison", r" >= ", " > "),
    ("equality", r" == ", " != "),
    ("equality", r" != ", " == "),
    ("logic", r" && ", " || "),
    ("logic", r" \|\| ", " && "),
    ("logic", r" and ", " or "),
    ("logic", r" or ", " and "),
    ("logic", r"\bnot ", ""),
    ("off by one", r" \+ 1\b(?![.\d])", ""),
    ("off by one", r" - 1\b(?![.\d])", ""),
    ("off by one", r"\b0;$", "1;"),
    ("constant", r"\btrue\b", "false"),
    ("constant", r"\bfalse\b", "true"),
    ("constant", r"\bTrue\b", "False"),
    ("constant", r"\bFalse\b", "True"),
    ("constant", r"(?<=[= (])\d+(?=[;,)])", "{next}"),
]
# A statement that is nothing but a call; a condition from its first bracket on.
_CALL = {
    ".cc": re.compile(
        r"^\s+(?!return|throw|delete|case|using|if|for|while)[\w.>\-\[\]*()]+\(.*\);$"
    ),
    ".py": re.compile(r"^\s+(?!return|raise|yield|assert|super\()(await )?[\w.\[\]]+\(.*\)$"),
}
_CONDITION = {".cc": re.compile(r"\bif (?=\()"), ".py": re.compile(r"^\s*(el)?if (?=.*:$)")}


def faults(line: str, suffix: str) -> Iterator[tuple[str, str]]:
    """Each fault of a line: the operator's name, and the line that it makes."""
    code = _without_comment(line, suffix)
    if not code.strip() or code.lstrip().startswith(
        ("#", "*", '"', "@", "template", "import", "from")
    ):
        return
    for name, pattern, by in _REPLACEMENTS:
        for found in re.finditer(pattern, code):
            if not _in_text(code, found.start()):
                yield name, line[: found.start()] + _put(found, by) + line[found.end() :]
    for found in _CONDITION[suffix].finditer(code):
        yield from _negated(line, code, found.end(), suffix)
    if _CALL[suffix].match(code) and code.count("(") == code.count(")"):
        indent = line[: len(line) - len(line.lstrip())]
        yield "lost call", indent + ("pass" if suffix == ".py" else ";")


def _negated(line: str, code: str, at: int, suffix: str) -> Iterator[tuple[str, str]]:
    """The line with the condition that begins here negated, if the condition ends in the line."""
    if suffix == ".py":
        yield "negation", f"{line[:at]}not ({code[at:-1]}):{line[len(code) :]}"
        return
    depth = 0
    for end in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        if depth == 0:
            yield "negation", f"{line[:at]}(!{line[at : end + 1]}){line[end + 1 :]}"
            return


def _put(found: re.Match[str], by: str) -> str:
    """The replacement of what was found; {next} is the number after the one found."""
    return str(int(found[0]) + 1) if by == "{next}" else by


def _without_comment(line: str, suffix: str) -> str:
    return line.split("  # " if suffix == ".py" else "//")[0].rstrip()


def _in_text(code: str, at: int) -> bool:
    """Whether a place lies in a string."""
    before = code[:at].replace('\\"', "")
    return before.count('"') % 2 == 1 or before.count("'") % 2 == 1
