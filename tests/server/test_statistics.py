# SPDX-License-Identifier: Apache-2.0
"""What the server counts and logs: per request, per call, and nothing per request at INFO."""

from __future__ import annotations

from typing import Any

import pytest
from tritonclient.utils import InferenceServerException

from ct2_triton.serve import TritonServer
from server import configs
from server.conftest import LoadModel
from server.helpers import Connection, Reference, sentences
from support.waiting import wait_until

pytestmark = pytest.mark.server

LIMIT = {"max_decoding_length": 8}
# One worker, so that what is sent while it is busy waits together.
ONE_WORKER = {"inter_threads": 1, "intra_threads": 1}


def settled_statistics(connection: Connection, model: str, requests: int) -> Any:
    """Statistics once they count all requests: they are written after the answer is sent."""

    def counted() -> int:
        counts = connection.statistics(model).inference_stats
        return int(counts.success.count + counts.fail.count)

    wait_until(lambda: counted() >= requests)
    return connection.statistics(model)


@pytest.mark.parametrize("decoding", ["calls", "loop"])
def test_success_queue_and_compute(
    load: LoadModel, connection: Connection, reference: Reference, decoding: str
) -> None:
    """A row of a loop is answered as it ends: no output is left to compute after it."""
    model = load(configs.plain(decoding=decoding, **ONE_WORKER), f"counted_{decoding}")
    for row, prefix in sentences(reference, 5):
        connection.translate(model, row, prefix, **LIMIT)
    statistics = settled_statistics(connection, model, 5)
    counts = statistics.inference_stats
    assert (counts.success.count, counts.fail.count) == (5, 0)
    assert statistics.inference_count == 5
    assert statistics.execution_count == 5
    for part in (counts.queue, counts.compute_infer, counts.compute_output, counts.success):
        assert part.count == 5
        assert part.ns > 0 or (decoding == "loop" and part == counts.compute_output)
    assert counts.compute_infer.ns > counts.compute_output.ns
    assert counts.success.ns > counts.queue.ns + counts.compute_infer.ns
    (batch,) = statistics.batch_stats
    assert (batch.batch_size, batch.compute_infer.count) == (1, 5)
    assert batch.compute_infer.ns > 0


# Triton itself holds requests back until 32 of them are there, and hands them over together.
HELD_BACK = """max_batch_size: 32
dynamic_batching { preferred_batch_size: [32] max_queue_delay_microseconds: 600000000 }
"""


@pytest.mark.parametrize(
    ("decoding", "most_executions", "largest"),
    # A loop takes rows between two steps: it may begin before the last one is handed over.
    [("calls", 16, 8), ("loop", 31, 2)],
)
def test_requests_that_wait_together_run_together(
    load: LoadModel,
    connection: Connection,
    reference: Reference,
    decoding: str,
    most_executions: int,
    largest: int,
) -> None:
    """32 short requests in four languages reach the backend at one moment."""
    model = load(configs.plain(batching=HELD_BACK, decoding=decoding, **ONE_WORKER))
    rows = sentences(reference, 32)
    short = [connection.start(model, [row], [p], beam_size=1, **LIMIT) for row, p in rows]
    for answer, (row, prefix) in zip(short, rows, strict=True):
        expected = reference.translate(row, prefix, beam_size=1, **LIMIT)
        assert answer.get_result().as_numpy("OUTPUT_IDS").tolist() == [expected]
    statistics = settled_statistics(connection, model, 32)
    assert statistics.inference_count == 32
    assert statistics.execution_count <= most_executions
    assert max(batch.batch_size for batch in statistics.batch_stats) >= largest
    rows_run = sum(b.batch_size * b.compute_infer.count for b in statistics.batch_stats)
    assert rows_run == 32


def test_a_request_of_many_rows_counts_them(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    model = load(configs.plain(**ONE_WORKER, **LIMIT))
    (row, prefix), *_ = sentences(reference, 1)
    rows = [[row[0], i, *row[1:]] for i in range(40, 50)]
    connection.infer(model, rows, [prefix] * 10)
    statistics = settled_statistics(connection, model, 1)
    assert statistics.inference_count == 10
    assert statistics.inference_stats.success.count == 1


def test_failures_are_counted(load: LoadModel, connection: Connection) -> None:
    model = load(configs.plain())
    for _ in range(3):
        with pytest.raises(InferenceServerException):
            connection.infer(model, [[-1]], [[5]])
    statistics = settled_statistics(connection, model, 3)
    assert statistics.inference_stats.fail.count == 3
    assert statistics.inference_stats.fail.ns > 0
    assert statistics.execution_count == 0


def test_requests_without_work_are_counted(load: LoadModel, connection: Connection) -> None:
    """Empty rows never reach a worker."""
    model = load(configs.full())
    connection.infer(model, [[2]], [[7]])
    connection.infer(model, [[2], [2]], [[7], [8]])
    statistics = settled_statistics(connection, model, 2)
    assert statistics.inference_stats.success.count == 2
    assert statistics.execution_count == 0
    assert statistics.inference_stats.compute_infer.ns == 0


def log_lines(server: TritonServer, part: str) -> list[str]:
    """Lines of the server's log that have a part, oldest first."""
    return [line for line in server.log_text().splitlines() if part in line]


def test_the_log_has_a_line_for_load_device_and_unload(
    load: LoadModel, connection: Connection, server: TritonServer
) -> None:
    load(configs.plain(), name="logged")
    connection.raw.unload_model("logged")
    wait_until(lambda: len(log_lines(server, "model 'logged'")) >= 3)
    loading, device, unloaded = log_lines(server, "model 'logged'")
    assert "loading '" in loading
    assert "on CPU" in device
    assert "thread(s)" in device
    assert "unloaded" in unloaded


def test_requests_leave_no_line_in_the_log(
    load: LoadModel, connection: Connection, server: TritonServer, reference: Reference
) -> None:
    """Neither do clients' mistakes. The next line of the model is that of its unloading."""
    model = load(configs.plain(), name="quiet")
    row, prefix = sentences(reference, 1)[0]
    wait_until(lambda: bool(log_lines(server, "successfully loaded 'quiet'")))
    for _ in range(5):
        connection.translate(model, row, prefix, **LIMIT)
        connection.refusal(model, [[-1]], [prefix])
    connection.raw.unload_model(model)
    wait_until(lambda: bool(log_lines(server, "model 'quiet' version 1: unloaded")))
    since = server.log_text().split("successfully loaded 'quiet'")[1].splitlines()[1:]
    mine = [line for line in since if "'quiet'" in line or "request" in line or "id -1" in line]
    assert "unloaded" in mine[0]


def test_verbose_logging_names_the_request(
    make_server: Any, tmp_path: Any, nllb_engine_model: Any
) -> None:
    from support.repository import write_model

    write_model(tmp_path, "nllb", nllb_engine_model)
    server = make_server(tmp_path, server_arguments=["--log-verbose=1"])
    connection = Connection(server.grpc_url)
    connection.start("nllb", [[50, 2]], request_id="order-66", **LIMIT).get_result()
    connection.close()
    wait_until(lambda: bool(log_lines(server, "request 'order-66': 1 rows")))
