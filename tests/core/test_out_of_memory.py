# SPDX-License-Identifier: Apache-2.0
"""Allocations of the core fail one by one: every row is answered, and the next one runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commands import run
from support.native import link, linked_engine


@pytest.mark.plain_process
def test_every_row_is_answered_whichever_allocation_fails(
    tmp_path: Path, engine_model: Path
) -> None:
    program = tmp_path / "out_of_memory"
    link(program, "out_of_memory.cc", "failing_memory.cc", *linked_engine())
    assert "allocations failed, every row answered" in run(program, engine_model).stdout
