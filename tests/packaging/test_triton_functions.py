# SPDX-License-Identifier: Apache-2.0
"""The table of Triton's functions: all that we declare, and which of them a server may lack."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "backend" / "abi" / "triton_functions.md"
TOOL = ROOT / "tools" / "triton_functions.py"
OLDEST = "23.03"  # the oldest server that loads the backend


def test_each_declared_function_has_its_release_and_newer_ones_are_weak() -> None:
    spec = importlib.util.spec_from_file_location("triton_functions", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    rows = re.findall(r"^\| `(\w+)` \| (\d\d\.\d\d) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    declared = tool.declared()
    assert len(declared) > 60
    assert [name for name, _ in rows] == sorted(declared)
    assert {name: since > OLDEST for name, since in rows} == declared
