# SPDX-License-Identifier: Apache-2.0
"""-v, -q and CT2_LOG; and what a shell completes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ct2_triton import cli
from support.commands import run

COMMANDS = Path(sys.executable).parent
PROGRAMS = ("ct2-serve", "ct2-translate", "ct2-prepare", "ct2-bench", "ct2-models")


Prepare = Callable[..., list[str]]


@pytest.fixture
def prepare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Prepare:
    """Runs ct2-prepare in this process, with flags and variables; gives what it logs."""
    monkeypatch.chdir(tmp_path)

    def logged(*flags: str, **variables: str) -> list[str]:
        with monkeypatch.context() as environment:
            for name, value in variables.items():
                environment.setenv(name, value)
            assert cli.prepare(["demo", "--force", *flags]) == 0
        said = capsys.readouterr()
        assert said.out == "model_repository/demo\n"
        return said.err.splitlines()

    return logged


def test_steps_are_logged_as_much_as_is_asked_for(prepare: Prepare) -> None:
    usual = prepare()
    assert usual
    assert all(line.startswith("ct2-prepare: ") for line in usual)
    assert prepare("-q") == []
    assert prepare(CT2_LOG="error") == []
    assert prepare("-v", CT2_LOG="error") == usual
    assert prepare("--quiet", CT2_LOG="debug") == []


def test_an_error_is_said_however_quiet_and_its_place_when_asked(tmp_path: Path) -> None:
    quiet = run("ct2-serve", "-q", "--model-repository", "none", folder=tmp_path, code=1)
    assert quiet.stderr.startswith("ct2-serve: none is not a folder")
    assert len(quiet.stderr.splitlines()) == 1
    command = ("ct2-serve", "--model-repository", "none")
    loud = run(*command, folder=tmp_path, code=None, CT2_LOG="DEBUG")
    assert loud.returncode == 1
    assert loud.stderr.startswith(quiet.stderr)
    assert "ModelRepositoryError" in loud.stderr


def test_a_wrong_level_is_refused(tmp_path: Path) -> None:
    wrong = run("ct2-prepare", "demo", folder=tmp_path, code=2, CT2_LOG="loud")
    assert "CT2_LOG is 'loud'; it must be one of debug, info, warning, error" in wrong.stderr
    both = run("ct2-prepare", "demo", "-q", "-v", folder=tmp_path, code=2)
    assert "not allowed with" in both.stderr


def test_lines_have_times_and_levels_or_are_json(tmp_path: Path, prepare: Prepare) -> None:
    full = prepare("--log-format", "full")
    assert all(
        re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO ct2-prepare: ", line)
        for line in full
    )
    lines = [json.loads(line) for line in prepare(CT2_LOG_FORMAT="json")]
    assert {(line["level"], line["command"]) for line in lines} == {("info", "ct2-prepare")}
    assert [line.partition("ct2-prepare: ")[2] for line in full] == [
        line["message"] for line in lines
    ]
    done = run("ct2-serve", "--model-repository", "none", folder=tmp_path, code=1,
               CT2_LOG_FORMAT="json")  # fmt: skip
    [line] = map(json.loads, done.stderr.splitlines())
    assert line["level"] == "error"
    assert line["message"].startswith("none is not a folder")


def test_the_library_alone_prints_nothing(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path\n"
        "from ct2_triton.prepare import PrepareOptions, prepare\n"
        "prepare(PrepareOptions('demo', Path('here')))\n"
    )
    done = run(sys.executable, "-c", script, folder=tmp_path)
    assert (done.stdout, done.stderr) == ("", "")
    assert (tmp_path / "here" / "demo").is_dir()


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh"])
def test_each_command_prints_completions(
    program: str, shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        getattr(cli, program.removeprefix("ct2-"))(["--print-completion", shell])
    assert not ended.value.code
    script = capsys.readouterr().out
    assert program in script
    assert "version" in script


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("ct2-serve", "--mod"), ["--model-repository"]),
        (("ct2-prepare", "--quantization", "int8_fl"), ["int8_float16", "int8_float32"]),
        (("ct2-translate", "--mo"), ["--model", "--model-repository"]),
    ],
)
def test_bash_completes_flags_and_choices(
    tmp_path: Path, words: tuple[str, ...], found: list[str]
) -> None:
    (tmp_path / "complete").write_text(
        run(words[0], "--print-completion", "bash", folder=tmp_path).stdout, encoding="utf-8"
    )
    function = f"_shtab_{words[0].replace('-', '_')}"
    script = (
        f"source ./complete; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
        f"{function} {words[0]} {words[-1]}; echo ${{COMPREPLY[@]}}"
    )
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) >= set(found)
    assert all(word.startswith(words[-1]) for word in done.stdout.split())
