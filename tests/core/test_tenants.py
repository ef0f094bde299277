# SPDX-License-Identifier: Apache-2.0
"""Tenants have equal shares of a queue, by the tokens of their rows."""

from __future__ import annotations

from collections import Counter

import pytest

from ct2_triton import _core

A_FLOODS = ("a", 500, 20, 0)


@pytest.mark.parametrize("other", ["0", "b"])
def test_a_row_of_another_tenant_goes_before_a_flood(other: str) -> None:
    order = _core.tenant_order([("a", 500, 20, 3), (other, 1, 20, 3)])
    assert other in order[3:5]


def test_a_tenant_that_sends_one_row_after_the_other_never_waits_behind_a_flood() -> None:
    """However many it has had: half of the rows are its own, and it has no more to run."""
    order = _core.tenant_order([A_FLOODS, *[("b", 1, 20, 2)] * 200])
    assert Counter(order) == {"a": 200, "b": 200}
    assert all(set(order[i : i + 3]) == {"a", "b"} for i in range(len(order) - 2))


def test_tenants_share_by_tokens_and_not_by_rows() -> None:
    order = _core.tenant_order([("a", 500, 92, 0), ("b", 500, 17, 200)])
    assert Counter(order)["b"] == 160  # 8 tokens more for each row: 100 against 25


def test_long_answers_count_once_they_have_run() -> None:
    """A row of `a` has four times the tokens of one of `b`, most of them in its answer."""
    events = [("a", 500, 17, 0), ("b", 500, 17, 200)]
    order = _core.tenant_order(events, {"a": 375, "b": 75})
    assert Counter(order)["b"] == 160


def test_what_answers_cost_while_nobody_waited_is_forgiven() -> None:
    alone = [("a", 1, 17, 1)] * 50
    order = _core.tenant_order([*alone, ("b", 300, 17, 0), ("a", 300, 17, 100)], {"a": 1000})
    assert Counter(order[50:])["a"] >= 1
    order = _core.tenant_order([*alone, ("b", 300, 17, 0), ("a", 300, 17, 100)], {"a": 1, "b": 1})
    assert 49 <= Counter(order[50:])["a"] <= 51


def test_three_floods_have_a_third_each() -> None:
    order = _core.tenant_order([(tenant, 300, 20, 0) for tenant in "abc"] + [("a", 1, 20, 300)])
    assert Counter(order) == {"a": 100, "b": 100, "c": 100}


def test_a_tenant_that_comes_back_has_saved_nothing() -> None:
    """It shares from now on, and does not make up for the time when it sent nothing."""
    order = _core.tenant_order([("b", 1, 20, 1), ("a", 300, 20, 100), ("b", 300, 20, 100)])
    assert 49 <= Counter(order[101:])["b"] <= 51


def test_names_made_up_for_each_request_do_not_starve_a_tenant() -> None:
    """1,024 tenants are told apart, further ones share one place: the flood of `a` goes on."""
    names = [(f"made up {i}", 1, 20, 1) for i in range(4000)]
    order = _core.tenant_order([A_FLOODS, *names])
    assert Counter(order)["a"] >= 3


def test_rows_without_a_tenant_take_turns_as_ever() -> None:
    """A large request's rows, and one that came later."""
    order = _core.tenant_order([("", 100, 20, 10), ("", 1, 20, 91)])
    assert order == [""] * 101
