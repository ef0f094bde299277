# SPDX-License-Identifier: Apache-2.0
"""The promise of the backend: what a row gets does not depend on what it shares a batch with."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from ct2_triton.serve import TritonServer
from server.helpers import Connection, Ids, Reference, padded, sentences

pytestmark = pytest.mark.server

ROWS = 64
MODEL = "nllb"
# Random models do not end by themselves: these make rows end at very different lengths.
END_TOKENS = list(range(4, 1400, 60))

SEARCHES = {"greedy": {"beam_size": 1}, "beam 4": {"beam_size": 4}}
LIMITS: dict[str, dict[str, Any]] = {
    "natural ends": {"end_token": END_TOKENS, "max_decoding_length": 48, "min_decoding_length": 4},
    "limit that bites": {"max_decoding_length": 20},
    "limit by row": {"max_decoding_length_multiple": 1.2},
}


@dataclass(frozen=True)
class Case:
    """Sentences, the options they are sent with, and what CTranslate2 gives for each alone."""

    rows: list[tuple[Ids, Ids]]
    parameters: dict[str, Any]
    expected: list[Ids]


def expected_ids(reference: Reference, row: Ids, prefix: Ids, options: dict[str, Any]) -> Ids:
    options = dict(options)
    multiple = options.pop("max_decoding_length_multiple", None)
    if multiple is not None:
        options["max_decoding_length"] = max(1, int(multiple * len(row)))
    return reference.translate(row, prefix, **options)


def as_parameters(options: dict[str, Any]) -> dict[str, Any]:
    return {name: str(v) if isinstance(v, list) else v for name, v in options.items()}


@pytest.fixture(scope="module", params=[(s, n) for s in SEARCHES for n in LIMITS], ids=", ".join)
def case(request: pytest.FixtureRequest, reference: Reference) -> Case:
    search, limit = request.param
    options = {**SEARCHES[search], **LIMITS[limit]}
    rows = sentences(reference, ROWS)
    expected = [expected_ids(reference, row, prefix, options) for row, prefix in rows]
    return Case(rows, as_parameters(options), expected)


def test_the_sentences_tell_something(case: Case) -> None:
    """Rows differ in length and in outcome, or equality would prove nothing."""
    assert len({len(row) for row, _ in case.rows}) > ROWS // 3
    assert len({tuple(ids) for ids in case.expected}) > ROWS // 3


def test_alone(case: Case, connection: Connection) -> None:
    got = [connection.translate(MODEL, row, p, **case.parameters) for row, p in case.rows]
    assert got == case.expected


def test_from_64_clients_at_once(case: Case, server: TritonServer) -> None:
    clients = [Connection(server.grpc_url) for _ in case.rows]

    def ask(i: int) -> Ids:
        row, prefix = case.rows[i]
        return clients[i].translate(MODEL, row, prefix, **case.parameters)

    with ThreadPoolExecutor(ROWS) as threads:
        got = list(threads.map(ask, range(ROWS)))
    for client in clients:
        client.close()
    assert got == case.expected


def unpadded(answer: dict[str, np.ndarray[Any, Any]]) -> list[Ids]:
    rows, lengths = answer["OUTPUT_IDS"], answer["OUTPUT_LENGTHS"]
    return [row[:length].tolist() for row, (length,) in zip(rows, lengths, strict=True)]


@pytest.mark.parametrize("filler", [1, 999], ids=["pad ids", "ids of words"])
def test_as_rows_of_one_request_with_lengths(
    case: Case, connection: Connection, filler: int
) -> None:
    """Lengths win over padding, whatever the padding is."""
    lengths = [[len(row)] for row, _ in case.rows]
    answer = connection.infer(
        MODEL,
        padded([row for row, _ in case.rows], filler),
        [prefix for _, prefix in case.rows],
        more={"INPUT_LENGTHS": lengths},
        outputs=["OUTPUT_IDS", "OUTPUT_LENGTHS"],
        **case.parameters,
    )
    assert unpadded(answer) == case.expected


def test_as_rows_of_one_padded_request(case: Case, connection: Connection) -> None:
    answer = connection.infer(
        MODEL,
        padded([row for row, _ in case.rows]),
        [prefix for _, prefix in case.rows],
        outputs=["OUTPUT_IDS", "OUTPUT_LENGTHS"],
        **case.parameters,
    )
    assert unpadded(answer) == case.expected


def test_mixed_with_other_options(case: Case, server: TritonServer) -> None:
    """Every second request asks for something else, at the same time and in a shuffled order."""
    others = [
        {"beam_size": 1, "max_decoding_length": 5},
        {"beam_size": 3, "num_hypotheses": 2, "max_decoding_length": 12},
        {"beam_size": 1, "sampling_topk": 5, "max_decoding_length": 12},
        {"beam_size": 4, "length_penalty": 0.4, "max_decoding_length": 20},
    ]
    connection = Connection(server.grpc_url)
    got: dict[int, Ids] = {}

    def ask(i: int) -> None:
        row, prefix = case.rows[i % ROWS]
        if i < ROWS:
            got[i] = connection.translate(MODEL, row, prefix, **case.parameters)
        else:
            connection.translate(MODEL, row, prefix, **others[i % len(others)])

    order = random.Random(3).sample(range(2 * ROWS), 2 * ROWS)
    with ThreadPoolExecutor(32) as threads:
        list(threads.map(ask, order))
    connection.close()
    assert [got[i] for i in range(ROWS)] == case.expected
