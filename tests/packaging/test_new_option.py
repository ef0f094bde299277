# SPDX-License-Identifier: Apache-2.0
"""A new decoding option takes the edits that CONTRIBUTING.md lists, and no others."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import parameters_doc
from support.commands import run

ROOT = Path(__file__).resolve().parents[2]

# Each file with the line behind which a line is added.
EDITS = {
    "backend/src/config/decoding_options.h": (
        "  float repetition_penalty = 1;",
        "  float echo_penalty = 1;\n",
    ),
    "backend/src/config/parameter_table.cc": (
        "std::vector<Parameter> SearchParameters() {\n  return {",
        '      {"echo_penalty", &D::echo_penalty, kRequest, FromTo(0.5, 4),\n'
        '       "Factor on tokens of the source.", "1.5"},\n',
    ),
    "backend/src/engine/calls/library/call_options.cc": (
        "  to.repetition_penalty = from.repetition_penalty;",
        "  to.repetition_penalty = from.repetition_penalty * from.echo_penalty;\n",
    ),
}
# Those that this test cannot do: a run of a tool, and the option's own test.
BESIDE = {"tools/parameters_doc.py", "tests/server/test_options.py"}

# What the program below needs; nothing else of the backend knows of single options.
SOURCES = [
    "parameters",
    "parameter_table",
    "decoding_options",
    "parse_value",
    "nearest_name",
    "tensor_table",
]
PROGRAM = """
#include <cstdio>
#include <string>
#include "config/parameters.h"
#include "error.h"
using namespace ct2triton;

int main() {
  DecodingOptions plain, changed;
  EngineOptions engine;
  RequestOptions request;
  SetRequestParameter("echo_penalty", std::string("1.5"), engine, &changed, &request);
  std::string refusal;
  try {
    SetRequestParameter("echo_penalty", std::string("9"), engine, &plain, &request);
  } catch (const Error& error) {
    refusal = error.what();
  }
  const Parameter* row = nullptr;
  for (const Parameter& one : Parameters()) {
    if (one.name == "echo_penalty") row = &one;
  }
  std::printf("%g\\n%d\\n%s\\n%s\\n%s\\n%s\\n", changed.echo_penalty, plain == changed,
              refusal.c_str(), std::string(row->help).c_str(), Allowed(*row).c_str(),
              std::string(row->example).c_str());
}
"""


@pytest.fixture(scope="module")
def changed_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the backend with the new option in it."""
    copy = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "backend", copy / "backend")
    for name, (anchor, added) in EDITS.items():
        text = (copy / name).read_text(encoding="utf-8")
        assert text.count(anchor) == 1, name
        end = text.index("\n", text.index(anchor) + len(anchor)) + 1
        (copy / name).write_text(text[:end] + added + text[end:], encoding="utf-8")
    return copy


Compile = Callable[..., None]


@pytest.fixture
def compile_in(changed_tree: Path) -> Compile:
    import nlohmann_json

    source = changed_tree / "backend"
    flags = ["-std=c++17", "-O0", "-w", f"-I{source}", f"-I{source / 'src'}", f"-I{source / 'abi'}"]
    flags.append(f"-I{Path(nlohmann_json.__file__).parent / 'include'}")

    def compile_one(*arguments: str) -> None:
        run("g++", *flags, *arguments)

    return compile_one


def test_the_option_is_parsed_compared_and_documented(
    changed_tree: Path, compile_in: Compile, tmp_path: Path
) -> None:
    config = changed_tree / "backend" / "src" / "config"
    (tmp_path / "program.cc").write_text(PROGRAM, encoding="utf-8")
    sources = [config / f"{name}.cc" for name in SOURCES]
    sources += [config.parent / "error.cc", tmp_path / "program.cc"]
    objects = [tmp_path / f"{source.stem}.o" for source in sources]
    with ThreadPoolExecutor(2) as pool:
        jobs = zip(sources, objects, strict=True)
        list(pool.map(lambda job: compile_in("-c", str(job[0]), "-o", str(job[1])), jobs))
    compile_in(*map(str, objects), "-o", str(tmp_path / "program"))
    output = subprocess.run([tmp_path / "program"], check=True, capture_output=True, text=True)
    value, equal, refusal, help_text, allowed, example = output.stdout.splitlines()
    assert (value, equal) == ("1.5", "0")
    assert refusal == (
        'parameter "echo_penalty": the value "9" is not allowed; give a number from 0.5 to 4'
    )
    row: dict[str, Any] = {"name": "echo_penalty", "scope": "request", "kind": "decoding"}
    row |= {"type": "number", "default": 1.0, "aliases": [], "help": help_text}
    page = parameters_doc.page([row | {"allowed": allowed, "example": example}])
    assert "### `echo_penalty`\n\nFactor on tokens of the source.\n" in page
    assert f"value {{ string_value: {json.dumps(example)} }}" in page


def test_the_engine_compiles_with_it(changed_tree: Path, compile_in: Compile) -> None:
    engine = changed_tree / "backend" / "src" / "engine"
    compile_in("-fsyntax-only", str(engine / "calls" / "library" / "call_options.cc"))


def test_contributing_lists_these_edits() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (row,) = (line for line in text.splitlines() if line.startswith("| add a decoding option"))
    assert set(re.findall(r"(?:backend|tools|tests)/[\w/]+\.\w+", row)) == EDITS.keys() | BESIDE
