# SPDX-License-Identifier: Apache-2.0
"""The command itself: a comparison of a few seconds on the demo model, ending with its report."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from ct2_triton import cli
from ct2_triton.bench.record import Run, figures
from support.commands import run


def bench(arguments: Sequence[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    return run("ct2-bench", *arguments, code=None, folder=folder)


@pytest.mark.server
def test_a_comparison_from_the_model_to_the_report(tmp_path: Path) -> None:
    scenarios = ("single:1", "single:16", "streams:4", "poisson:40")
    contenders = ("ct2-triton-int8", "ctranslate2-int8")
    options = ["--minutes", "0.01", "--rounds", "2", "--output", "out", "--client-processes", "2"]
    options += [text for name in scenarios for text in ("--scenario", name)]
    options += [text for name in contenders for text in ("--contender", name)]
    result = bench(options, tmp_path)
    assert result.returncode == 0, result.stderr
    assert "report: out/report.md" in result.stdout

    run = Run.read(tmp_path / "out" / "run.json")
    assert run.baseline == "ct2-triton-int8"
    assert [scenario.name for scenario in run.scenarios] == list(scenarios)
    for scenario in run.scenarios:
        served = scenario.of("ct2-triton-int8")
        in_process = scenario.of("ctranslate2-int8")
        assert [round_.number for round_ in served] == [0, 1]
        assert len(in_process) == (0 if scenario.name == "poisson:40" else 2)
        languages = 4 if scenario.name == "streams:4" else 1
        for round_ in served + in_process:
            passes, rest = divmod(len(round_.samples), scenario.sentences * languages)
            assert (passes >= 1, rest) == (True, 0)
            assert round_.compared_rows == len(round_.samples)
        for round_ in served:
            assert round_.counts is not None
            # Triton's statistics agree with the samples, request by request.
            assert round_.counts.rows == round_.counts.requests == len(round_.samples)
            values = figures(round_)
            assert values["compute ms"] > 0
            assert values["compute ms"] + values["queue ms"] <= max(
                1000 * ((s.done_s or 0.0) - s.due_s) for s in round_.samples
            )
            # A row's times of tokens are there before its answer is.
            assert 0 < round_.counts.gaps <= round_.counts.first_tokens <= len(round_.samples)
            assert values["longest gap ms"] > 0
            assert values["first token ms"] > 0
            assert round_.rss_bytes >= round_.pss_bytes > 2**20
    # The same weights in the same engine, one row at a time: int8 answers are equal too.
    assert not any(round_.different_rows for round_ in run.scenarios[0].rounds)

    report = (tmp_path / "out" / "report.md").read_text()
    pictures = ("single.png", "streams.png", "poisson.png")
    assert all(f"]({name})" in report and (tmp_path / "out" / name).exists() for name in pictures)

    both = bench(["compare", "out/run.json", "out/run.json"], tmp_path)
    assert both.returncode == 0, both.stderr
    assert all(name in both.stdout for name in (*scenarios, *contenders))
    assert "differs:" not in both.stdout


@pytest.mark.server
def test_a_shape_is_made_and_its_sentences_end(tmp_path: Path) -> None:
    options = ["--shape", "transformer-base", "--scenario", "single:4", "--minutes", "0.02"]
    options += ["--contender", "ct2-triton-int8", "--rounds", "1", "--output", "out"]
    result = bench(options, tmp_path)
    assert result.returncode == 0, result.stderr
    run = Run.read(tmp_path / "out" / "run.json")
    assert run.setup["model"] == "transformer-base (--shape)"
    ((round_,),) = (scenario.of("ct2-triton-int8") for scenario in run.scenarios)
    for sample in round_.samples:  # a copy of the text, without the language and the end
        assert sample.generated_tokens == sample.source_tokens - 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scenario", "storm:4"], "'storm:4' is not a scenario"),
        (["--contender", "abacus-int8"], "no contender 'abacus-int8' on a cpu; there are ct2-"),
        (["--contender", "ctranslate2-int8@999"], "needs 999 cores; contenders have "),
        (["--contender", "ct2-triton-float16"], "no contender 'ct2-triton-float16' on a cpu"),
        (
            ["--device", "gpu", "--contender", "fastapi-transformers-float32"],
            "no contender 'fastapi-transformers-float32' on a gpu; there are ct2-triton-float32",
        ),
        (["--text", "absent.txt"], "cannot read absent.txt"),
        (["--shape", "nllb-600m", "--text", "absent.txt"], "cannot read absent.txt"),
        (["--scenario", "single:1001"], "has 2000 different sentences; single:1001 needs 2002"),
        (["--output", "."], ". exists; name a new folder with --output"),
        (["compare", "absent.json", "absent.json"], "cannot read absent.json: No such file"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(
    tmp_path: Path,
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.bench(options) == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("ct2-bench: ")
    assert message in line
    assert list(tmp_path.iterdir()) == []


def test_too_short_a_text_is_refused_before_a_model_is_prepared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "few.txt"
    text.write_text("One.\nTwo.\n\nOne.\n", encoding="utf-8")
    options = ["--model", "nobody/nothing", "--text", str(text), "--scenario", "single:48"]
    assert cli.bench([*options, "--output", str(tmp_path / "results")]) == 1
    said = "ct2-bench: few.txt has 2 different sentences; single:48 needs 96\n"
    assert capsys.readouterr().err == said
