# SPDX-License-Identifier: Apache-2.0
"""tools/with_progress.sh, which make installs with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "with_progress.sh"


@pytest.mark.parametrize("status", [0, 3])
def test_a_long_silent_command_is_reported_and_its_status_kept(status: int, tmp_path: Path) -> None:
    """The command waits until a line says that it still runs."""
    log = tmp_path / "log"
    waits = f"until grep -q 'so far' {log}; do sleep 0.05; done; exit {status}"
    with log.open("w") as output:
        result = subprocess.run(
            [SCRIPT, "compiling", "bash", "-c", waits],
            env={**os.environ, "PROGRESS_PERIOD_S": "0.1"},
            stdout=output,
            check=False,
        )
    assert result.returncode == status
    first, *others = log.read_text().splitlines()
    assert first == "compiling ..."
    assert others[0].startswith("compiling: ")
    assert others[-1].startswith("compiling: done in ") == (status == 0)
