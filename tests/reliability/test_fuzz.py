# SPDX-License-Identifier: Apache-2.0
"""The short form of the protocol fuzzer; the long form takes new seeds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.serve import TritonServer
from reliability import fuzz
from reliability.truths import make_cases
from support.seeds import SEED

pytestmark = pytest.mark.server

REQUESTS = 4000


@pytest.mark.parametrize("decoding", ["loop", "calls"])
def test_every_request_gets_its_own_answer(
    make_server: Callable[..., TritonServer],
    tmp_path: Path,
    nllb_engine_model: Path,
    decoding: str,
) -> None:
    fuzz.write_fuzz_repository(tmp_path, nllb_engine_model, decoding)
    server = make_server(tmp_path)
    cases = make_cases(nllb_engine_model, rows_per_case=12, seed=1)
    report = fuzz.Fuzzer(server, cases, SEED, loops=decoding == "loop").run(range(REQUESTS))
    assert not report.complaints, "\n".join(report.complaints)
    assert report.sent() == REQUESTS
    assert report.of_kind("valid") > REQUESTS // 3
    assert len(report.counts) > 60  # of kinds and transports
    assert settled(lambda: fuzz.served_counts(server), dict(report.accepted)) == report.accepted


def settled(read: Callable[[], Any], wanted: Any) -> Any:
    """Reads until it gives what is wanted: the server counts after it has answered."""
    for _ in range(100):
        if read() == wanted:
            break
        time.sleep(0.05)
    return read()


def test_a_request_can_be_made_again(nllb_engine_model: Path) -> None:
    """The seed and the number are all there is to a request."""
    cases = make_cases(nllb_engine_model, rows_per_case=2, seed=1)
    again = make_cases(nllb_engine_model, rows_per_case=2, seed=1)
    for number in (0, 7, 4711):
        first = fuzz.make_request(5, number, cases)
        assert repr(first) == repr(fuzz.make_request(5, number, again))
        assert repr(first) != repr(fuzz.make_request(6, number, cases))
