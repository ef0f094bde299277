# SPDX-License-Identifier: Apache-2.0
"""A vocabulary list is packed when a row needs it; rows with other lists do not wait for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commands import run
from support.native import built_core, link


@pytest.mark.plain_process
def test_threads_with_other_lists_do_not_wait_while_one_is_packed(tmp_path: Path) -> None:
    program = tmp_path / "list_packing"
    link(program, "list_packing.cc", built_core() / "libct2triton_core.a")
    assert "no thread waited" in run(program).stdout
