# SPDX-License-Identifier: Apache-2.0
"""The command ct2-models, as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_COMMAND = Path(sys.executable).parent / "ct2-models"


def ct2_models(repository: Path, *arguments: str, code: int = 0) -> str:
    """Runs it; gives what it printed, or its error where it printed nothing."""
    result = subprocess.run(
        [_COMMAND, *arguments, "--model-repository", repository],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == code, result.stdout + result.stderr
    return result.stdout or result.stderr
