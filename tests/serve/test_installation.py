# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ct2_triton.serve.errors import ServerNotFoundError
from ct2_triton.serve.installation import find_server


def _executable(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_variable_comes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = _executable(tmp_path / "a" / "bin" / "tritonserver")
    on_path = _executable(tmp_path / "b" / "bin" / "tritonserver")
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find_server().executable == on_path
    assert find_server().backends == tmp_path / "b" / "backends"
    monkeypatch.setenv("TRITONSERVER", str(named))
    assert find_server().executable == named


def test_a_link_on_path_leads_to_the_folder_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = _executable(tmp_path / "tritonserver" / "bin" / "tritonserver")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "tritonserver").symlink_to(real)
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert find_server().backends == tmp_path / "tritonserver" / "backends"


def test_the_wheel_is_found_without_importing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITONSERVER", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    found = find_server()
    if not found.executable.is_relative_to("/opt/tritonserver"):
        assert found.executable.match("pytriton/tritonserver/bin/tritonserver")
    assert "pytriton" not in sys.modules


def test_a_variable_that_names_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONSERVER", "/nowhere/tritonserver")
    with pytest.raises(ServerNotFoundError, match="/nowhere/tritonserver is not an executable"):
        find_server()
