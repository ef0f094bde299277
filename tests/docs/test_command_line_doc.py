# SPDX-License-Identifier: Apache-2.0
"""docs/command-line.md is what the parsers say, and has every flag that --help shows."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import command_line_doc
from ct2_triton.cli import command_parser
from ct2_triton.command_parser import add_variables

ROOT = Path(command_line_doc.__file__).parents[1]
PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")})
CODE = ("backend", "python", "deploy", "tests")  # what reads a variable that is of no command
PROGRAMS = [program for program, _ in command_line_doc.commands()]


def test_the_page_is_up_to_date() -> None:
    assert command_line_doc.main(["--check"]) == 0


def test_a_page_that_differs_fails_the_check_and_is_rewritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(command_line_doc.PAGE.read_text(encoding="utf-8") + "x", encoding="utf-8")
    assert command_line_doc.main(["--check", "--file", str(page)]) == 1
    assert "page.md is out of date: run tools/command_line_doc.py" in capsys.readouterr().err
    assert command_line_doc.main(["--file", str(page)]) == 0
    assert page.read_bytes() == command_line_doc.PAGE.read_bytes()


def test_the_commands_are_those_of_the_package() -> None:
    text = "".join(path.read_text() for path in (*ROOT.glob("*.toml"), *ROOT.glob("python/*.toml")))
    scripts = re.findall(r'^(ct2-\w+) = "ct2_triton\.cli:', text, re.MULTILINE)
    assert sorted(scripts) == [name for name in PROGRAMS if " " not in name]
    assert "ct2-translate bulk" in PROGRAMS


def test_an_option_has_one_kind_of_value_in_all_commands() -> None:
    kinds: dict[str, set[str]] = {}
    page = command_line_doc.PAGE.read_text(encoding="utf-8")
    for flag, value in re.findall(r"^\| .*?`(--[\w-]+)`(?: `([^`]+)`)? \|", page, re.MULTILINE):
        kinds.setdefault(flag, set()).add(value)
    assert len(kinds) > 100
    several = {flag: sorted(found) for flag, found in kinds.items() if len(found) > 1}
    assert several == {
        "--glossary": ["NAME=FILE", "[LANGUAGE=]FILE"],  # a request to the gateway names one
        "--model": ["MODEL", "NAMES"],  # the gateway has several
        "--output": ["FILE", "FOLDER"],
        "--to": ["LANGUAGE", "LANGUAGES"],
    }


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_flag_of_the_help_is_on_the_page(program: str) -> None:
    name, *words = program.split()
    command = [Path(sys.executable).with_name(name), *words, "--help-all"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    options = shown.split("options:")[1]
    page = command_line_doc.PAGE.read_text(encoding="utf-8")
    section = re.split(rf"^## {program}$", page, flags=re.MULTILINE)[1].split("\n## ")[0]
    section += page.partition("\n## ")[0]
    flags = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", options, re.MULTILINE))
    assert len(flags) > 5
    assert {flag for flag in flags if f"`{flag}`" not in section} == set()


def test_every_variable_of_the_pages_exists() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = set(re.findall(r"\bCT2_[A-Z0-9_]+\b", text))
    words = {program.replace("-", "_").replace(" ", "_").upper() for program in PROGRAMS}
    of_commands = {name for name in named if name.startswith(tuple(f"{word}_" for word in words))}
    assert len(of_commands) >= 5
    assert of_commands - _variables() == set()
    code = "".join(
        path.read_text(encoding="utf-8", errors="replace")
        for folder in CODE
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".cc", ".h", ".cfg", ".sh")
    )
    assert named - of_commands - set(re.findall(r"\bCT2_[A-Z0-9_]+\b", code)) == set()


def _variables() -> set[str]:
    """Give the variables that --help-all of the commands shows."""
    found: set[str] = set()
    for program, module in command_line_doc.commands():
        parser = command_parser(program, importlib.import_module(module))
        found |= add_variables(parser, {})
    return found
