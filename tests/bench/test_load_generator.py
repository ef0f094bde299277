# SPDX-License-Identifier: Apache-2.0
"""Several processes send a scenario's sentences: to a real server, and to one that is not there."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bench.test_baseline_translators import mixed_rows
from ct2_triton.bench.comparison import measure
from ct2_triton.bench.contenders import make_contender
from ct2_triton.bench.contenders.triton import TritonClient
from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.load_generator import LoadGenerator
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
