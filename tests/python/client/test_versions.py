# SPDX-License-Identifier: Apache-2.0
"""How sessions are split between versions of a model."""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from typing import Any

import pytest

from ct2_triton.client.model_client import VersionSplit, first_served
from ct2_triton.connection_arguments import version_weights
from ct2_triton.errors import (
    ClientError,
    InvalidCallError,
    ModelNotFoundError,
    RequestRejectedError,
    ServerBusyError,
)

SESSIONS = [f"meeting-{number}" for number in range(10_000)]


def _first(**weights: float) -> dict[str, str]:
    split = VersionSplit.of({name.removeprefix("v"): weight for name, weight in weights.items()})
    return {session: split.order(session)[0] for session in SESSIONS}


def test_the_shares_are_those_of_the_weights() -> None:
    for weights in ({"v1": 0.9, "v2": 0.1}, {"v1": 9, "v2": 1}):
        assert 900 < Counter(_first(**weights).values())["2"] < 1100
    assert set(_first(v1=1, v2=0).values()) == {"1"}


def test_more_weight_moves_sessions_to_that_version_alone() -> None:
    little, more = _first(v1=0.9, v2=0.1), _first(v1=0.7, v2=0.3)
    moved = {session for session in SESSIONS if little[session] != more[session]}
    assert 1800 < len(moved) < 2200
    assert {more[session] for session in moved} == {"2"}


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        ({}, "one needs a weight above 0"),
        ({"1": 0, "2": 0}, "one needs a weight above 0"),
        ({"1": -1, "2": 2}, "version 1 has weight -1"),
        ({"1": float("nan")}, "version 1 has weight nan"),
        ({"one": 1}, "versions has 'one'"),
    ],
)
def test_impossible_weights(weights: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidCallError, match=text):
        VersionSplit.of(weights)


def _ask(outcomes: dict[str, ClientError | str]) -> tuple[str, list[str]]:
    asked = []

    async def ask(version: str) -> str:
        asked.append(version)
        outcome = outcomes[version]
        if isinstance(outcome, ClientError):
            raise outcome
        return outcome

    return asyncio.run(first_served(tuple(outcomes), ask)), asked


def test_a_version_that_is_not_served_is_passed_over() -> None:
    gone = ServerBusyError("Request for unknown model: 'm' version 1 is not at ready state")
    answer = _ask({"1": gone, "2": ModelNotFoundError("not found"), "3": "yes", "4": "no"})
    assert answer == ("yes", ["1", "2", "3"])


def test_of_versions_that_are_not_served_the_one_that_may_be_soon_is_told() -> None:
    gone = ServerBusyError("Request for unknown model: 'm' version 1 is not at ready state")
    missing = ModelNotFoundError("Request for unknown model: 'm' version 2 is not found")
    for outcomes in ({"1": gone, "2": missing}, {"2": missing, "1": gone}):
        with pytest.raises(ServerBusyError, match="version 1 is not at ready state"):
            _ask(outcomes)


@pytest.mark.parametrize("error", [ServerBusyError("the queue is full"), RequestRejectedError("x")])
def test_another_error_is_not_sent_to_another_version(error: ClientError) -> None:
    with pytest.raises(type(error), match=str(error)):
        _ask({"1": error, "2": "never asked"})


def test_the_flag() -> None:
    assert version_weights("1=0.9, 2=0.1") == {"1": 0.9, "2": 0.1}
    for wrong in ("1", "1=x"):
        with pytest.raises(argparse.ArgumentTypeError, match="VERSION=WEIGHT"):
            version_weights(wrong)
    with pytest.raises(argparse.ArgumentTypeError, match="twice"):
        version_weights("1=0.9, 1=0.1")
