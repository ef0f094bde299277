# SPDX-License-Identifier: Apache-2.0
"""Allocations of the core fail one by one: every row is answered, and the next one runs."""

from __future__ import annotations

from pathlib import Path

import ctranslate2
import pytest

from support.commands import run
from support.native import built_core, link


@pytest.mark.plain_process
def test_every_row_is_answered_whichever_allocation_fails(
    tmp_path: Path, engine_model: Path
) -> None:
    build, program = built_core(), tmp_path / "out_of_memory"
    calls = build / "CMakeFiles/ct2triton_calls_objects.dir/src/engine/calls/library"
    wheel = Path(ctranslate2.__file__).parents[1]
    library = next(wheel.glob("ctranslate2.libs/libctranslate2*"))
    link(
        program,
        *("out_of_memory.cc", "failing_memory.cc"),
        *sorted(calls.glob("*.o")),
        build / "libct2triton_core.a",
        f"-Wl,--disable-new-dtags,-rpath,{library.parent}",
        *("-Wl,--allow-shlib-undefined,--no-as-needed", library),
    )
    assert "allocations failed, every row answered" in run(program, engine_model).stdout
