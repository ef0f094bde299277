# SPDX-License-Identifier: Apache-2.0
"""An environment with everything that is installed here but PyTorch and transformers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import ct2_triton

_LEFT_OUT = ("torch", "transformers", "functorch", "safetensors")


def prepare_without_pytorch(
    folder: Path, arguments: Sequence[str], **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs ct2-prepare in such an environment, which is made in `folder`."""
    packages = folder / "site-packages"
    if not packages.exists():
        packages.mkdir()
        for entry in Path(np.__file__).parents[1].iterdir():
            if not entry.name.startswith(_LEFT_OUT):
                (packages / entry.name).symlink_to(entry)
    python = Path(ct2_triton.__file__).parents[1]
    command = "import sys; from ct2_triton.cli import prepare; sys.exit(prepare())"
    return subprocess.run(
        [sys.executable, "-S", "-c", command, *arguments],
        env={**os.environ, "PYTHONPATH": f"{python}:{packages}", **variables},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
