# SPDX-License-Identifier: Apache-2.0
"""The command line of ct2-prepare, in this process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ct2_triton import cli
from ct2_triton.prepare import progress
from ct2_triton.prepared_model import PreparedModel
from support import forked
from support.tiny import tiny_checkpoint


def test_a_whole_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_EVERY_S", 0.0)
    arguments = [str(tiny_checkpoint("nllb")), "--model-repository", str(tmp_path), "--name", "m"]
    arguments += ["--quantization", "float32", "--set", "beam_size=2", "--instance-kind", "cpu"]
    assert cli.prepare(arguments) == 0
    captured = capsys.readouterr()
    assert captured.out.strip() == str(tmp_path / "m")
    assert "licence not stated" in captured.err
    assert "madeupword0 .. madeupword1" in captured.err
    for step in ("transformers, greedy search", "CTranslate2 in float32"):
        assert f"{step}: 12 of 13 sentences" in captured.err
    assert "13 of 13 sentences come out the same" in captured.err
    assert PreparedModel.read(tmp_path / "m").manifest["conversion"]["settings"] == {
        "beam_size": "2"
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["./no-such-folder"], "no file or folder ./no-such-folder"),
        (["a/b/c"], "no file or folder a/b/c"),
        (["{empty}"], "there is no model: neither config.json"),
        (["{empty}", "--revision", "v1"], "no revision 'v1'"),
        (["{checkpoint}", "--set", "beam_size"], "not of the form name=value"),
        (["{checkpoint}", "--set", "beem_size=1"], "beam_size"),
        (["{checkpoint}", "--name", "a b"], "cannot be the name"),
    ],
)
def test_failures_are_one_line_and_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    places = {"empty": tmp_path / "empty", "checkpoint": tiny_checkpoint("nllb")}
    given = [argument.format(**places) for argument in arguments]
    assert cli.prepare([*given, "--model-repository", str(tmp_path / "repository")]) == 1
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("ct2-prepare: ")
    assert message in last
    assert not (tmp_path / "repository").exists()


@pytest.mark.parametrize("arguments", [[], ["x", "--quantization", "int4"], ["x", "--bogus"]])
def test_misuse_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.prepare(arguments)
    assert stop.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith("; see ct2-prepare --help")


def test_a_checkpoint_whose_tokenizer_is_damaged(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = checkpoint_copy("m2m100")
    (checkpoint / "sentencepiece.bpe.model").write_bytes(b"no model")
    repository = tmp_path / "repository"
    assert cli.prepare([str(checkpoint), "--model-repository", str(repository)]) == 1
    assert "cannot load the tokenizer" in capsys.readouterr().err
    assert not repository.exists()


def test_a_tokenizer_that_transformers_5_saved(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Version 5 writes language tokens as a list under a name that version 4 takes for a map."""
    checkpoint = checkpoint_copy("nllb")
    for name, values in (
        ("tokenizer_config.json", {"extra_special_tokens": ["ace_Arab", "ace_Latn"]}),
        ("config.json", {"transformers_version": "5.23.0"}),
    ):
        content = json.loads((checkpoint / name).read_text(encoding="utf-8"))
        (checkpoint / name).write_text(json.dumps({**content, **values}), encoding="utf-8")
    assert cli.prepare([str(checkpoint), "--model-repository", str(tmp_path / "repository")]) == 1
    assert "it was saved by transformers 5.23.0" in capsys.readouterr().err


def test_damaged_weights(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = checkpoint_copy("nllb")
    with (checkpoint / "model.safetensors").open("r+b") as file:
        file.truncate(1000)
    repository = tmp_path / "repository"
    assert cli.prepare([str(checkpoint), "--model-repository", str(repository)]) == 1
    assert "CTranslate2 cannot convert" in capsys.readouterr().err
    assert not repository.exists()


@pytest.mark.parametrize("command", [("prepare",), ("serve", "--free-ports", "--log-file", "-")])
def test_an_interrupt_says_what_is_kept(command: tuple[str, ...], tmp_path: Path) -> None:
    options = ("demo", "--quantization", "float32", "--model-repository", str(tmp_path))
    line = [sys.executable, "-m", "ct2_triton", *command, *options]
    with forked.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "licence" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130
    kept = "interrupted: a model is written whole or not at all; what was downloaded is kept\n"
    assert said.endswith(kept)
    assert not list(tmp_path.iterdir())
