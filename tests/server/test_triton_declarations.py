# SPDX-License-Identifier: Apache-2.0
"""Our declarations of Triton's C API against the library of the server we run with."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.server

HEADER = Path(__file__).resolve().parents[2] / "backend" / "abi" / "triton_c_api.h"

# Asks the library what its own numbers mean. In a process of its own: the loader needs the path of
# the libraries beside it, and this process should not carry a server.
ASK = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
functions = json.loads(sys.argv[2])

def text(function, *arguments):
    entry = getattr(library, function)
    entry.restype = ctypes.c_char_p
    return (entry(*arguments) or b"").decode()

def error_code(code):
    library.TRITONSERVER_ErrorNew.restype = ctypes.c_void_p
    error = ctypes.c_void_p(library.TRITONSERVER_ErrorNew(code, b""))
    return text("TRITONSERVER_ErrorCodeString", error)

major, minor = ctypes.c_uint32(), ctypes.c_uint32()
library.TRITONBACKEND_ApiVersion(ctypes.byref(major), ctypes.byref(minor))
print(json.dumps({
    "version": [major.value, minor.value],
    "missing": [name for name in functions if not hasattr(library, name)],
    "TYPE": [text("TRITONSERVER_DataTypeString", i) for i in range(15)],
    "MEMORY": [text("TRITONSERVER_MemoryTypeString", i) for i in range(3)],
    "PARAMETER": [text("TRITONSERVER_ParameterTypeString", i) for i in range(5)],
    "INSTANCEGROUPKIND": [text("TRITONSERVER_InstanceGroupKindString", i) for i in range(4)],
    "ERROR": [error_code(i) for i in range(8)],
}))
"""


@pytest.fixture(scope="module")
def header() -> str:
    return HEADER.read_text()


@pytest.fixture(scope="module")
def library(header: str) -> Any:
    spec = importlib.util.find_spec("pytriton")
    if spec is None or spec.origin is None:
        pytest.skip("the library is looked for in the wheel nvidia-pytriton")
    folder = Path(spec.origin).parents[1] / "nvidia_pytriton.libs"
    (path,) = folder.glob("libtritonserver*.so*")
    functions = re.findall(r"\b(TRITON(?:SERVER|BACKEND)_\w+)\(", header)
    # Those of the last part are the backend's own.
    own = header[header.index("Entry points that this backend implements") :]
    called = [name for name in functions if f"{name}(" not in own]
    assert len(called) > 40
    answer = subprocess.run(
        [sys.executable, "-c", ASK, str(path), json.dumps(called)],
        env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(answer.stdout)


def test_the_library_has_every_function(library: Any) -> None:
    assert library["missing"] == []


def test_the_required_version_is_not_newer_than_the_library(header: str, library: Any) -> None:
    major, minor = (int(n) for n in re.findall(r"kBackendApi(?:Major|Minor) = (\d+);", header))
    assert library["version"][0] == major
    assert library["version"][1] >= minor


def values(header: str, prefix: str) -> dict[str, int]:
    found = re.findall(rf"\bTRITONSERVER_{prefix}_(\w+) = (\d+),", header)
    return {name: int(value) for name, value in found}


@pytest.mark.parametrize("prefix", ["TYPE", "MEMORY", "PARAMETER", "INSTANCEGROUPKIND", "ERROR"])
def test_enumerations(header: str, library: Any, prefix: str) -> None:
    spelled = {
        name: library[prefix][value].upper().replace(" ", "_").replace("ARGUMENT", "ARG")
        for name, value in values(header, prefix).items()
    }
    # Triton's words for no type, and for a code that 2.51 knows but has no word for.
    unknown = {"INVALID": "<INVALID>", "CANCELLED": "<INVALID_CODE>"}
    assert spelled == {name: unknown.get(name, name) for name in spelled}
    assert len(spelled) == len(library[prefix])
