# SPDX-License-Identifier: Apache-2.0
"""The simulated decode loops, where their outcome can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulate_loops import Costs, Outcome, Plan, most_streams, simulate

COSTS = Costs(step_ms=2, row_ms=1, encode_ms=3, token_ms=0.5, not_shared=1)  # nobody helps


def _simulate(streams: int, models: int = 1, *, threads: int = 2, rows: int = 1000) -> Outcome:
    return simulate(Plan(streams, models, COSTS, threads, client_ms=0, rows=rows))


def test_one_client_waits_for_its_own_row_alone() -> None:
    outcome = _simulate(1, rows=50)
    assert outcome.steps == outcome.step_rows == outcome.tokens
    assert sum(outcome.latencies_ms) == pytest.approx(50 * 3 + outcome.tokens * (0.5 + 3))
    assert sum(outcome.first_tokens_ms) == pytest.approx(50 * (3 + 3) + outcome.tokens * 0.5)


def test_an_idle_thread_helps() -> None:
    """With all but 0.2 of the work: two threads need 0.6 of the time."""
    plan = Plan(1, 1, replace(COSTS, not_shared=0.2), 2, client_ms=0, rows=50)
    outcome, alone = simulate(plan), _simulate(1, rows=50)
    assert outcome.wall_ms == pytest.approx(0.6 * alone.wall_ms, rel=1e-3)


def test_rows_share_the_fixed_part_of_a_step() -> None:
    rates = [_simulate(streams).tokens_per_s for streams in (1, 4, 16, 64)]
    assert rates == sorted(rates)
    # Two threads, 64 rows a step at most, and an encoding of at least 80 tokens for each.
    assert rates[-1] < 2000 / (2 / 64 + 1 + 0.5)
    assert rates[-1] > 2000 / (2 / 16 + 1 + 0.5 + 3 / 18)


def test_one_thread_runs_one_loop() -> None:
    assert _simulate(16, threads=2).tokens_per_s > 1.5 * _simulate(16, threads=1).tokens_per_s


def test_an_idle_thread_encodes() -> None:
    """Two loops would take twice as long for a step as one, so the second thread has none."""
    of_one_loop = Costs(step_ms=2, row_ms=0.1, encode_ms=2, token_ms=0.1, shared_ms=2)
    one, two = (
        simulate(Plan(16, 1, of_one_loop, threads, client_ms=0, rows=1000)) for threads in (1, 2)
    )
    assert two.most_loops == 1
    assert two.tokens_per_s > 1.3 * one.tokens_per_s
    assert sum(two.first_tokens_ms) < 0.9 * sum(one.first_tokens_ms)


def test_each_sentence_goes_to_all_models() -> None:
    """Four models of one stream are four rows that share no step."""
    one, four = _simulate(1, rows=250), _simulate(1, 4)
    assert four.steps == four.step_rows == 4 * one.steps
    assert four.tokens_per_s == pytest.approx(2 * one.tokens_per_s, rel=0.01)
    assert max(four.latencies_ms) == pytest.approx(2 * max(one.latencies_ms), rel=0.01)


def test_a_stream_waits_for_the_last_of_its_answers() -> None:
    outcome = _simulate(1, 2, threads=1, rows=100)
    assert sum(outcome.latencies_ms[1::2]) <= 1000 * outcome.tokens / outcome.tokens_per_s
    assert outcome.wall_ms == pytest.approx(sum(outcome.latencies_ms[1::2]), rel=0.02)


LARGE = Costs(step_ms=15, row_ms=0.8, encode_ms=10, token_ms=0.2, shared_ms=2)


def test_loops_share_the_memory_of_many_cores() -> None:
    """64 streams on 64 cores: one loop for each would take 128 ms a step."""
    outcome = simulate(Plan(64, 1, LARGE, 64, rows=600))
    assert outcome.most_loops < 16
    assert outcome.tokens_per_s > 64 * 1000 / 128 * 2
    alone = simulate(Plan(1, 1, LARGE, 64, rows=100))
    assert alone.most_loops == 1


def test_eight_models_share_the_cores() -> None:
    outcome = simulate(Plan(16, 8, LARGE, 16, rows=800))
    assert outcome.most_loops <= 16
    assert len(outcome.latencies_ms) >= 800


def test_more_cores_serve_more_streams() -> None:
    streams = [most_streams(Plan(1, 1, LARGE, cores, rows=3), 2000) for cores in (1, 4)]
    assert 0 < streams[0] < streams[1] <= 1000


def test_a_machine_that_is_too_slow_serves_none() -> None:
    assert most_streams(Plan(1, 1, LARGE, 2, rows=3), 10) == 0
