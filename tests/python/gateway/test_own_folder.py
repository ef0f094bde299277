# SPDX-License-Identifier: Apache-2.0
"""Folders of translated files: what a killed gateway left goes, and nobody else's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ct2_triton.gateway.files import own_folder

HOLDER = """
import sys
from ct2_triton.gateway.files import own_folder

with own_folder() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def _holder() -> tuple[subprocess.Popen[str], Path]:
    """Another process, and its folder, which looks old."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    (folder / "a.txt").write_text("a translation")
    os.utime(folder, (1, 1))
    return process, folder


def test_the_folder_of_a_killed_process_is_removed_and_that_of_a_live_one_stays() -> None:
    (killed, stale), (alive, used) = _holder(), _holder()
    with killed, alive:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        with own_folder() as own:
            assert own.is_dir()
            assert not stale.exists()
            assert (used / "a.txt").read_text() == "a translation"
        assert not own.exists()
        alive.communicate("")
    assert not used.exists()


def test_links_files_and_new_folders_are_left_alone(temporary: Path) -> None:
    other = temporary / "other"
    other.mkdir()
    (other / "kept").touch()
    (temporary / "ct2-gateway-link").symlink_to(other)
    (temporary / "ct2-gateway-file").touch()
    (temporary / "ct2-gateway-new").mkdir()
    for name in ("link", "file"):
        os.utime(temporary / f"ct2-gateway-{name}", (1, 1), follow_symlinks=False)
    with own_folder():
        assert (other / "kept").exists()
    left = sorted(path.name for path in temporary.iterdir())
    assert left == ["ct2-gateway-file", "ct2-gateway-link", "ct2-gateway-new", "other"]
