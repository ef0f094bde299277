# SPDX-License-Identifier: Apache-2.0
"""The parser of the commands: `--help` has the usual options, `--help-all` has all."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

_VARIABLE = re.compile(r" \[\$\w+(=\w+)?\]$")  # written into the help by `add_variables`
_ALWAYS = frozenset({"--help", "--help-all", "--quiet"})
_EXIT_MISUSE = 2


class CommandParser(argparse.ArgumentParser):
    """A parser that answers a misuse in one line.

    Attributes:
        usual: Options that `--help` shows; empty for all.
    """

    usual: frozenset[str] = frozenset()

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - those of the base class
        """Declare `--help` and `--help-all`."""
        super().__init__(
            add_help=False, formatter_class=argparse.RawDescriptionHelpFormatter, **settings
        )
        self.add_argument("-h", "--help", action=_UsualHelp, help="show the usual options and exit")
        self.add_argument(
            "--help-all",
            action="help",
            default=argparse.SUPPRESS,
            help="show all options, and exit",
        )

    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line, and end."""
        self.exit(_EXIT_MISUSE, f"{self.prog}: {message}; see {self.prog} --help\n")

    def format_usual_help(self) -> str:
        """Give the text of `--help`."""
        if not self.usual:
            return self.format_help()
        formatter = _WithoutVariables(self.prog)
        positionals = [action for action in self._actions if not action.option_strings]
        options = [
            action
            for action in self._actions
            if set(action.option_strings) & (self.usual | _ALWAYS)
        ]
        words = [formatter._format_args(one, str(one.metavar or one.dest)) for one in positionals]
        formatter.add_usage(" ".join([self.prog, "[options]", *words]), [], [])
        formatter.add_text(self.description)
        for title, actions in (("arguments", positionals), ("options", options)):
            if actions:
                formatter.start_section(title)
                formatter.add_arguments(actions)
                formatter.end_section()
        formatter.add_text(f"{self.prog} --help-all shows all options and their variables.")
        return formatter.format_help()


class _UsualHelp(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:  # noqa: A002
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        assert isinstance(parser, CommandParser)  # noqa: S101 - it declares this action
        sys.stdout.write(parser.format_usual_help())
        parser.exit()


class _WithoutVariables(argparse.RawDescriptionHelpFormatter):
    def _get_help_string(self, action: argparse.Action) -> str | None:
        return _VARIABLE.sub("", action.help or "")


SHELLS = ("bash", "zsh", "fish", "tcsh")


def add_completion_argument(parser: argparse.ArgumentParser) -> None:
    """Declare `--print-completion`."""
    parser.add_argument(
        "--print-completion",
        action=_PrintCompletion,
        choices=SHELLS,
        default=argparse.SUPPRESS,
        help="print a script for this shell, and end (docs/commands.md)",
    )


class _PrintCompletion(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> NoReturn:
        try:
            import shtab
        except ImportError as error:
            parser.error(f"{error.name} is not installed: pip install {error.name}")
        for action in parser._actions:  # argparse has no public list of them
            if action.type is Path:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
        sys.stdout.write(f"{shtab.complete(parser, str(values))}\n")
        sys.exit(0)
