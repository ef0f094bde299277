# SPDX-License-Identifier: Apache-2.0
"""Several processes send a scenario's sentences: to a real server, and to one that is not there."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bench.test_baseline_translators import mixed_rows
from ct2_triton.bench import cli
from ct2_triton.bench.comparison import Plan, measure
from ct2_triton.bench.contenders import make_contender
from ct2_triton.bench.contenders.triton import TritonClient
from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.load_generator import LoadGenerator, cores_apart, without_cores
from ct2_triton.bench.record import Run
from ct2_triton.bench.scenarios import parse_scenario
from ct2_triton.bench.setup import MODEL, Setup
from ct2_triton.bench.workload import Sentence
from support.tiny import tiny_checkpoint

SENTENCES = [Sentence((row,)) for row in mixed_rows([(1205,), (1210,)], 2, count=30)]


@pytest.mark.server
async def test_their_answers_and_samples_are_those_of_one_process(tmp_path: Path) -> None:
    setup = Setup(str(tiny_checkpoint("nllb")), tmp_path, max_decoding_length=20)
    async with make_contender("ct2-triton-float32", setup) as contender:
        client = contender.client()
        assert client is not None
        core = max(os.sched_getaffinity(0))
        with LoadGenerator(client, 3, cores=[core]) as generator:
            for name in ("single:7", "single:2", "poisson:100", "bursts:5@0.05"):
                scenario = parse_scenario(name)
                alone, answers = await measure(contender, scenario, SENTENCES, 0)
                shared, same = await measure(contender, scenario, SENTENCES, 0, generator)
                assert same == answers
                assert sorted(s.sentence for s in shared.samples) == list(range(30))
                assert shared.counts is not None
                assert shared.counts.rows == 30
                for sample in shared.samples:
                    assert sample.done_s is not None
                    assert 0 <= sample.due_s < sample.done_s <= shared.wall_s
                assert 0 < shared.client_busy * shared.wall_s <= shared.client_cpu_s + 0.02
                if name.startswith(("poisson", "bursts")):
                    due = [sorted(s.due_s for s in round_.samples) for round_ in (alone, shared)]
                    assert due[0] == due[1]
            pids = generator.pids
            assert [psutil.Process(pid).cpu_affinity() for pid in pids] == [[core]] * 3
        assert len(pids) == 3
        assert not any(psutil.pid_exists(pid) for pid in pids)


def test_processes_have_cores_of_their_own_if_enough_remain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert cores_apart(range(16), 4) == (12, 13, 14, 15)
    assert cores_apart({3, 1}, 1) == cores_apart(range(15), 4) == ()
    have = {0, 1, 2, 3}

    def use(_: int, cores: set[int]) -> None:
        nonlocal have
        have = cores

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: have)
    monkeypatch.setattr(os, "sched_setaffinity", use)
    with without_cores((2, 3)):
        assert have == {0, 1}
    assert have == {0, 1, 2, 3}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core has none to leave")
def test_the_command_keeps_contenders_off_the_cores_of_its_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cores = sorted(os.sched_getaffinity(0))
    seen: list[tuple[Plan, int, set[int]]] = []

    async def see(setup: Setup, _workload: object, plan: Plan, _report: object) -> Run:
        seen.append((plan, setup.cores, os.sched_getaffinity(0)))
        raise BenchError("seen")

    monkeypatch.setattr(cli, "compare", see)
    monkeypatch.setattr(cli, "cores_apart", lambda _, processes: tuple(cores[-processes + 1 :]))
    parser = argparse.ArgumentParser()
    cli.add_arguments(parser)
    common = ["--model", str(tiny_checkpoint("nllb")), "--output", str(tmp_path / "out")]
    for contender in ("ct2-triton-float32", "ctranslate2-float32"):
        command = [*common, "--contender", contender, "--client-processes", "2"]
        with pytest.raises(BenchError, match="seen"):
            cli.run(parser.parse_args(command))

    [(served, left, used), (alone, all_cores, _)] = seen
    assert served.client_cores == (cores[-1],)
    assert left == len(used) == len(cores) - 1
    assert (alone.client_cores, all_cores) == ((), len(cores))
    assert sorted(os.sched_getaffinity(0)) == cores


@pytest.mark.parametrize("name", ["single:7", "streams:2", "poisson:5", "bursts:4@1"])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_the_parts_of_a_scenario_are_the_whole(name: str, most: int) -> None:
    scenario = parse_scenario(name)
    numbered = [*enumerate(SENTENCES)]
    parts = scenario.parts(numbered, most)
    assert sorted(one[0] for _, share in parts for one in share) == list(range(30))
    if name.startswith(("single", "streams")):
        assert len(parts) == min(most, scenario.in_flight)
        assert sum(part.in_flight for part, _ in parts) == scenario.in_flight
        assert parts[0][0] == replace(scenario, sessions=parts[0][0].in_flight)  # type: ignore[call-arg]


async def test_a_process_that_fails_says_why() -> None:
    scenario = parse_scenario("single:4")
    generator = LoadGenerator(TritonClient("localhost:1", [MODEL]), 2)
    with generator, pytest.raises(BenchError, match="no connection to localhost:1"):
        await generator.run(scenario, [*enumerate(SENTENCES)])


async def test_a_process_that_ends_is_noticed() -> None:
    generator = LoadGenerator(TritonClient("localhost:1", [MODEL]), 2)
    with generator:
        pass
    with pytest.raises(BenchError, match="a process of the load generator ended with status -9"):
        await generator.run(parse_scenario("single:4"), [*enumerate(SENTENCES)])
