# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for a worker: cancelled, held back, or waited for."""

from __future__ import annotations

import urllib.request
from typing import Any

import pytest
from tritonclient.utils import InferenceServerException

from ct2_triton.serve import TritonServer
from reliability.cancel_storm import http_request, send_and_reset
from server import configs
from server.conftest import LoadModel
from server.helpers import Connection, Reference, sentences, wait_until

pytestmark = pytest.mark.server

LIMIT = {"max_decoding_length": 8}
ONE_WORKER = {"inter_threads": 1, "intra_threads": 1, "decoding": "calls"}


def metric(server: TritonServer, start: str) -> int:
    """Sum of the metrics whose name and labels start so."""
    with urllib.request.urlopen(server.metrics_url) as page:  # noqa: S310
        lines = page.read().decode().splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith(start))


@pytest.mark.parametrize("searching", [{"beam_size": 1}, {"beam_size": 8}], ids=repr)
def test_a_request_cancelled_while_it_waits_is_dropped(
    load: LoadModel,
    connection: Connection,
    server: TritonServer,
    reference: Reference,
    searching: dict[str, Any],
) -> None:
    """The only worker is busy with others; the cancelled ones are never computed."""
    # A name of its own: Triton's counters outlive a model.
    name = f"busy_{searching['beam_size']}"
    model = load(configs.plain(**ONE_WORKER, max_batch_rows=1), name)
    rows = sentences(reference, 16)
    busy = [
        connection.start(model, [row], [prefix], beam_size=8, max_decoding_length=500)
        for row, prefix in rows[:4]
    ]
    # One is done, so the others are there: which is first, Triton's threads decide.
    wait_until(lambda: connection.statistics(model).inference_stats.success.count > 0)
    waiting = [connection.start(model, [r], [p], **searching, **LIMIT) for r, p in rows[4:]]
    connection.refusal(model, [[-1]], [[5]])  # by the backend: it has those sent before as well
    for request in waiting:
        request.cancel()
    for request in busy:
        request.get_result()
    # Those that Triton still had in its hands count under another reason.
    failed = f'nv_inference_request_failure{{model="{model}",reason="BACKEND"'
    wait_until(lambda: metric(server, failed) > 1)
    row, prefix = rows[0]
    expected = reference.translate(row, prefix, **LIMIT)
    assert connection.translate(model, row, prefix, **LIMIT) == expected
    assert connection.statistics(model).execution_count == len(busy) + 1


def test_a_request_whose_http_client_has_gone_is_run_to_its_end(
    load: LoadModel, connection: Connection, server: TritonServer, reference: Reference
) -> None:
    """Triton does not tell backends that an HTTP client has gone."""
    model = load(configs.plain(**ONE_WORKER), "left_by_http")
    (row, prefix), *_ = sentences(reference, 1)
    long = {"beam_size": 1, "max_decoding_length": 500, "min_decoding_length": 500}
    send_and_reset(server.ports.http, http_request(model, row, prefix, **long), after_s=0.02)
    wait_until(lambda: connection.statistics(model).inference_stats.success.count == 1)
    assert connection.statistics(model).inference_stats.fail.count == 0


def test_a_row_that_two_requests_want_survives_the_cancellation_of_one(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    """Equal waiting rows run once: for the one who still waits."""
    model = load(configs.plain(**ONE_WORKER, max_batch_rows=1))
    (row, prefix), other = sentences(reference, 2)
    busy = connection.start(model, [row], [prefix], beam_size=8, max_decoding_length=500)
    first, second = (connection.start(model, [other[0]], [other[1]], **LIMIT) for _ in range(2))
    first.cancel()
    expected = reference.translate(*other, **LIMIT)
    assert second.get_result().as_numpy("OUTPUT_IDS").tolist() == [expected]
    busy.get_result()


def test_a_row_is_answered_when_it_has_ended(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    """Not when the longest row of its call has, which was queued before it."""
    model = load(configs.plain(**ONE_WORKER))
    rows = sorted(sentences(reference, 60), key=lambda row: len(row[0]))
    (row, prefix), long, short = rows[30], rows[-1], rows[0]
    limit = {"beam_size": 1, "max_decoding_length_multiple": 3}
    assert len(long[0]) > 4 * len(short[0])
    # Other options: they share no call with the two, nor with each other.
    busy = [
        connection.start(model, [row], [prefix], beam_size=beam, max_decoding_length=500)
        for beam in (6, 7, 8)
    ]
    pending = [connection.start(model, [ids], [p], **limit) for ids, p in (long, short)]
    for answer, (ids, p) in zip(pending, (long, short), strict=True):
        expected = reference.translate(ids, p, beam_size=1, max_decoding_length=3 * len(ids))
        assert answer.get_result().as_numpy("OUTPUT_IDS").tolist() == [expected]
    for answer in busy:
        answer.get_result()
    assert connection.statistics(model).execution_count == len(busy) + 1, "the two met in a call"
    assert pending[1].answered_s < pending[0].answered_s


def test_waiting_for_each_batch(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    model = load(configs.plain(wait_for_batch=True))
    rows = sentences(reference, 30)
    pending = [
        connection.start(model, [[-1]] if i % 7 == 3 else [row], [prefix], **LIMIT)
        for i, (row, prefix) in enumerate(rows)
    ]
    for i, (answer, (row, prefix)) in enumerate(zip(pending, rows, strict=True)):
        if i % 7 == 3:
            with pytest.raises(InferenceServerException, match="id -1"):
                answer.get_result()
        else:
            expected = reference.translate(row, prefix, **LIMIT)
            assert answer.get_result().as_numpy("OUTPUT_IDS").tolist() == [expected]


def test_a_full_queue_holds_batches_back(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    """Execute blocks while too many rows wait; all are answered in the end."""
    model = load(configs.plain(**ONE_WORKER, max_queued_rows=2, max_batch_rows=2))
    rows = sentences(reference, 40)
    pending = [connection.start(model, [row], [prefix], **LIMIT) for row, prefix in rows]
    for answer, (row, prefix) in zip(pending, rows, strict=True):
        expected = reference.translate(row, prefix, **LIMIT)
        assert answer.get_result().as_numpy("OUTPUT_IDS").tolist() == [expected]
