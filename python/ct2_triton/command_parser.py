# SPDX-License-Identifier: Apache-2.0
"""The parser of the commands: `--help` shows common options, `--help-all` shows all.

Environment variables follow one rule for all flags: `--grpc-port` of `ct2-serve` has the variable
`CT2_SERVE_GRPC_PORT`; an action may name another as its `variable`. The value of a variable becomes
the default of its flag, so the flag overrides it. An empty variable counts as not set. Variables of
a subcommand include its name: `CT2_TRANSLATE_BULK_WORKERS`. A variable with a command's name that
belongs to no flag is refused like an unknown flag, because a misspelt password would leave a server
open.
"""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ct2_triton.prepared_model import REPOSITORY_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


# Flags with the same meaning in all commands.
_SHARED = {"--url": "CT2_URL", "--model-repository": REPOSITORY_VARIABLE}
# Variables that Kubernetes sets in each pod for a Service, which may have the name of a command.
_SERVICE = re.compile(
    r"[^=]*(_SERVICE_(HOST|PORT\w*)=|_PORT_\d+_[A-Z]+P(_[A-Z]+)?=|_PORT=[a-z]+://)"
)
_TRUTH = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def add_variables(
    parser: argparse.ArgumentParser, environment: Mapping[str, str], others: Sequence[str] = ()
) -> set[str]:
    """Add an environment variable for each flag of a command: show it in the help, and read it.

    An invalid value and an unknown variable end the process, like an invalid flag.

    Args:
        parser: The command's parser.
        environment: The variables of the process.
        others: Words after the command's name that select another command with its own variables.

    Returns:
        The names of all variables of the command.
    """
    given = {
        name: text
        for name, text in environment.items()
        if text and not _SERVICE.match(f"{name}={text}")
    }
    known = _add_variables(parser, parser.prog, given)
    own = _variable(f"{parser.prog}-")
    of_others = tuple(_variable(f"{parser.prog}-{word}-") for word in others)
    endings = [name.removeprefix(own) for name in known]
    for name in sorted(given.keys() - known):
        if name.startswith(own) and not name.startswith(of_others):
            near = difflib.get_close_matches(name.removeprefix(own), endings, 1)
            hint = f"; did you mean {own}{near[0]}?" if near else ""
            parser.error(f"the variable {name} names no option{hint}")
    return known


def _add_variables(
    parser: argparse.ArgumentParser, program: str, environment: Mapping[str, str]
) -> set[str]:
    """Read the variables of a parser and of its subcommands; return the names of all."""
    known = set()
    for action in parser._actions:  # argparse has no public list of them
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                known |= _add_variables(command, f"{program}-{name}", environment)
        flag = next((name for name in action.option_strings if name.startswith("--")), None)
        if flag is None or action.default is argparse.SUPPRESS:  # as of --help and --version
            continue
        own = getattr(action, "variable", None)
        variable = own or _SHARED.get(flag) or _variable(f"{program}{flag[1:]}")
        known.add(variable)
        action.help = f"{action.help or ''} [${variable}]".lstrip()
        if text := environment.get(variable):
            action.default = _value(parser, action, variable, text)
            action.required = False
    return known


def _variable(words: str) -> str:
    return words.upper().replace("-", "_").replace(" ", "_")


def _value(
    parser: argparse.ArgumentParser, action: argparse.Action, name: str, text: str
) -> object:
    """Convert the text of a variable as argparse converts that of the flag."""
    if action.nargs == 0:
        if text.lower() not in _TRUTH:
            parser.error(f"{name} is {text!r}; it must be one of {', '.join(_TRUTH)}")
        return action.const if _TRUTH[text.lower()] else action.default
    repeatable = isinstance(action, argparse._AppendAction)
    try:
        # A path is not split, whatever characters it has.
        words = shlex.split(text) if repeatable and action.type is not Path else [text]
        values = [_one(parser, action, word) for word in words]
    except (argparse.ArgumentError, ValueError) as error:
        parser.error(f"{name} is {text!r}: {getattr(error, 'message', error)}")
    return _Replaceable(values) if repeatable else values[0]


def _one(parser: argparse.ArgumentParser, action: argparse.Action, text: str) -> Any:  # noqa: ANN401
    value = parser._get_value(action, text)
    parser._check_value(action, value)
    return value


class _Replaceable(list[Any]):
    """Values of a variable for a repeatable flag, which values of the flag replace."""

    def __copy__(self) -> list[Any]:
        """Return an empty list, because argparse copies the default before it appends to it."""
        return []
