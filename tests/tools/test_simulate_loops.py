# SPDX-License-Identifier: Apache-2.0
"""The simulated decode loops, where their outcome can be worked out by hand."""

from __future__ import annotations

import pytest

from simulate_loops import Costs, Outcome, Plan, simulate

COSTS = Costs(step_ms=2, row_ms=1, encode_ms=3, token_ms=0.5)


def _simulate(streams: int, models: int = 1, *, threads: int = 2, rows: int = 1000) -> Outcome:
    return simulate(Plan(streams, models, COSTS, threads, client_ms=0, rows=rows))


def test_one_client_waits_for_its_own_row_alone() -> None:
    outcome = _simulate(1, rows=50)
    assert outcome.steps == outcome.step_rows == outcome.tokens
    assert sum(outcome.latencies_ms) == pytest.approx(50 * 3 + outcome.tokens * (0.5 + 3))
    assert sum(outcome.first_tokens_ms) == pytest.approx(50 * (3 + 3) + outcome.tokens * 0.5)


def test_rows_share_the_fixed_part_of_a_step() -> None:
    rates = [_simulate(streams).tokens_per_s for streams in (1, 4, 16, 64)]
    assert rates == sorted(rates)
    # Two threads, 64 rows a step at most, and an encoding of at least 80 tokens for each.
    assert rates[-1] < 2000 / (2 / 64 + 1 + 0.5)
    assert rates[-1] > 2000 / (2 / 16 + 1 + 0.5 + 3 / 18)


def test_one_thread_runs_one_loop() -> None:
    assert _simulate(16, threads=2).tokens_per_s > 1.5 * _simulate(16, threads=1).tokens_per_s


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
