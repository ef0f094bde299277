# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for a worker: cancelled, or held back."""

from __future__ import annotations

from typing import Any

import pytest

from ct2_triton.serve import TritonServer
from reliability.cancel_storm import http_request, sent_and_reset
from server import configs
from server.conftest import LoadModel
from server.helpers import END, Connection, Reference, sentences
from server.moments import Occupied, in_backend, superseded
from support.endless import ALLOWS_ENDLESS, endless_model
from support.waiting import wait_until

pytestmark = pytest.mark.server

LIMIT = {"max_decoding_length": 8}
ONE_WORKER = {"inter_threads": 1, "intra_threads": 1, "decoding": "calls"}
ENDLESS_WORKER = ONE_WORKER | ALLOWS_ENDLESS


@pytest.mark.parametrize("searching", [{"beam_size": 1}, {"beam_size": 8}], ids=repr)
def test_a_request_cancelled_while_it_waits_is_dropped(
    load: LoadModel,
    connection: Connection,
    reference: Reference,
    searching: dict[str, Any],
) -> None:
    """The only worker is busy with another; the cancelled ones are never computed."""
    # A name of its own: Triton's counters outlive a model.
    name = f"busy_{searching['beam_size']}"
    rows = sentences(reference, 12)
    config = configs.plain(**ENDLESS_WORKER, max_batch_rows=1, max_queued_rows=len(rows))
    model = load(config, name, endless_model())
    short = {**searching, **LIMIT}

    def counted() -> tuple[int, int]:
        """Requests that failed, and executions; they are counted after their answers."""
        known = connection.statistics(model)
        return known.inference_stats.fail.count, known.execution_count

    with Occupied(connection, model, *rows[0]):
        # Of the two that occupy the worker, one is superseded.
        wait_until(lambda: counted()[0] == 1)
        executed = counted()[1]
        waiting = [
            in_backend(connection, model, row, prefix, f"row {i}", **short)
            for i, (row, prefix) in enumerate(rows)
        ]
        for request in waiting:
            request.cancel()
        # A full queue is searched for rows whose clients have gone. There is room for these
        # requests, of 11 rows and of one, once all twelve of them have been found.
        width = max(len(row) for row, _ in rows)
        many = [[300, i, *[50] * (width - 3), END] for i in range(60, 71)]
        more = [connection.start(model, many, [rows[0][1]] * 11, **short)]
        more.append(connection.start(model, *([one] for one in rows[0]), **short))
        wait_until(lambda: counted()[0] == 1 + 2 * len(rows))
    for request in more:
        request.get_result()
    row, prefix = rows[0]
    expected = reference.translate(row, prefix, **LIMIT)
    assert connection.translate(model, row, prefix, **LIMIT) == expected
    # The endless row, the one that ended it, 11 + 1 that came later, and the last one.
    executed += 1 + 1 + 12 + 1
    wait_until(lambda: counted()[1] >= executed)
    assert counted()[1] == executed


def test_a_request_whose_http_client_has_gone_is_run_to_its_end(
    load: LoadModel, connection: Connection, server: TritonServer, reference: Reference
) -> None:
    """Triton does not tell backends that an HTTP client has gone."""
    model = load(configs.plain(**ENDLESS_WORKER), "left_by_http", endless_model())
    (row, prefix), *_ = sentences(reference, 1)
    with Occupied(connection, model, row, prefix):
        older = in_backend(connection, model, row, prefix, "a", **LIMIT)
        request = http_request(model, row, prefix, **LIMIT, supersede_key="a")
        with sent_and_reset(server.ports.http, request):
            assert superseded(older)  # by this one: the backend has it

    # The one over HTTP, and the one that ended the endless row.
    def counted() -> tuple[int, int]:
        counts = connection.statistics(model).inference_stats
        return counts.success.count, counts.fail.count

    wait_until(lambda: counted() == (2, 2 + 2))


def test_a_row_that_two_requests_want_survives_the_cancellation_of_one(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    """Equal waiting rows run once: for the one who still waits."""
    model = load(configs.plain(**ENDLESS_WORKER), engine_model=endless_model())
    (row, prefix), other = sentences(reference, 2)
    with Occupied(connection, model, row, prefix):
        first, second = (in_backend(connection, model, *other, key, **LIMIT) for key in "ab")
        first.cancel()
    expected = reference.translate(*other, **LIMIT)
    assert second.get_result().as_numpy("OUTPUT_IDS").tolist() == [expected]


def test_a_row_is_answered_when_it_has_ended(load: LoadModel, connection: Connection) -> None:
    """Not when the longest row of its call has, which was queued before it."""
    reference = Reference(endless_model())
    model = load(configs.plain(**ENDLESS_WORKER), engine_model=endless_model())
    rows = sorted(sentences(reference, 60), key=lambda row: len(row[0]))
    first, long, short = rows[30], rows[-1], rows[0]
    limit = {"beam_size": 1, "max_decoding_length_multiple": 100}
    assert len(long[0]) > 4 * len(short[0])
    with Occupied(connection, model, *first):
        before = connection.statistics(model).execution_count
        pending = [
            in_backend(connection, model, ids, prefix, key, **limit)
            for key, (ids, prefix) in zip("ab", (long, short), strict=True)
        ]
    for answer, (ids, prefix) in zip(pending, (long, short), strict=True):
        expected = reference.translate(ids, prefix, beam_size=1, max_decoding_length=100 * len(ids))
        assert answer.get_result().as_numpy("OUTPUT_IDS").tolist() == [expected]
    # The endless row, and these in one call, it may be with the one that ended it.
    assert connection.statistics(model).execution_count - before <= 3, "the two met in a call"
    assert pending[1].answered_s < pending[0].answered_s


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
