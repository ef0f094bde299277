# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_check.sh and what it is made of, on the processor; the rest where there is a GPU."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import device_report
import gpu_report
from ct2_triton.bench.contenders import contender_names, make_contender
from ct2_triton.bench.record import Round, Run, Sample, ScenarioRecord
from ct2_triton.bench.setup import Setup
from ct2_triton.serve.machine import count_gpus
from device_report import TWICE, Outcome
from support.commands import run

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "gpu_check.sh"
needs_no_gpu = pytest.mark.skipif(count_gpus() > 0, reason="there is a GPU here")


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return run(*command, code=None, folder=ROOT)


@pytest.mark.server
def test_the_short_check_on_a_processor_passes_and_writes_its_report(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^(tools/gpu_check\.sh --cpu.*) gpu-check$", page, re.MULTILINE)
    result = _run("bash", "-c", f"{command} {tmp_path / 'out'}")
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert result.returncode == 0, report
    assert "FAILED" not in report
    assert report.count("\nPassed.\n") == 5
    # Each model of the comparison has answered: the types of this processor, and two instances.
    rows = re.findall(r"^\| (\w[\w-]*) \| (\d+) \(.*?\) \| (\d+) \(.*?\) \|", report, re.MULTILINE)
    assert [name for name, _, _ in rows] == [*device_report.types_of("cpu"), TWICE]
    exact = [row[1:] for row in rows if row[0] in ("float32", TWICE)]
    assert exact == [("0", "0"), ("0", "0")]
    # The comparison of speed is part of it, with its picture.
    assert "- device: cpu" in report
    assert "| python-ctranslate2-int8 |" in report
    (picture,) = re.findall(r"!\[.*\]\((.*\.png)\)", report)
    assert (tmp_path / "out" / picture).is_file()


@pytest.mark.server
def test_a_step_that_fails_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    options = ["--cpu", "--short", "--model", str(tmp_path / "absent")]
    result = _run(SCRIPT, *options, "--output", tmp_path / "out")
    assert result.returncode == 1
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)\n\n(Passed|FAILED)", report, re.MULTILINE)
    assert headings == [
        ("A model is prepared", "FAILED"),
        ("The server and the engine", "FAILED"),
        ("Tests that need a GPU", "Passed"),
        ("Answers and memory", "FAILED"),
        ("Speed", "FAILED"),
    ]


@needs_no_gpu
def test_without_a_gpu_it_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    result = _run(SCRIPT, "--output", tmp_path / "out")
    assert (result.returncode, (tmp_path / "out").exists()) == (2, False)
    assert "--cpu runs the same steps" in result.stderr
    assert _run(SCRIPT, "--gpus", "1").returncode == 2
    assert "no part all" in _run(SCRIPT, "--part", "all").stderr
    with pytest.raises(SystemExit) as ended:
        device_report.main([])
    assert ended.value.code == 2


def test_a_model_that_is_never_unloaded_ends_the_comparison(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class NeverUnloads:
        def __getattr__(self, name: str) -> object:
            return lambda *_: None

    server = device_report.Server.__new__(device_report.Server)
    server.client = NeverUnloads()  # type: ignore[assignment]
    monkeypatch.setattr(server, "used_bytes", lambda: 0)
    monkeypatch.setattr(server, "_state", lambda _: "UNLOADING")
    monkeypatch.setattr(device_report, "_UNLOAD_LIMIT_S", 0.1)
    with pytest.raises(TimeoutError, match="int8 is UNLOADING 0.1 s after its unload"):
        server.measure_load(Outcome("int8"))


def test_a_float32_answer_that_differs_fails_the_comparison_and_others_do_not() -> None:
    right, wrong = [(1, 2), (3,)], [(1, 2), (4,)]
    outcomes = [
        Outcome("float32", alone=right, together=right, engine=right),
        Outcome("int8", alone=wrong, together=right, engine=right),
        Outcome(TWICE, alone=right, together=wrong, engine=right),
    ]
    assert device_report.is_exact(outcomes)
    page = device_report.markdown(outcomes, "gpu", "m", "float32")
    assert "| int8 | 1 (50.00%) | 1 (50.00%) | 1 (50.00%) | 0 | 0 |" in page
    assert f"| {TWICE} | 0 (0.00%) | 1 (50.00%) | 0 (0.00%) | 0 | 0 |" in page
    outcomes[2].alone = wrong
    assert not device_report.is_exact(outcomes)
    assert not device_report.is_exact(outcomes[1:2])


def test_ratios_and_steps_are_held_against_the_aims() -> None:
    def one(contender: str, seconds: float) -> Round:
        samples = tuple(Sample(i, 0, 0.0, seconds, 10, 9) for i in range(4))
        return Round(contender, 0, seconds, 4, samples, 1.0, 0.0, 0.0, 0, 0, None, client_busy=0.8)

    rounds = (one(gpu_report.CALLS, 2.0), one(gpu_report.LOOP, 0.25))
    scenario = ScenarioRecord("single:16", "", 4, {}, rounds)
    run_ = Run("", gpu_report.CALLS, {}, {}, {}, {}, {}, (scenario,))
    step = {"model": "transformer-base-float16", "steps_of_a_round": 50, "rows": 16}
    times = [{**step, "rounds_ms": [15.0, 10.0, 11.0]}, {**step, "rows": 128, "rounds_ms": [99.0]}]

    table = gpu_report.aims_table({"transformer-base": run_}, times)

    ours = "of ct2-triton-loop-float16 / ct2-triton-float16"
    assert f"| transformer-base, single:16: source tokens/s {ours} | 8 | >= 4 | yes |" in table
    assert f"| transformer-base, single:16: p95 ms {ours} | 0.125 | <= 0.25 | yes |" in table
    assert f"| nllb-600m, single:1: source tokens/s {ours} | not measured | >= 3 | no |" in table
    assert "| step of 16 rows, transformer-base, ms | 0.22 | <= 0.25 | yes |" in table
    assert "step of 128" not in table
    assert "transformer-base: single:16: ct2-triton-loop-float16: a process of the load" in table


def test_contenders_on_a_gpu_are_told_so(tmp_path: Path) -> None:
    names = contender_names("gpu")
    assert "python-transformers-float16" in names
    assert not [name for name in names if name.startswith(("fastapi", "ct2-triton-calls"))]
    setup = Setup("demo", tmp_path, device="gpu", cores=4)
    contender = make_contender("python-transformers-bfloat16", setup)
    settings = contender.translator_settings()  # type: ignore[attr-defined]
    assert settings.library_device == "cuda"
    assert contender.settings()["instances"].startswith("1 for each model")


@pytest.mark.gpu
@pytest.mark.server
def test_float32_on_a_gpu_is_exact(tmp_path: Path) -> None:
    if count_gpus() == 0:
        pytest.skip("no GPU here")
    options = ["--stored", "float32", "--rows", "100", "--output", str(tmp_path / "report.md")]
    assert device_report.main(options) == 0, (tmp_path / "report.md").read_text(encoding="utf-8")
