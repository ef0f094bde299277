# SPDX-License-Identifier: Apache-2.0
"""What main() makes of failures that no command expects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ct2_triton import cli
from ct2_triton.cli import EXIT_FAILED, EXIT_INTERRUPTED, main
from ct2_triton.translate import cli as translate

MODELS = str(Path(sys.executable).with_name("ct2-models"))


def test_a_full_disk_is_said_in_a_line(tmp_path: Path) -> None:
    """Also where Python itself writes the output, at its end."""
    command = [MODELS, "list", "--model-repository", str(tmp_path)]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        failed = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert failed.returncode == EXIT_FAILED
    assert failed.stderr == "ct2-models: No space left on device\n"
    assert subprocess.run(command, capture_output=True, check=True).stdout
    closed = ["bash", "-c", '"$@" >&-', "bash", *command]  # there is no output at all
    assert subprocess.run(closed, capture_output=True, check=True).stderr == b""


def test_a_file_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(_: object) -> int:
        return len((tmp_path / "nothing").read_bytes())

    monkeypatch.setattr("ct2_triton.models.cli.run", fail)
    assert main("ct2-models", "ct2_triton.models.cli", ["list"]) == EXIT_FAILED
    assert capsys.readouterr().err == f"ct2-models: No such file or directory: {tmp_path}/nothing\n"


def test_a_failure_without_words_is_named_and_the_output_is_kept() -> None:
    program = (
        "import sys; from ct2_triton import cli; from ct2_triton.models import cli as models\n"
        "def run(_):\n    print('done so far')\n    raise TimeoutError\n"
        "models.run = run\n"
        "sys.exit(cli.main('ct2-models', 'ct2_triton.models.cli', ['list']))"
    )
    failed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert failed.returncode == EXIT_FAILED
    assert (failed.stdout, failed.stderr) == ("done so far\n", "ct2-models: TimeoutError()\n")


def test_an_interrupt_while_modules_are_imported_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("importlib.import_module", interrupted)
    assert main("ct2-models", "ct2_triton.models.cli", ["list"]) == EXIT_INTERRUPTED
    assert capsys.readouterr().err == "ct2-models: interrupted\n"


@pytest.mark.parametrize(
    "command", ["serve", "prepare", "models", "translate", "live", "gateway", "bench"]
)
def test_help_fits_on_a_screen_and_a_misuse_is_a_line(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run = getattr(cli, command)
    texts = []
    for flag in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as ended:
            run([flag])
        assert not ended.value.code
        texts.append(capsys.readouterr().out)
    usual, everything = texts
    assert len(usual.splitlines()) <= 50
    assert "[$CT2_" in everything
    with pytest.raises(SystemExit) as ended:
        run(["--no-such-option"])
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"ct2-{command}: ")
    assert line.endswith(f"; see ct2-{command} --help")


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("translate --modle x", "unknown option --modle; did you mean --model?"),
        ("translate --modle=x", "unknown option --modle; did you mean --model?"),
        ("translate -modle x", "unknown option -modle; did you mean --model?"),
        ("translate bulk --wokers 2", "unknown option --wokers; did you mean --workers?"),
        ("live -x --model m", "unknown option -x"),
        ("gateway --modle-repository x", "unknown option --modle-repository; "
         "did you mean --model-repository?"),
        ("models list --modle-repository x", "unknown option --modle-repository; "
         "did you mean --model-repository?"),
        ("models --model-repository x list", "unknown option --model-repository; "
         "write it after the word list"),
        ("prepare x --quantisation int8", "unknown option --quantisation; "
         "did you mean --quantization?"),
        ("serve demo --htpp-port 1", "unknown option --htpp-port; did you mean --http-port?"),
        ("bench --verion", "unknown option --verion; did you mean --version?"),
    ],
)  # fmt: skip
def test_an_unknown_option_is_named_with_the_nearest_one(
    words: str, refusal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where an option that is required is missing, because it was mistyped."""
    command, *arguments = words.split()
    with pytest.raises(SystemExit) as ended:
        getattr(cli, command)(arguments)
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    program = " ".join([command, *(word for word in arguments[:1] if word in {"bulk", "list"})])
    assert line == f"ct2-{program}: {refusal}; see ct2-{program} --help"


@pytest.mark.parametrize(
    "words",
    [
        "--model m --url=h:1 -i - --timeout -1",
        "--mod m",
        "-q --model m --keep",
        "--model m -ifile",
    ],
)
def test_a_value_and_a_short_form_are_no_unknown_option(words: str) -> None:
    parser = cli.command_parser("ct2-translate", translate)
    assert parser._unknown_option([*words.split(), "--with a space", "--", "--unknown"]) is None


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        ("translate", "--timeout", "0"),
        ("translate", "--timeout", "nan"),
        ("translate", "--max-in-flight", "0"),
        ("live", "--min-interval-ms", "-1"),
        ("live", "--mask-words", "-1"),
        ("live", "--max-words", "1"),
        ("live", "--cue-line-chars", "9"),
        ("live", "--option", "source=en"),
        ("translate", "--option", "targets=de"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_the_name_of_its_option(
    command: str, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before a server is asked, which is not there."""
    with pytest.raises(SystemExit) as ended:
        getattr(cli, command)(["--model", "m", "--url", "localhost:1", option, value])
    assert ended.value.code == 2
    name = value.partition("=")[0]
    assert f"argument {option}: '{name}' is not a " in capsys.readouterr().err


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "ct2_triton"]
    done = subprocess.run(
        [*command, "models", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("ct2-models ")
    refused = subprocess.run([*command, "no-such"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "one of serve, prepare, models, translate, gateway, live, bench" in refused.stderr


@pytest.mark.parametrize(("command", "extra"), [("gateway", "gateway"), ("live", "live")])
def test_a_command_without_its_extra_says_how_to_install_it(command: str, extra: str) -> None:
    """As in an environment with ct2-triton-client alone, which has no aiohttp."""
    options = ["--model", "x"]
    if command == "live":
        options += ["--from", "en", "--to", "de"]
    program = f"""
import sys
sys.modules["aiohttp"] = None
from ct2_triton import cli
sys.argv[1:] = {options}
sys.exit(cli.{command}())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr == (
        f"ct2-{command}: the extra is not installed: pip install 'ct2-triton-client[{extra}]'\n"
    )
