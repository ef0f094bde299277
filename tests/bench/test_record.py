# SPDX-License-Identifier: Apache-2.0
"""A run on disk, its tables, its report, and two runs side by side."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.samples import round_of, run_of, sample
from ct2_triton.bench.contenders import ServerCounts
from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.record import Round, Run
from ct2_triton.bench.report import (
    brief_table,
    compare_runs,
    differences,
    markdown,
    warnings,
    write_plots,
)

COUNTS = ServerCounts(rows=4, batches=2, requests=4, queue_ns=4, compute_ns=8)


def rounds(quick_s: float = 1.0) -> list[Round]:
    """Three rounds of a slow contender, a quick one, and one that is timed as a list."""
    samples = [sample(number, 0, done_s=0.25) for number in range(4)]
    untimed = [sample(number, 0, done_s=None) for number in range(4)]
    return [
        made
        for number in range(3)
        for made in (
            round_of("slow-int8", samples, number=number, wall_s=4.0, counts=COUNTS),
            round_of("quick-int8", samples, number=number, wall_s=quick_s, different_rows=number),
            round_of("engine-int8", untimed, number=number, wall_s=0.5),
        )
    ]


def a_run(quick_s: float = 1.0, scenario: str = "single:4") -> Run:
    return run_of(
        rounds(quick_s), baseline="slow-int8", scenario=scenario, answers_of={"int8": "engine-int8"}
    )


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    run = a_run()
    run.write(path)
    assert Run.read(path) == run
    json.loads(path.read_text(), parse_constant=pytest.fail)  # no NaN: JSON that others can read


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not a file that ct2-bench wrote"),
        ("[]", "is not a file that ct2-bench wrote"),
        ('{"format": 1}', "is not a file that ct2-bench wrote"),
        ('{"format": 99}', "is not of format 1; run ct2-bench again"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(content)
    with pytest.raises(BenchError, match=message):
        Run.read(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="cannot read"):
        Run.read(tmp_path / "absent.json")


def test_the_table_begins_with_ratios() -> None:
    run = a_run()
    table = brief_table(run, run.scenarios[0])
    assert table.header == ["", "ratio", "range", "sentences/s", "p50 ms", "p95 ms", "PSS MiB"]
    assert table.title.endswith("; ratios to slow-int8 in source tokens/s")
    assert table.rows == [
        ["slow-int8", "1", "1..1", "1", "250", "250", "1"],
        ["quick-int8", "4", "4..4", "4", "250", "250", "1"],
        ["engine-int8", "8", "8..8", "8", "-", "-", "1"],
    ]


def test_an_open_loop_is_judged_by_its_latency() -> None:
    run = a_run(scenario="poisson:5")
    table = brief_table(run, run.scenarios[0])
    assert table.title.endswith("in p95 ms")
    assert [row[1] for row in table.rows] == ["1", "1", "-"]


def test_a_baseline_that_has_no_turn_gives_way_to_the_first_that_has() -> None:
    run = replace(a_run(scenario="bursts:8@1"), baseline="absent-int8")
    table = brief_table(run, run.scenarios[0])
    assert table.title.endswith("; ratios to slow-int8 in p95 ms")
    assert "Ratios to `slow-int8` in p95 ms" in markdown(run, [])


def test_the_report_says_whose_answers_differ() -> None:
    text = markdown(a_run(), ["single.png"])
    (slow,) = [line for line in text.splitlines() if "| 12 equal to engine-int8 |" in line]
    (quick,) = [line for line in text.splitlines() if "| 3 of 12 differ from engine-int8 |" in line]
    (engine,) = [line for line in text.splitlines() if "| its own |" in line]
    assert slow.startswith("| slow-int8 | 2 |")  # the mean batch
    assert quick.startswith("| quick-int8 | - |")
    assert engine.startswith("| engine-int8 | - |")
    assert "Baseline: `slow-int8`." in text
    assert "![single.png](single.png)" in text


def test_differing_answers_and_a_busy_machine_are_said_before_any_figure() -> None:
    run = a_run()
    assert warnings(run) == [
        "single:4: quick-int8: answers, 3 of 12 differ from engine-int8",
    ]
    busy = round_of("slow-int8", [sample(0, 0)], wall_s=2.0, other_cpu_s=3.0)
    quiet = round_of("slow-int8", [sample(0, 0)], wall_s=2.0, other_cpu_s=0.1)
    assert warnings(run_of([quiet], "slow-int8")) == []
    (warning,) = warnings(run_of([quiet, busy], "slow-int8"))
    assert warning == "other work kept up to 1.5 cores busy: repeat on a quiet machine"
    sender = round_of("slow-int8", [sample(0, 0)], client_busy=0.8)
    (said,) = warnings(run_of([sender], "slow-int8"))
    assert "a process of the load generator was 80% busy in round 1" in said
    text = markdown(run_of([busy], "slow-int8"), [])
    assert text.index(warning) < text.index("## single:4")


def test_there_is_a_picture_for_each_kind_of_scenario(tmp_path: Path) -> None:
    run = a_run()
    (record,) = run.scenarios
    names = ("single:1", "single:48", "streams:4@2", "poisson:5")
    run = replace(run, scenarios=tuple(replace(record, name=name) for name in names))
    written = write_plots(run, tmp_path)
    assert written == ["single.png", "streams-every-2-s.png", "poisson.png"]
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in written)


def test_two_runs_side_by_side() -> None:
    first, second = a_run(quick_s=1.0), a_run(quick_s=0.5)
    (table,) = compare_runs(first, second)
    rows = {(row[0], row[1]): row[2:] for row in table.rows}
    assert rows["quick-int8", "source tokens/s"] == ["40", "80", "2", "yes"]
    assert rows["quick-int8", "source tokens/s / slow-int8"] == ["4", "8", "2", "yes"]
    assert rows["slow-int8", "source tokens/s"] == ["10", "10", "1", "no"]
    assert ("slow-int8", "source tokens/s / slow-int8") not in rows
    assert differences(first, second) == []


def test_what_else_differs_between_two_runs_is_said() -> None:
    first = a_run()
    second = replace(
        first,
        machine={"cores": "8"},
        versions={},
        contenders={**first.contenders, "slow-int8": {"threads": "2"}},
    )
    assert differences(first, second) == [
        "machine, cores: 2 against 8",
        "versions, ct2-triton: 1 against -",
        "settings of slow-int8: {'threads': '1'} against {'threads': '2'}",
    ]
