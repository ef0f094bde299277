# SPDX-License-Identifier: Apache-2.0
"""What git knows of this checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NO_GIT = "a source archive: git does not say what belongs to it"
needs_git = pytest.mark.skipif(not (ROOT / ".git").exists(), reason=NO_GIT)


def git(*command: str) -> list[str]:
    """The lines that it prints, also where the checkout is another user's, as in a container."""
    line = ["git", "-c", f"safe.directory={ROOT}", *command]
    done = subprocess.run(line, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.splitlines()
