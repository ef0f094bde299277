# SPDX-License-Identifier: Apache-2.0
"""The entry points of the commands, and the only place where errors become exit codes.

A command is a module ``ct2_triton.<area>.cli`` with ``add_arguments(parser)`` and
``run(args) -> int``; its docstring is the command's description. ``run`` raises; this module
catches, prints one line and picks the exit code: 0 done, 1 failed, 2 misuse.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import TYPE_CHECKING

import ct2_triton
from ct2_triton.errors import Ct2TritonError

if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


def prepare(argv: Sequence[str] | None = None) -> int:
    """Run ct2-prepare.

    Args:
        argv: Arguments after the command's name; None for those of the process.

    Returns:
        The exit code.
    """
    return main("ct2-prepare", "ct2_triton.prepare.cli", argv)


def serve(argv: Sequence[str] | None = None) -> int:
    """Run ct2-serve.

    Args:
        argv: Arguments after the command's name; None for those of the process.

    Returns:
        The exit code.
    """
    return main("ct2-serve", "ct2_triton.serve.cli", argv)


def translate(argv: Sequence[str] | None = None) -> int:
    """Run ct2-translate.

    Args:
        argv: Arguments after the command's name; None for those of the process.

    Returns:
        The exit code.
    """
    return main("ct2-translate", "ct2_triton.client.cli", argv)


def bench(argv: Sequence[str] | None = None) -> int:
    """Run ct2-bench.

    Args:
        argv: Arguments after the command's name; None for those of the process.

    Returns:
        The exit code.
    """
    return main("ct2-bench", "ct2_triton.bench.cli", argv)


def main(program: str, module_name: str, argv: Sequence[str] | None = None) -> int:
    """Parse the arguments of one command and run it.

    Args:
        program: Name of the command, as typed.
        module_name: Module that offers ``add_arguments`` and ``run``.
        argv: Arguments after the command's name; None for those of the process.

    Returns:
        The exit code: 0 done, 1 failed, 130 interrupted. A misuse leaves through argparse with 2.
    """
    module = importlib.import_module(module_name)
    parser = argparse.ArgumentParser(
        prog=program,
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action="version", version=f"{program} {ct2_triton.__version__}"
    )
    module.add_arguments(parser)
    args = parser.parse_args(argv)
    try:
        return int(module.run(args))
    except Ct2TritonError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
