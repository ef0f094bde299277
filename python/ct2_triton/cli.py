# SPDX-License-Identifier: Apache-2.0
"""The entry points of the commands, and the only place where errors become exit codes.

A command is a module ``ct2_triton.<area>.cli`` with ``add_arguments(parser)`` and
``run(args) -> int``; its docstring is the command's description. ``run`` raises; this module
catches, prints one line and picks the exit code: 0 done, 1 failed, 2 misuse. A module that sets
``PASSES_ON`` gets the arguments after ``--`` as ``args.passed_on``.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import ct2_triton
from ct2_triton.command_parser import CommandParser, add_completion_argument, add_variables
from ct2_triton.errors import Ct2TritonError
from ct2_triton.interrupts import EndedBySignalError
from ct2_triton.logs import add_log_arguments, set_up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

_LOG = logging.getLogger(__name__)
EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


def main(
    program: str,
    module_name: str,
    argv: Sequence[str] | None = None,
    others: Sequence[str] = (),
) -> int:
    """Run a command of a module with `add_arguments` and `run`, and return the exit code.

    0 is done, 1 failed, 130 interrupted, 143 ended by SIGTERM. For a misuse, argparse exits with 2.
    `others` are the first arguments that run another command.
    """
    try:
        return _run(program, module_name, argv, others)
    except KeyboardInterrupt as error:  # also during imports, which may take a second
        _flush()
        print(f"{program}: " + ": ".join(["interrupted", *map(str, error.args)]), file=sys.stderr)
        return 128 + error.number if isinstance(error, EndedBySignalError) else EXIT_INTERRUPTED


def command_parser(program: str, module: ModuleType) -> CommandParser:
    """Build the parser of one command, without its environment variables.

    The docstring of the module is the description. `USUAL`, if it exists, lists the options that
    `--help` shows.
    """
    parser = CommandParser(prog=program, description=module.__doc__)
    parser.usual = frozenset(getattr(module, "USUAL", ()))
    parser.add_argument(
        "--version", action="version", version=f"{program} {ct2_triton.__version__}"
    )
    add_log_arguments(parser)
    add_completion_argument(parser)
    module.add_arguments(parser)
    return parser


def _run(program: str, module_name: str, argv: Sequence[str] | None, others: Sequence[str]) -> int:
    module = importlib.import_module(module_name)
    parser = command_parser(program, module)
    add_variables(parser, os.environ, others)
    arguments = list(sys.argv[1:] if argv is None else argv)
    passed_on: list[str] = []
    if getattr(module, "PASSES_ON", False) and "--" in arguments:
        mark = arguments.index("--")
        arguments, passed_on = arguments[:mark], arguments[mark + 1 :]
    args = parser.parse_args(arguments, argparse.Namespace(passed_on=passed_on, log_level=None))
    set_up(parser, args, os.environ)
    try:
        status = int(module.run(args))
        print(end="", flush=True)  # else Python reports at exit what it cannot write
    except (Ct2TritonError, OSError) as error:
        return _failed(error)
    return status


def _failed(error: Exception) -> int:
    """Print in one line why a command failed; return its exit code."""
    text = str(error)
    if isinstance(error, OSError):  # such as a full disk
        place = "" if error.filename is None else f": {error.filename}"
        text = f"{error.strerror or repr(error)}{place}"
    _flush()
    if not isinstance(error, BrokenPipeError):  # the reader has ended, as with "| head"
        _LOG.error("%s", text)
    _LOG.debug("this is where:", exc_info=True)
    return EXIT_FAILED


def _flush() -> None:
    """Flush the output; discard what cannot be written, because Python would try again at exit."""
    with suppress(AttributeError):  # standard output may be None
        try:
            sys.stdout.flush()
        except OSError:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _with_more(
    program: str, module: str, others: Mapping[str, str], argv: Sequence[str] | None = None
) -> int:
    """Run a command, or another that its first argument names; a file of that name is ./NAME."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in others:
        name, *rest = arguments
        return main(f"{program} {name}", others[name], rest)
    return main(program, module, arguments, tuple(others))


translate = partial(
    _with_more, "ct2-translate", "ct2_triton.translate.cli", {"bulk": "ct2_triton.bulk.cli"}
)
live = partial(main, "ct2-live", "ct2_triton.live.cli")
gateway = partial(main, "ct2-gateway", "ct2_triton.gateway.cli")
models = partial(main, "ct2-models", "ct2_triton.models.cli")
prepare = partial(main, "ct2-prepare", "ct2_triton.prepare.cli")
serve = partial(main, "ct2-serve", "ct2_triton.serve.cli")
bench = partial(main, "ct2-bench", "ct2_triton.bench.cli")
