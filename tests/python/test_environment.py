# SPDX-License-Identifier: Apache-2.0
"""Every flag of every command has an environment variable, by one rule."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.command_parser import add_variables

# Two have CT2_LOG together, the others end the command.
OF_NO_SETTING = {"--help", "--help-all", "--version", "--print-completion", "--verbose", "--quiet"}
COMMANDS = (
    "ct2-serve",
    "ct2-translate",
    "ct2-prepare",
    "ct2-bench",
    "ct2-models list",
    "ct2-live",
    "ct2-gateway",
)


def _parse(variables: dict[str, str], *arguments: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="ct2-x")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--model", required=True)
    parser.add_argument("--url", type=lambda text: text.split(","), default=["localhost"])
    parser.add_argument("--grpc-port", type=int, default=8001)
    parser.add_argument("--kind", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--option", action="append", default=[])
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--model-repository", action="append", type=Path)
    place.add_argument("--install")
    add_variables(parser, variables)
    return vars(parser.parse_args(arguments))


def test_a_variable_is_the_default_of_its_flag() -> None:
    variables = {
        "CT2_X_MODEL": "nllb", "CT2_URL": "a,b", "CT2_X_GRPC_PORT": "9", "CT2_X_KIND": "gpu",
        "CT2_X_FULL": "yes", "CT2_X_OPTION": "a=1 'b=2 3'", "CT2_MODEL_REPOSITORY": "my models",
    }  # fmt: skip
    assert _parse(variables) == {
        "names": [], "model": "nllb", "url": ["a", "b"], "grpc_port": 9, "kind": "gpu",
        "full": True, "option": ["a=1", "b=2 3"], "model_repository": [Path("my models")],
        "install": None,
    }  # fmt: skip


def test_a_flag_counts_more_than_its_variable() -> None:
    variables = {"CT2_X_MODEL": "nllb", "CT2_X_OPTION": "a=1", "CT2_MODEL_REPOSITORY": "models"}
    given = _parse(variables, "--model=m", "--option=b=2", "--option=c=3", "--install=there")
    assert (given["model"], given["option"]) == ("m", ["b=2", "c=3"])
    assert given["install"] == "there"  # though a flag of its group has a variable


def test_a_variable_of_a_subcommand_carries_its_name() -> None:
    def parse(variables: dict[str, str]) -> dict[str, Any]:
        parser = argparse.ArgumentParser(prog="ct2-x")
        parser.add_argument("--rounds", type=int)
        commands = parser.add_subparsers()
        many = commands.add_parser("many")
        many.add_argument("--clients", type=int, action="append")
        many.add_argument("--rounds", type=int, default=argparse.SUPPRESS)
        one = commands.add_parser("one-number")
        one.add_argument("--clients", type=int, default=8)
        add_variables(parser, variables)
        return vars(parser.parse_args([*variables.get("COMMAND", "").split()]))

    variables = {"CT2_X_MANY_CLIENTS": "1 16", "CT2_X_ONE_NUMBER_CLIENTS": "4", "CT2_X_ROUNDS": "2"}
    assert parse(variables) == {"rounds": 2}
    assert parse({**variables, "COMMAND": "many"}) == {"rounds": 2, "clients": [1, 16]}
    assert parse({**variables, "COMMAND": "one-number"}) == {"rounds": 2, "clients": 4}
    with pytest.raises(SystemExit, match="2"):
        parse({"CT2_X_CLIENTS": "1 16"})


def test_an_empty_variable_is_none_and_false_is_false(capsys: pytest.CaptureFixture[str]) -> None:
    given = _parse({"CT2_X_GRPC_PORT": "", "CT2_X_FULL": "0"}, "--model=m")
    assert (given["grpc_port"], given["full"]) == (8001, False)
    with pytest.raises(SystemExit, match="2"):
        _parse({"CT2_X_MODEL": ""})
    assert "--model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("CT2_X_GRPC_PORT", "many", "CT2_X_GRPC_PORT is 'many': invalid int value: 'many'"),
        ("CT2_X_KIND", "tpu", "CT2_X_KIND is 'tpu': invalid choice: 'tpu'"),
        ("CT2_X_FULL", "maybe", "CT2_X_FULL is 'maybe'; it must be one of 1, true, yes, 0"),
        ("CT2_X_OPTION", "'a", 'CT2_X_OPTION is "\'a": No closing quotation'),
    ],
)
def test_a_wrong_variable_is_named(
    name: str, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        _parse({name: text}, "--model=m")
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "hint"),
    [("CT2_X_GRPC_PROT", "; did you mean CT2_X_GRPC_PORT?"), ("CT2_X_SECRET_WORD", "")],
)
def test_a_variable_of_no_option_is_refused(
    name: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        _parse({name: "9"}, "--model=m")
    assert f"the variable {name} names no option{hint}\n" in capsys.readouterr().err
    assert _parse({name: "", "CT2_Y_PORT": "9"}, "--model=m")["grpc_port"] == 8001


def test_variables_that_kubernetes_sets_for_a_service_are_no_options() -> None:
    of_service = {
        "CT2_X_SERVICE_HOST": "10.0.0.1", "CT2_X_SERVICE_PORT": "80",
        "CT2_X_SERVICE_PORT_GRPC": "80",
        "CT2_X_PORT": "tcp://10.0.0.1:80", "CT2_X_PORT_80_TCP": "tcp://10.0.0.1:80",
        "CT2_X_PORT_80_TCP_PROTO": "tcp", "CT2_X_PORT_80_TCP_ADDR": "10.0.0.1",
        "CT2_X_GRPC_PORT": "9", "CT2_X_GRPC_PORT_9_UDP_PORT": "9",
    }  # fmt: skip
    assert _parse(of_service, "--model=m")["grpc_port"] == 9
    with pytest.raises(SystemExit, match="2"):
        _parse({"CT2_X_PORT": "80"}, "--model=m")


@pytest.mark.parametrize(
    ("command", "name", "status"),
    [
        ("ct2-live", "CT2_LIVE_SPEAKER_PASSWORD", 2),
        ("ct2-translate", "CT2_TRANSLATE_BULK_TRIES", 0),
        ("ct2-translate", "CT2_TRANSLATE_BULLK_TRIES", 2),
        ("ct2-translate bulk", "CT2_TRANSLATE_BULK_TRIES", 0),
        ("ct2-translate bulk", "CT2_TRANSLATE_BULK_TRY", 2),
        ("ct2-translate bulk", "CT2_TRANSLATE_STREAM", 0),
    ],
)
def test_a_command_refuses_variables_of_its_own_name_only(
    command: str, name: str, status: int
) -> None:
    program, *words = command.split()
    binary = Path(sys.executable).with_name(program)
    result = subprocess.run(
        [binary, *words, "--help-all"],
        env={**os.environ, name: "1"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == status, result.stderr
    assert (f"the variable {name} names no option" in result.stderr) == (status == 2)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_says_what_every_flag_is_and_names_its_variable(command: str) -> None:
    program, *words = command.split()
    binary = Path(sys.executable).with_name(program)
    environment = {**os.environ, "COLUMNS": "1000"}
    text = subprocess.run(
        [binary, *words, "--help-all"], env=environment, capture_output=True, text=True, check=True
    ).stdout
    rows = re.findall(r"^  (?:-\w(?: \S+)?, )?(--[a-z-]+)(.*(?:\n {10,}.*)?)$", text, re.MULTILINE)
    rows = [(flag, rest) for flag, rest in rows if flag not in OF_NO_SETTING]
    assert len(rows) > 2
    for flag, rest in rows:
        starts = (command.replace(" ", "-"), "ct2", "ct2-models")
        names = {f"{start}-{flag[2:]}".upper().replace("-", "_") for start in starts}
        assert any(f"[${name}]" in rest for name in names), flag
        said = re.split(r"\s{2,}", rest, maxsplit=1)[1]
        assert len(re.sub(r"\(default:?[^)]*\)|\[[^]]*\]", "", said).split()) >= 3, flag


def test_a_command_reads_its_variables() -> None:
    binary = Path(sys.executable).with_name("ct2-translate")
    variables = {"CT2_TRANSLATE_MODEL": "nowhere", "CT2_URL": "127.0.0.1:9"}
    result = subprocess.run(
        [binary], env={**os.environ, **variables}, input="", capture_output=True, text=True
    )
    assert result.returncode == 1
    assert "no connection to 127.0.0.1:9" in result.stderr


def test_the_variable_of_an_option_that_switches_off_switches_off() -> None:
    parser = argparse.ArgumentParser(prog="ct2-x")
    parser.add_argument("--no-files", dest="files", action="store_false")
    add_variables(parser, {"CT2_X_NO_FILES": "1"})
    assert parser.parse_args([]).files is False
    parser = argparse.ArgumentParser(prog="ct2-x")
    parser.add_argument("--no-files", dest="files", action="store_false")
    add_variables(parser, {"CT2_X_NO_FILES": "0"})
    assert parser.parse_args([]).files is True
