# SPDX-License-Identifier: Apache-2.0
"""The modules of the package: none imports itself through others, also not for its types."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from support.checkout import ROOT

PACKAGE = ROOT / "python" / "ct2_triton"
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}


def _imported(path: Path) -> set[str]:
    """The modules of the package that a file names in its imports, wherever those stand."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            places = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {place if place in MODULES else node.module for place in places}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names & set(MODULES)


def test_no_module_imports_itself_through_others() -> None:
    graph = {name: _imported(path) - {name} for name, path in MODULES.items()}
    assert len(graph) > 100
    assert "ct2_triton.errors" in graph["ct2_triton.client.client"]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(reversed(error.args[1]))) from None
