# SPDX-License-Identifier: Apache-2.0
"""The simulated worker pool, where its outcome can be worked out by hand."""

from __future__ import annotations

import pytest

from simulate_calls import Plan, simulate


def test_one_client_waits_for_its_own_row_alone() -> None:
    outcome = simulate(Plan(1, fixed_ms=5, per_row_ms=1, client_ms=0, rows=50))
    assert outcome.calls == 50
    assert sum(outcome.latencies_ms) == pytest.approx(6 * outcome.tokens)


def test_more_clients_share_the_fixed_part_of_a_step() -> None:
    rates = [
        outcome.tokens / outcome.wall_ms
        for outcome in (simulate(Plan(clients, rows=2000)) for clients in (1, 4, 16, 64, 256))
    ]
    assert rates == sorted(rates)
    assert rates[0] == pytest.approx(1 / 5.73, rel=0.1)
    assert rates[-1] < 2 / (5.1 / 32 + 0.63)  # two workers, calls of 32 rows of equal length


def test_answers_at_the_end_of_a_call_cost_throughput_and_time() -> None:
    early, late = (simulate(Plan(48, answers_at_end=at_end)) for at_end in (False, True))
    assert early.tokens / early.wall_ms > 1.15 * late.tokens / late.wall_ms
    assert early.percentile_ms(50) < late.percentile_ms(50)
