# SPDX-License-Identifier: Apache-2.0
"""tools/machine_check.sh and its parts, on the processor; the rest where there is a GPU."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import device_report
import machine_report
from ct2_triton.bench.contenders import contender_names, make_contender
from ct2_triton.bench.record import Round, Run, Sample, ScenarioRecord
from ct2_triton.bench.setup import Setup
from ct2_triton.bench.shapes import SHAPES
from ct2_triton.serve.machine import count_gpus
from device_report import TWICE, Outcome
from gpu import time_steps
from support import emulated_gpu
from support.commands import run
from support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "machine_check.sh"
needs_no_gpu = pytest.mark.skipif(count_gpus() > 0, reason="there is a GPU here")


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return run(*command, code=None, folder=ROOT)


@pytest.mark.server
def test_the_short_check_on_a_processor_passes_and_writes_its_report(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^(tools/machine_check\.sh --cpu --short.*) \S+$", page, re.MULTILINE)
    result = _run("bash", "-c", f"{command} {tmp_path / 'out'}")
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert result.returncode == 0, report
    assert "FAILED" not in report
    assert report.count("\nPassed.\n") == 12
    assert re.match(r"# Check on a cpu\n\n.*, model demo\.\n\nPASSED: all 12 steps\.\n", report)
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
    # Numbers of cores are compared.
    assert (
        "| nllb-600m, single:1: source tokens/s of ct2-triton-int8 / ct2-triton-int8@1 |" in report
    )
    for name in ("transformer-base", "four-models", "nllb-600m"):
        [scenario, *_] = Run.read(tmp_path / "out" / "cores" / name / "run.json").scenarios
        assert len(scenario.contenders()) == 2


@pytest.mark.server
def test_a_step_that_fails_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    options = ["--cpu", "--short", "--part", "served", "--part", "speed"]
    options += ["--model", str(tmp_path / "absent")]
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


@pytest.mark.server
def test_a_check_that_is_ended_early_still_reports(tmp_path: Path) -> None:
    command = [SCRIPT, "--cpu", "--short", "--output", tmp_path / "out"]
    with subprocess.Popen(command, cwd=ROOT) as check:
        wait_until(lambda: (tmp_path / "out" / "A-model-is-prepared.txt").exists())
        check.terminate()
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert check.returncode == 143
    assert "FAILED: 1 of 1 steps: Ended early (status 143)." in report


@needs_no_gpu
def test_without_a_gpu_it_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    result = _run(SCRIPT, "--output", tmp_path / "out")
    assert (result.returncode, (tmp_path / "out").exists()) == (2, False)
    assert "--cpu runs the same steps" in result.stderr
    assert _run(SCRIPT, "--gpus", "1").returncode == 2
    assert "no part all" in _run(SCRIPT, "--part", "all").stderr
    assert "part loop needs a GPU" in _run(SCRIPT, "--cpu", "--part", "loop").stderr
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


def _step(rows: int, ms: float) -> dict[str, Any]:
    """Times of a model's step, as benchmarks/gpu/time_steps.py writes them."""
    kernels = [
        {"kernel": "embed_f16", "outputs": 0, "inputs": 0, "launches": 1, "ms": 0.002}
        | {"weight_bytes": 0},
        {"kernel": "product_f16_norm_one", "outputs": 1536, "inputs": 512, "launches": 6}
        | {"ms": 0.01, "weight_bytes": 6 * 1536 * 512 * 2},
    ]
    return {
        "model": "transformer-base-float16",
        "rows": rows,
        "kernels": 7,
        "weight_bytes": 100_000_000,
        "bandwidth_gb_s": 2000.0,
        "steps_of_a_round": 50,
        "rounds_ms": [50 * ms + 3, 50 * ms - 1, 50 * ms],
        "joining_ms": [0.2, 0.33, 0.9],
        "kernels_of_a_step": kernels,
    }


def _run_of(seconds: dict[str, float], name: str = "single:16", cores: int = 16) -> Run:
    def one(contender: str, seconds: float) -> Round:
        samples = tuple(Sample(i, 0, 0.0, seconds, 10, 9) for i in range(4))
        return Round(contender, 0, seconds, 4, samples, 1.0, 0.0, 0.0, 0, 0, None, client_busy=0.8)

    rounds = tuple(one(*each) for each in seconds.items())
    scenario = ScenarioRecord(name, "", 4, {}, rounds)
    contenders = {contender: {"physical cores": str(cores)} for contender in seconds}
    return Run("", machine_report.CALLS, {}, {}, {}, {}, contenders, (scenario,))


def test_ratios_and_steps_are_held_against_the_aims() -> None:
    run_ = _run_of({machine_report.CALLS: 2.0, machine_report.LOOP: 0.25})
    times = [_step(16, 0.22), _step(48, 0.3), _step(128, 9.0)]
    runs = {"transformer-base": run_}

    table = machine_report.aims_table("Aims", machine_report.compare_with_aims(runs, times), runs)

    ours = "of ct2-triton-loop-float16 / ct2-triton-float16"
    assert f"| transformer-base, single:16: source tokens/s {ours} | 8 | >= 4 | yes |" in table
    assert f"| transformer-base, single:16: p95 ms {ours} | 0.125 | <= 0.25 | yes |" in table
    assert f"| nllb-600m, single:1: source tokens/s {ours} |  | >= 3 | not measured |" in table
    assert "| step of 16 rows, transformer-base-float16, ms | 0.22 | <= 0.25 | yes |" in table
    assert "| step of 48 rows, transformer-base-float16, ms | 0.3 | <= 0.25 | no |" in table
    joining = "encoding of 512 joining tokens / step of"
    assert f"| {joining} 16 rows, transformer-base-float16 | 1.5 | <= 1 | no |" in table
    assert "step of 128" not in table
    assert "transformer-base: single:16: ct2-triton-loop-float16: a process of the load" in table


def test_many_cores_are_held_against_the_aims_and_few_are_not() -> None:
    seconds = {machine_report.TWO_CORES: 2.0, machine_report.ALL_CORES: 0.25}
    runs = {
        "transformer-base": _run_of(seconds, "single:48", 12),
        "four-models": _run_of(seconds, "streams:12", 11),
    }
    loops = [
        {"cores": cores, "first_token_p95_ms": [0.0, ms], "step_ms": 2.0}
        for cores, ms in ((2, 9.0), (8, 1.0), (64, 5.0))
    ]

    results = machine_report.compare_cores(runs, loops)
    table = machine_report.aims_table("Aims of 16 cores", results, runs)

    both = "of ct2-triton-int8 / ct2-triton-int8@2"
    assert f"| transformer-base, single:48: source tokens/s {both} | 8 | >= 5 | yes |" in table
    assert f"| transformer-base, single:48: p95 ms {both} | 0.125 | <= 1 | yes |" in table
    assert f"| four-models, streams:12: source tokens/s {both} |  | >= 5 | not measured |" in table
    assert "| 48 clients on 2 cores: first token's p95, steps | 4.5 | <= 4 | no |" in table
    assert "| 48 clients on 16 cores: first token's p95, steps | 2.5 | <= 3 | yes |" in table


def test_the_verdict_names_failed_steps_missed_aims_and_a_slow_first_row() -> None:
    times = [_step(1, 0.4), _step(16, 0.3)]
    aims = machine_report.compare_with_aims({}, times)
    steps = {"Kernels": 0, "Aims": 1}

    [failed, slow, missed] = machine_report.verdict(steps, {"Aims": aims}, times)

    assert failed == "FAILED: 1 of 2 steps: Aims (status 1)."
    assert "one row of transformer-base-float16 takes 0.400 ms, above 0.35" in slow
    assert re.match(r"Aims: 1 met, 3 missed, \d+ not measured. Missed: step of 1 rows", missed)
    assert machine_report.verdict({"Kernels": 0}, {}, times[1:]) == ["PASSED: all 1 steps."]


def test_kernels_show_their_share_of_the_bandwidth() -> None:
    table = machine_report.kernels_table([_step(16, 0.22)])

    assert "transformer-base-float16, 16 rows: a step of 0.220 ms, 7 kernels" in table
    assert "| embed_f16 |  | 1 | 0.0020 |  |  |" in table
    assert "| product_f16_norm_one | 1536 x 512 | 6 | 0.0100 | 944 | 47% |" in table


def test_a_list_is_widened_by_the_vocabulary(tmp_path: Path) -> None:
    folder = tmp_path / "1" / "model"
    folder.mkdir(parents=True)
    (folder / "vmap.txt").write_text("\tb d\u3000\n", encoding="utf-8")
    vocabulary = '["a", "b", "c", "d\u3000", "e"]'
    (folder / "shared_vocabulary.json").write_text(vocabulary, encoding="utf-8")

    assert machine_report.widen(tmp_path, 4) == 4
    assert (folder / "vmap.txt").read_text(encoding="utf-8") == "\tb d\u3000 a c\n"


def test_steps_are_timed_kernel_by_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the emulation's clock, on a small shape; the figures are those of the shape."""
    shape = replace(SHAPES["transformer-base"], d_model=64, layers=1, ffn=64, heads=2)
    monkeypatch.setitem(SHAPES, "small", shape)
    library, images = emulated_gpu.gpu_and_images(tmp_path)
    output = tmp_path / "times.json"
    options = ["--shapes", "small", "--types", "int8", "--rows", "2", "--steps", "2", "--rounds"]
    command = [str(images), "--library", str(library), *options, "2", "--output", str(output)]

    time_steps.main([*command, "--cache-mib", "16", "--bandwidth", "100"])

    [entry] = json.loads(output.read_text(encoding="utf-8"))
    kernels = entry["kernels_of_a_step"]
    assert sum(each["launches"] for each in kernels) == entry["kernels"]
    assert all(each["ms"] > 0 for each in kernels)
    projection = next(each for each in kernels if each["outputs"] == 32_000)
    assert (projection["inputs"], projection["weight_bytes"]) == (64, 32_000 * 64)
    assert [each["kernel"] for each in kernels if not each["outputs"]] == [
        "embed_i8",
        "attention_f16",
        "scan",
        "choose",
    ]


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
