# SPDX-License-Identifier: Apache-2.0
"""The parser of the commands: `--help` shows common options, `--help-all` shows all."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

_VARIABLE = re.compile(r" \[\$\w+(=\w+)?\]$")  # written into the help by `add_variables`
_ALWAYS = frozenset({"--help", "--help-all", "--quiet"})
_EXIT_MISUSE = 2
# A word that argparse always takes for an option: not "-", a negative number, or one with spaces.
_OPTION = re.compile(r"-(?!\d+$|\d*\.\d+$)[^ ]+")


class CommandParser(argparse.ArgumentParser):
    """A parser that reports a misuse in one line.

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

    def parse_known_args(  # type: ignore[override]  # the base class overloads it
        self,
        args: Sequence[str] | None = None,
        namespace: Any = None,  # noqa: ANN401 - as there
    ) -> tuple[Any, list[str]]:
        """Refuse an unknown option by name, before argparse reports a missing one instead."""
        arguments = list(sys.argv[1:] if args is None else args)
        if unknown := self._unknown_option(arguments):
            near = difflib.get_close_matches(unknown, self._option_string_actions, 1)
            owner = [name for name, one in self._subcommands().items() if one._knows(unknown)][:1]
            hint = f"; did you mean {near[0]}?" if near else ""
            hint = f"; write it after the word {owner[0]}" if owner else hint
            self.error(f"unknown option {unknown}{hint}")
        return super().parse_known_args(arguments, namespace)

    def _unknown_option(self, arguments: Sequence[str]) -> str | None:
        """Return the first unknown option; subcommands check their own."""
        subcommands = self._subcommands()
        for argument in arguments:
            if argument == "--" or argument in subcommands:
                return None
            if _OPTION.fullmatch(argument) and not self._knows(argument.partition("=")[0]):
                return argument.partition("=")[0]
        return None

    def _subcommands(self) -> dict[str, CommandParser]:
        return {
            name: parser
            for action in self._actions
            if isinstance(action, argparse._SubParsersAction)
            for name, parser in action.choices.items()
        }

    def _knows(self, name: str) -> bool:
        """Return whether argparse takes this word for an option or the start of one."""
        known = self._option_string_actions
        is_short = not name.startswith("--") and name[:2] in known  # its value may be attached
        return is_short or any(option.startswith(name) for option in known)

    def error(self, message: str) -> NoReturn:
        """Print the error in one line, and exit."""
        self.exit(_EXIT_MISUSE, f"{self.prog}: {message}; see {self.prog} --help\n")

    def format_usual_help(self) -> str:
        """Return the text of `--help`."""
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
        help="print a completion script for this shell and exit (docs/commands.md)",
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
