# SPDX-License-Identifier: Apache-2.0
"""Environment variables for the flags of the commands: one rule for all flags.

`--grpc-port` of `ct2-serve` has the variable `CT2_SERVE_GRPC_PORT`; an action may name another as
its `variable`. What a variable says becomes
the default of the flag, so that the flag itself counts more. An empty variable counts as not set.
Variables of a subcommand carry its name as well: `CT2_TRANSLATE_BULK_WORKERS`.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.default_repository import REPOSITORY_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

# Flags that mean the same in all commands.
_SHARED = {"--url": "CT2_URL", "--model-repository": REPOSITORY_VARIABLE}
_TRUTH = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def add_variables(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Give each flag of a command its variable: name it in the help, and read it.

    A wrong value ends the process, as a wrong flag does.
    """
    _add_variables(parser, parser.prog, environment)


def _add_variables(
    parser: argparse.ArgumentParser, program: str, environment: Mapping[str, str]
) -> None:
    for action in parser._actions:  # argparse has no public list of them
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                _add_variables(command, f"{program}-{name}", environment)
        flag = next((name for name in action.option_strings if name.startswith("--")), None)
        if flag is None or action.default is argparse.SUPPRESS:  # as of --help and --version
            continue
        own = getattr(action, "variable", None)
        variable = own or _SHARED.get(flag) or f"{program}{flag[1:]}".upper()
        variable = variable.replace("-", "_").replace(" ", "_")
        action.help = f"{action.help or ''} [${variable}]".lstrip()
        if text := environment.get(variable):
            action.default = _value(parser, action, variable, text)
            action.required = False


def _value(
    parser: argparse.ArgumentParser, action: argparse.Action, name: str, text: str
) -> object:
    """Read a variable as argparse reads the flag."""
    if action.nargs == 0:
        if text.lower() not in _TRUTH:
            parser.error(f"{name} is {text!r}; it must be one of {', '.join(_TRUTH)}")
        return action.const if _TRUTH[text.lower()] else action.default
    repeatable = isinstance(action, argparse._AppendAction)
    try:
        # A path is one folder, whatever it holds.
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
    """Values of a variable for a flag that may be repeated: the flag's own take their place."""

    def __copy__(self) -> list[Any]:
        """Give argparse, which copies before it appends, nothing to append to."""
        return []
