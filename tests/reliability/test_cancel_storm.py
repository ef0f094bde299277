# SPDX-License-Identifier: Apache-2.0
"""The short form of the cancel storm; the long one is `python tools/chaos.py cancel --long`."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from ct2_triton.serve import TritonServer
from reliability import fuzz_grpc, observe
from reliability.cancel_storm import CancelStorm, id_tensors
from reliability.fuzz_request import Request
from server import configs
from server.helpers import Reference, sentences
from support.repository import write_model

pytestmark = pytest.mark.server

ACTIONS = 600


@pytest.fixture
def storm_server(
    make_server: Callable[..., TritonServer], tmp_path: Path, nllb_engine_model: Path
) -> TritonServer:
    write_model(tmp_path, "nllb", nllb_engine_model, configs.plain())
    return make_server(tmp_path)


def test_clients_that_leave_do_no_harm(storm_server: TritonServer, nllb_engine_model: Path) -> None:
    files = observe.open_files(storm_server)
    seed = random.SystemRandom().randrange(10**6)
    storm = CancelStorm(storm_server, "nllb", Reference(nllb_engine_model), seed)
    report = storm.run(ACTIONS)
    assert not report.wrong, f"seed {seed}: {report.wrong[:5]}"
    assert len(report.did) == 7
    assert report.answered["OK"] >= report.did["wait"]
    assert report.answered["CANCELLED"] > 0
    # Nothing is left behind, and nothing was counted twice.
    counts = observe.settled(storm_server, "nllb")
    assert counts.pending == 0
    assert report.answered["OK"] <= counts.success
    assert counts.success + counts.failed <= report.requests
    # Triton 2.51 itself forgets to close some connections whose stream was cancelled.
    allowed = files + 4 + report.did["cancel_stream"]
    observe.wait_until(lambda: observe.open_files(storm_server) <= allowed, "closed sockets")
    again = CancelStorm(storm_server, "nllb", Reference(nllb_engine_model), seed)
    again.run(8)
    assert not again.report.wrong


def test_a_request_cancelled_while_it_runs_counts_as_cancelled(
    storm_server: TritonServer, nllb_engine_model: Path
) -> None:
    (row, prefix), *_ = sentences(Reference(nllb_engine_model), 1)
    # Greedy: it stops at the next step. Beam search: it runs to its end, for nobody.
    for beams in (1, 2):
        options = {"beam_size": beams, "max_decoding_length": 500, "min_decoding_length": 500}
        request = Request("nllb", id_tensors(row, prefix), options, ["OUTPUT_IDS"])
        with fuzz_grpc.open_channel(storm_server.grpc_url) as channel:
            message = fuzz_grpc.to_message(request, "", typed=False)
            calls = [fuzz_grpc.stub(channel).ModelInfer.future(message) for _ in range(3)]
            grpc_ready(storm_server)
            for call in calls:
                call.cancel()
    counts = observe.settled(storm_server, "nllb")
    assert counts.success == 0
    assert counts.failed > 0


def grpc_ready(server: TritonServer) -> None:
    """Makes a round trip: what was sent before has arrived."""
    assert server.is_ready()
