# SPDX-License-Identifier: Apache-2.0
"""Writes docs/command-line.md from the parsers of the commands.

python tools/command_line_doc.py            write the page
python tools/command_line_doc.py --check    fail when the page is out of date
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from generated_file import write_or_check

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).resolve().parents[1] / "docs" / "command-line.md"

_HEAD = """\
<!-- Written by tools/command_line_doc.py from the parsers of the commands. -->
# Command line

Every command has these options besides its own:

| option | meaning |
|---|---|
| `-h`, `--help` | print the usual options and exit |
| `--help-all` | print all options with their variables and exit |
| `--version` | print the version and exit |
| `-v`, `--verbose` | log each step |
| `-q`, `--quiet` | log errors only |
| `--log-format` `{short,full,json}` | text alone; with time and level; JSON objects |
| `--print-completion` `SHELL` | print a completion script for this shell and exit |

**Environment variables.** Each option has a variable, named after the command and the option:
`--grpc-port` of `ct2-serve` is `CT2_SERVE_GRPC_PORT`, `--workers` of `ct2-translate bulk` is
`CT2_TRANSLATE_BULK_WORKERS`. The commands share `CT2_URL` (`ct2-models`: `CT2_MODELS_URL`),
`CT2_MODEL_REPOSITORY`, `CT2_LOG` and `CT2_LOG_FORMAT`. An option on the command line overrides its
variable. The variable of an option without a value is `1`, `true`, `yes`, `0`, `false` or `no`. The
variable of an option that can be repeated is a list of words with shell quotes, such as
`"'NAME: VALUE'"`. A variable with a command's name that belongs to none of its options is an error.

**Exit status.** 0: done. 1: failed, with one line on standard error. 2: wrong arguments.
130: interrupted.
"""
_COMMON = {"-h", "--help-all", "--version", "-v", "-q", "--log-format", "--print-completion"}


def commands() -> Iterator[tuple[str, str]]:
    """Yield each command that the package installs, with its module; also those of two words."""
    scripts = entry_points(group="console_scripts")
    for script in sorted(scripts, key=lambda one: one.name):
        if script.value.startswith("ct2_triton."):
            partial = script.load()
            program, module, *others = partial.args
            yield program, module
            for name, other in (others[0] if others else {}).items():
                yield f"{program} {name}", other


def page() -> str:
    """Return the whole page: Markdown text."""
    from ct2_triton.cli import command_parser

    parts = [_HEAD]
    for program, name in commands():
        parts += _section(command_parser(program, importlib.import_module(name)), "##")
    return "\n".join(parts)


def _section(parser: argparse.ArgumentParser, level: str) -> Iterator[str]:
    yield f"{level} {parser.prog}\n"
    if parser.description:
        yield f"```text\n{parser.description.strip()}\n```\n"
    for group in parser._action_groups:  # argparse has no public list of them
        rows = [_row(parser, action) for action in group._group_actions if _is_shown(action)]
        if rows:
            yield "\n".join([f"| {group.title} | |", "|---|---|", *rows, ""])
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help for choice in action._choices_actions}
            for name, command in action.choices.items():
                command.description = command.description or helps.get(name)
                yield from _section(command, f"{level}#")


def _is_shown(action: argparse.Action) -> bool:
    hidden = action.help == argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction)
    return not hidden and not _COMMON & set(action.option_strings)


def _row(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter = argparse.HelpFormatter(parser.prog, width=10_000)
    text = formatter._expand_help(action) if action.help else ""
    text = re.sub(r"([|<>*_])", r"\\\1", " ".join(text.split()))
    shown = formatter._format_args(action, formatter._get_default_metavar_for_optional(action))
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    if not action.option_strings:
        shown = formatter._format_action_invocation(action)
        return f"| `{shown}` | {text} |"
    value = f" `{shown}`" if action.nargs != 0 else ""
    return f"| {names}{value.replace('|', chr(92) + '|')} | {text} |"


def main(arguments: list[str] | None = None) -> int:
    """Write or check the page; `arguments` are those of the command line."""
    return write_or_check("command_line_doc.py", __doc__, PAGE, page, arguments)


if __name__ == "__main__":
    sys.exit(main())
