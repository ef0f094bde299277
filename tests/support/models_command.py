# SPDX-License-Identifier: Apache-2.0
"""The command ct2-models, as a user runs it."""

from __future__ import annotations

from pathlib import Path

from support.commands import run


def ct2_models(repository: Path, *arguments: str, code: int = 0) -> str:
    """Runs it; gives what it printed, or its error where it printed nothing."""
    result = run("ct2-models", *arguments, "--model-repository", repository, code=code)
    return result.stdout or result.stderr
