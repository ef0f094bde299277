# SPDX-License-Identifier: Apache-2.0
"""What `make` remembers of downloads that tests need."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.commands import run

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["prometheus", "haproxy"])
def test_a_download_that_failed_is_tried_again(tmp_path: Path, name: str) -> None:
    """Tests that were skipped without a network run as soon as there is one."""
    apt = tmp_path / "bin" / "apt-get"
    apt.parent.mkdir()
    apt.write_text("#!/bin/sh\necho called >>calls\nexit 100\n")
    apt.chmod(0o755)
    target = f".venvs/{name}/.installed"
    line = ("make", "-f", ROOT / "Makefile", "-o", ".venv/.installed", target)
    path = f"{apt.parent}:{os.environ['PATH']}"
    for tries in (1, 2):
        done = run(*line, folder=tmp_path, PATH=path)
        assert f"Debian's package {name} cannot be fetched: its tests are skipped" in done.stderr
        assert not (tmp_path / target).exists()
        assert (tmp_path / ".venvs" / name / "calls").read_text() == "called\n" * 2 * tries
