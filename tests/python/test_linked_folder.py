# SPDX-License-Identifier: Apache-2.0
"""Where the folders of links are kept."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest

from ct2_triton.shared_files import user_cache


def test_a_user_without_a_home_has_a_private_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that runs under a number that no list of users has."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr("pwd.getpwuid", _no_such_user)
    folder = user_cache()
    assert folder.parent == tmp_path
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert user_cache() == folder
    folder.chmod(0o777)  # libraries are loaded from it: a folder open to others will not do
    with pytest.raises(PermissionError, match="XDG_CACHE_HOME"):
        user_cache()


def _no_such_user(number: int) -> NoReturn:
    raise KeyError(f"getpwuid(): uid not found: {number}")
