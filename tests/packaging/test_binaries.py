# SPDX-License-Identifier: Apache-2.0
"""What the binaries ask of the loader and offer to it. See docs/architecture.md."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ct2_triton.serve.backend_files import find_backend_files

ENGINE = "libctranslate2.so.4"
# Of the C and C++ runtimes; nothing else may be asked of a machine.
SYSTEM_LIBRARIES = {
    "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "libpthread.so.0", "libdl.so.2",
    "ld-linux-x86-64.so.2",
}  # fmt: skip


@pytest.fixture(scope="module")
def plugin() -> Path:
    return find_backend_files().plugin


@pytest.fixture(scope="module")
def calls() -> Path:
    return find_backend_files().calls


@pytest.fixture(scope="module")
def core() -> Path:
    spec = importlib.util.find_spec("ct2_triton._core")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


def test_the_plugin_exports_entry_points_of_a_backend_only(plugin: Path) -> None:
    """Anything else could take the place of a symbol inside CTranslate2's library."""
    exported = _symbols(plugin, defined=True)
    assert {"TRITONBACKEND_Initialize", "TRITONBACKEND_ModelInstanceExecute"} <= exported
    assert not {name for name in exported if not name.startswith("TRITONBACKEND_")}


def test_the_plugin_asks_for_nothing_of_ctranslate2(plugin: Path) -> None:
    """So a process without calls never maps it."""
    assert set(_dynamic(plugin, "DT_NEEDED", "needed")) <= SYSTEM_LIBRARIES
    assert not {name for name in _symbols(plugin, defined=False) if "11ctranslate2" in name}


def test_the_library_of_calls_exports_one_function(calls: Path) -> None:
    assert _symbols(calls, defined=True) == {"ct2triton_open_calls"}


def test_the_core_exports_its_module_only(core: Path) -> None:
    assert "PyInit__core" in _symbols(core, defined=True)
    assert not {name for name in _symbols(core, defined=True) if "ct2triton" in name}


def test_the_plugin_leaves_the_symbols_of_triton_to_the_server(plugin: Path) -> None:
    assert "TRITONSERVER_ErrorNew" in _symbols(plugin, defined=False)


@pytest.mark.parametrize("binary", ["calls", "core"])
def test_the_engine_is_asked_for_by_its_fixed_name_beside_the_binary(
    binary: str, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(binary)
    needed = _dynamic(path, "DT_NEEDED", "needed")
    assert ENGINE in needed
    assert set(needed) - SYSTEM_LIBRARIES == {ENGINE}
    # DT_RUNPATH would not hold for the libgomp that CTranslate2 before 4.8.4 asks for.
    assert _dynamic(path, "DT_RPATH", "rpath") == ["$ORIGIN"]
    assert _dynamic(path, "DT_RUNPATH", "runpath") == []


def test_the_library_of_calls_carries_the_range_that_pip_installs(calls: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    match = re.search(r'"ctranslate2>=([\d.]+),<=([\d.]+)"', (root / "pyproject.toml").read_text())
    assert match is not None
    assert f"install ctranslate2 {match[1]} to {match[2]}".encode() in calls.read_bytes()


def _dynamic(path: Path, tag: str, attribute: str) -> list[str]:
    with path.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".dynamic")
        assert isinstance(section, DynamicSection)
        return [getattr(entry, attribute) for entry in section.iter_tags(tag)]


def _symbols(path: Path, *, defined: bool) -> set[str]:
    with path.open("rb") as stream:
        table = ELFFile(stream).get_section_by_name(".dynsym")
        assert isinstance(table, SymbolTableSection)
        return {
            symbol.name
            for symbol in table.iter_symbols()
            if symbol.name and (symbol["st_shndx"] != "SHN_UNDEF") == defined
        }
