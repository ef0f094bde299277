# SPDX-License-Identifier: Apache-2.0
"""The commands where their scripts are not on PATH: `python -m ct2_triton serve demo`."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from ct2_triton import cli

_COMMANDS = ("serve", "prepare", "models", "translate", "gateway", "live", "bench")
_USAGE = f"give a command: python -m ct2_triton COMMAND, one of {', '.join(_COMMANDS)}\n"
_EXIT_MISUSE = 2


def _main() -> int:
    name, *arguments = sys.argv[1:] or [""]
    command = name.removeprefix("ct2-")
    if name in {"-h", "--help"}:
        sys.stdout.write(_USAGE)
        return 0
    if command not in _COMMANDS:
        sys.stderr.write(_USAGE)
        return _EXIT_MISUSE
    if find_spec(f"ct2_triton.{command}") is None:
        sys.stderr.write(f"ct2-{command} is of another package: pip install ct2-triton\n")
        return cli.EXIT_FAILED
    return int(getattr(cli, command)(arguments))


if __name__ == "__main__":
    sys.exit(_main())
