# SPDX-License-Identifier: Apache-2.0
"""Environment variables for the flags of the commands: one rule for all flags.

`--grpc-port` of `ct2-serve` has the variable `CT2_SERVE_GRPC_PORT`; an action may name another as
its `variable`. The value of a variable becomes the default of its flag, so the flag overrides it.
An empty variable counts as not set. Variables of a subcommand include its name:
`CT2_TRANSLATE_BULK_WORKERS`. A variable with a command's name that belongs to no flag is refused
like an unknown flag, because a misspelt password would leave a server open.
"""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.default_repository import REPOSITORY_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
