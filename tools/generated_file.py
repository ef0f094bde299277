# SPDX-License-Identifier: Apache-2.0
"""What the scripts share that write a file of the repository from a table in C++."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def write_or_check(
    script: str,
    description: str,
    target: Path,
    text: Callable[[], str],
    arguments: list[str] | None,
) -> int:
    """Write a file, or say whether it is up to date: the command line of such a script.

    Args:
        script: The script's name, for the message.
        description: What it does; the first line is shown.
        target: The file, unless the command line names another.
        text: Makes the file's text.
        arguments: Command line, without the program's name; None: the process's.

    Returns:
        0 when the file is written or up to date, else 1.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    parser.add_argument("--file", type=type(target), default=target, help="default: %(default)s")
    options = parser.parse_args(arguments)
    made = text()
    if not options.check:
        new = options.file.with_name(f".{options.file.name}.new")
        new.write_text(made, encoding="utf-8")
        new.replace(options.file)  # at once: another process may read it
        return 0
    if options.file.is_file() and options.file.read_text(encoding="utf-8") == made:
        return 0
    print(f"{options.file.name} is out of date: run tools/{script}", file=sys.stderr)
    return 1
