# SPDX-License-Identifier: Apache-2.0
"""What git knows of this checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def git(*command: str) -> list[str]:
    """The lines that it prints, also where the checkout is another user's, as in a container."""
    line = ["git", "-c", f"safe.directory={ROOT}", *command]
    done = subprocess.run(line, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.splitlines()
