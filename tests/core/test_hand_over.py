# SPDX-License-Identifier: Apache-2.0
"""A request that is superseded while its rows enter the queue is answered, also at an unload."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commands import run
from support.endless import endless_model
from support.native import backend_objects, link, linked_engine

ROUNDS = 200
SEED = 3


@pytest.mark.plain_process
def test_a_newer_request_that_meets_the_hand_over_leaves_nothing_unanswered(tmp_path: Path) -> None:
    """Without the second look of `PendingRequest::HandOver` it hangs."""
    program = tmp_path / "hand_over"
    link(
        program,
        *("hand_over.cc", "triton_stand_in.cc", "triton_stand_in_request.cc"),
        *backend_objects(),
        *linked_engine(),
    )
    assert "every request answered" in run(program, ROUNDS, SEED, endless_model()).stdout
