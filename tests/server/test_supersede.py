# SPDX-License-Identifier: Apache-2.0
"""A newer request with the same supersede_key ends the older one; its neighbours notice nothing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.serve import TritonServer
from reliability import observe
from reliability.supersede_storm import SUPERSEDED, SupersedeStorm, http_infer
from server import configs
from server.conftest import LoadModel
from server.helpers import Connection, Ids, Pending, Reference, sentences
from server.moments import Occupied, in_backend, superseded
from support.endless import ALLOWS_ENDLESS, ENDLESS, endless_model
from support.repository import write_model
from support.seeds import SEED
from support.servers import MakeServer
from support.waiting import wait_until

pytestmark = pytest.mark.server

LIMIT = {"beam_size": 1, "max_decoding_length": 8}
# One row at a time, whoever decodes it, so that all others wait while a row runs.
ONE_BY_ONE = {"inter_threads": 1, "intra_threads": 1, "max_batch_rows": 1, "decoding": "calls"}
ENDLESS_ONE_BY_ONE = ONE_BY_ONE | ALLOWS_ENDLESS
STORM_SECONDS = 5


def answer(pending: Pending) -> Any:
    return pending.get_result().as_numpy("OUTPUT_IDS").tolist()


def test_older_requests_that_wait_are_answered_so(
    load: LoadModel, connection: Connection, server: TritonServer, reference: Reference
) -> None:
    model = load(configs.plain(**ENDLESS_ONE_BY_ONE), "superseding", endless_model())
    rows = sentences(reference, 8)
    expected = [reference.translate(row, prefix, **LIMIT) for row, prefix in rows]
    with Occupied(connection, model, *rows[0]):
        other = in_backend(connection, model, *rows[1], "b", **LIMIT)
        keyless = connection.start(model, *([one] for one in rows[2]), **LIMIT)
        newest = in_backend(connection, model, *rows[3], "a", **LIMIT)
        for row, prefix in rows[4:]:
            older = newest
            newest = connection.start(model, [row], [prefix], **LIMIT, supersede_key="a")
            assert superseded(older)
    assert [answer(one) for one in (newest, other, keyless)] == [[expected[i]] for i in (-1, 1, 2)]
    # Triton has no reason of its own for it.
    failed = observe.settled(server, model).failures
    assert failed["BACKEND"] == 4 + 4  # here, and in making the moments
    assert connection.translate(model, *rows[0], **LIMIT) == expected[0]


def test_a_request_may_supersede_one_of_the_same_batch(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    """Triton holds both back until they are a whole batch; no row of the older one is run."""
    batching = "max_batch_size: 2\ndynamic_batching { max_queue_delay_microseconds: 60000000 }\n"
    model = load(configs.plain(batching=batching, **ONE_BY_ONE), "one_batch")
    (row, prefix), (other, other_prefix) = sentences(reference, 2)
    older = connection.start(model, [row], [prefix], **LIMIT, supersede_key="a")
    newer = connection.start(model, [other], [other_prefix], **LIMIT, supersede_key="a")
    ends = [older, newer]
    outcomes = [superseded(pending) for pending in ends]
    assert sorted(outcomes) == [False, True]  # which came first, Triton's threads decide
    cases = [(row, prefix), (other, other_prefix)]
    winner = outcomes.index(False)
    pair = cases[winner]
    again = [connection.start(model, [pair[0]], [pair[1]], **LIMIT) for _ in range(2)]
    for pending in again:
        assert answer(pending) == [reference.translate(*pair, **LIMIT)]
    # Counted a moment after the answer.
    wait_until(lambda: connection.statistics(model).inference_stats.fail.count == 1)


@pytest.mark.parametrize("decoding", ["calls", "loop"])
def test_older_requests_that_run_are_answered_so(
    load: LoadModel, connection: Connection, reference: Reference, decoding: str
) -> None:
    config = configs.plain(**(ENDLESS_ONE_BY_ONE | {"decoding": decoding}))
    model = load(config, f"running_{decoding}", endless_model())
    (row, prefix), (other, other_prefix) = sentences(reference, 2)
    older = in_backend(connection, model, row, prefix, "a", **ENDLESS)
    newer = connection.start(model, [other], [other_prefix], **LIMIT, supersede_key="a")
    assert superseded(older)
    assert answer(newer) == [reference.translate(other, other_prefix, **LIMIT)]


def test_the_answer_of_a_search_with_beams_comes_too_late(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    """It cannot be ended: it runs on, and its client has been told."""
    model = load(configs.plain(**ONE_BY_ONE), "running_beams")
    rows = sentences(reference, 2)
    beams = {"beam_size": 4, "min_decoding_length": 400, "max_decoding_length": 400}
    expected = [reference.translate(row, prefix, **beams) for row, prefix in rows]
    for _ in range(30):  # until the second comes before the first one's end
        both = [connection.start(model, [r], [p], **beams, supersede_key="a") for r, p in rows]
        outcomes = [superseded(pending) for pending in both]
        for pending, ended, ids in zip(both, outcomes, expected, strict=True):
            assert ended or answer(pending) == [ids]
        if any(outcomes):
            return
    pytest.fail("never superseded")


def test_http_requests_supersede_and_are_superseded(
    load: LoadModel, connection: Connection, server: TritonServer, reference: Reference
) -> None:
    model = load(configs.plain(**ENDLESS_ONE_BY_ONE), "over_http", endless_model())
    (row, prefix), (other, other_prefix) = sentences(reference, 2)
    replies: list[tuple[int, Any]] = []

    def send(ids: Ids, target: Ids) -> threading.Thread:
        thread = threading.Thread(
            target=lambda: replies.append(
                http_infer(server, model, ids, target, **LIMIT, supersede_key="a")
            )
        )
        thread.start()
        return thread

    with Occupied(connection, model, row, prefix):
        older = in_backend(connection, model, row, prefix, "a", **LIMIT)
        over_http = send(other, other_prefix)
        assert superseded(older)  # by the one over HTTP
        newer = connection.start(model, [row], [prefix], **LIMIT, supersede_key="a")
        over_http.join()
    assert replies == [(replies[0][0], {"error": SUPERSEDED})]
    assert replies[0][0] in {400, 499}  # Triton 2.51 says 400, later ones 499
    assert answer(newer) == [reference.translate(row, prefix, **LIMIT)]
    status, reply = http_infer(server, model, row, prefix, **LIMIT, supersede_key="a")
    assert status == 200
    assert reply["outputs"][0]["data"] == reference.translate(row, prefix, **LIMIT)


@pytest.mark.parametrize(
    ("key", "shown"), [("", '""'), ("x" * 257, '"' + "x" * 80 + '"...'), (7, "7"), (True, "true")]
)
def test_a_bad_key_is_refused_and_ends_nothing(
    connection: Connection, reference: Reference, key: Any, shown: str
) -> None:
    ((row, prefix),) = sentences(reference, 1)
    text = connection.refusal("nllb", [row], [prefix], **LIMIT, supersede_key=key)
    assert text == (
        f'parameter "supersede_key": the value {shown} is not allowed; '
        "give a string of 1 to 256 bytes"
    )
    good = connection.translate("nllb", row, prefix, **LIMIT, supersede_key="a")
    assert good == reference.translate(row, prefix, **LIMIT)


def test_a_request_that_is_refused_supersedes_nothing(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    model = load(configs.plain(**ENDLESS_ONE_BY_ONE), "refused", endless_model())
    ((row, prefix),) = sentences(reference, 1)
    with Occupied(connection, model, row, prefix):
        older = in_backend(connection, model, row, prefix, "a", **LIMIT)
        connection.refusal(model, [[-1]], [[5]], supersede_key="a")
    assert answer(older) == [reference.translate(row, prefix, **LIMIT)]


def test_a_storm_of_superseding_requests_leaves_the_server_well(
    make_server: MakeServer, tmp_path: Path, nllb_engine_model: Path, reference: Reference
) -> None:
    """The long form is `python tests/reliability/chaos.py supersede --minutes 30`."""
    write_model(tmp_path, "nllb", nllb_engine_model, configs.full())
    server = make_server(tmp_path)
    report = SupersedeStorm(server, "nllb", reference, SEED, drafts=True).run(STORM_SECONDS)
    assert not report.wrong, f"seed {SEED}: {report.wrong[:5]}"
    assert server.is_alive()
    for outcome in ("grpc answered", "grpc superseded", "http answered", "neighbour answered"):
        assert report.answered[outcome] > 0, report.answered
    assert observe.settled(server, "nllb").failed == sum(
        count for outcome, count in report.answered.items() if outcome.endswith("superseded")
    )
    connection = Connection(server.grpc_url)
    ((row, prefix),) = sentences(reference, 1)
    assert connection.translate("nllb", row, prefix, **LIMIT) == reference.translate(
        row, prefix, **LIMIT
    )
    connection.close()
