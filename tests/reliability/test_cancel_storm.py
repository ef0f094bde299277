# SPDX-License-Identifier: Apache-2.0
"""The short form of the cancel storm; the long one is `python tests/reliability/chaos.py storm`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ct2_triton.serve import TritonServer
from reliability import fuzz_grpc, observe
from reliability.cancel_storm import CancelStorm, id_tensors, run_storm
from reliability.fuzz_request import Request
from server import configs
from server.helpers import LANGUAGES, Reference
from support.endless import ALLOWS_ENDLESS, ENDLESS, endless_model
from support.metrics import scrape
from support.repository import write_model, write_whole_lists
from support.seeds import SEED
from support.waiting import wait_until

pytestmark = pytest.mark.server

ACTIONS = 600


@pytest.mark.parametrize("decoding", ["loop", "calls"])
def test_clients_that_leave_do_no_harm(
    make_server: Callable[..., TritonServer],
    tmp_path: Path,
    nllb_engine_model: Path,
    decoding: str,
) -> None:
    config = configs.plain(decoding=decoding, use_vmap=True)
    model = write_model(tmp_path, "nllb", nllb_engine_model, config)
    write_whole_lists(model / "1" / "model", LANGUAGES[:2])
    reference = Reference(nllb_engine_model)
    files = 0

    def start() -> TritonServer:
        nonlocal files
        server = make_server(tmp_path)
        files = observe.open_files(server)
        return server

    storm = run_storm(start, "nllb", reference, SEED, ACTIONS)
    server, report = storm.server, storm.report
    assert not report.wrong, f"seed {SEED}: {report.wrong[:5]}"
    assert len(report.did) == 6
    assert report.answered["OK"] >= report.did["wait"]
    assert report.answered["CANCELLED"] > 0
    # Nothing is left behind, and nothing was counted twice.
    counts = observe.settled(server, "nllb")
    assert counts.pending == 0
    assert report.answered["OK"] <= counts.success
    assert counts.success + counts.failed <= report.requests
    wait_until(lambda: observe.open_files(server) <= files + 4, "closed sockets")
    again = CancelStorm(server, "nllb", reference, SEED)
    again.run(8)
    assert not again.report.wrong


@pytest.mark.parametrize("decoding", ["loop", "calls"])
def test_requests_cancelled_while_they_run_count_as_cancelled(
    make_server: Callable[..., TritonServer], tmp_path: Path, decoding: str
) -> None:
    """One worker, all rows together: they stop at the next step, their answers are no answers."""
    config = configs.plain(inter_threads=1, decoding=decoding, **ALLOWS_ENDLESS)
    write_model(tmp_path, "nllb", endless_model(), config)
    server = make_server(tmp_path)
    sent = 20
    with fuzz_grpc.open_channel(server.grpc_url) as channel:
        infer = fuzz_grpc.stub(channel).ModelInfer
        requests = [
            Request("nllb", id_tensors([50, 60 + i, 2], [9]), ENDLESS, ["OUTPUT_IDS"])
            for i in range(sent)
        ]
        calls = [infer.future(fuzz_grpc.to_message(one, "", typed=False)) for one in requests]

        def rows() -> float:
            found = scrape(server, "nllb")
            return found["ct2_decoding_rows"] + found["ct2_waiting_rows"]

        wait_until(lambda: rows() == sent, "all rows to arrive")
        wait_until(lambda: scrape(server, "nllb")["ct2_decoding_rows"] > 0, "rows that run")
        for call in calls:
            call.cancel()
    counts = observe.settled(server, "nllb")
    assert (counts.success, counts.failed) == (0, sent)
