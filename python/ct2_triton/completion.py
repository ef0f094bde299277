# SPDX-License-Identifier: Apache-2.0
"""Completion of the commands' flags in a shell: `ct2-serve --print-completion bash`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

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
