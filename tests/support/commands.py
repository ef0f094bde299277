# SPDX-License-Identifier: Apache-2.0
"""Programs of the tests, run to their end or talked to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support import forked


def run(
    *command: object,
    code: int | None = 0,
    folder: Path | None = None,
    text: str | None = None,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """Runs a program that ends with this status and shows no traceback (None: it may do both).

    A command of the project goes by its name. `variables` are set beside those of this process.
    """
    program, *arguments = _line(command)
    done = forked.run(
        [program, *arguments], cwd=folder, env={**os.environ, **variables}, input=text,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if code is not None:
        output = f"{program} {arguments}\n{done.stdout[-9000:]}\n{done.stderr[-9000:]}"
        assert done.returncode == code, f"status {done.returncode}: {output}"
        assert "Traceback (most recent call last)" not in done.stderr, output
    return done


def piped(*command: object) -> forked.Popen:
    """Starts a program whose standard streams are pipes, of text."""
    pipe = subprocess.PIPE
    return forked.Popen(_line(command), stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _line(command: tuple[object, ...]) -> list[str]:
    program, *arguments = map(str, command)
    if program.startswith("ct2-"):
        program = str(Path(sys.executable).with_name(program))
    return [program, *arguments]
