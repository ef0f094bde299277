# SPDX-License-Identifier: Apache-2.0
"""Long texts, hostile texts and full queues hold nobody else's request back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tritonclient.utils import InferenceServerException

from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import TritonServer
from reliability.observe import counts
from server import configs
from server.conftest import LoadModel
from server.helpers import Connection, Pending, Reference, sentences
from server.moments import Occupied, in_backend, superseded
from server.text_client import answer, send_text, translated
from support.endless import ALLOWS_ENDLESS, endless_model
from support.metrics import scrape
from support.servers import MakeServer, ServerStack
from support.waiting import wait_until

pytestmark = pytest.mark.server

GOOD = "Gate C19 closes in 6 minutes!"
GOOD_GERMAN = "Gate C19 schließt in 6 Minuten!"
ONE_WORKER = {"inter_threads": 1, "intra_threads": 1, "decoding": "calls", **ALLOWS_ENDLESS}
SHORT = {"max_decoding_length": 8}
DYNAMIC = re.compile(r"dynamic_batching \{\s*\}")


@pytest.fixture(scope="module")
def text_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    folder = tmp_path_factory.mktemp("intake")
    prepare(PrepareOptions("demo", folder, "demo", io="both"))
    with ServerStack() as stack:
        yield stack.start(folder)


@pytest.fixture(scope="module")
def texts(text_server: TritonServer) -> Iterator[Connection]:
    connection = Connection(text_server.grpc_url)
    yield connection
    connection.close()


def _book(number: int, sentences: int = 1_200) -> str:
    return " ".join(f"Gate {number} of {i} closes in 6 minutes!" for i in range(sentences))


def _is_answered(pending: Pending) -> bool:
    return bool(pending.has_ended())


def test_single_sentences_pass_long_texts(texts: Connection) -> None:
    """All of them are answered before any of eight long texts that came earlier."""
    slow = {"beam_size": 1, "min_decoding_length": 120, "max_decoding_length": 120}
    books = [send_text(texts, _book(i), ["de"], **slow, supersede_key=f"{i}") for i in range(8)]
    for _ in range(5):
        assert translated(texts, GOOD, ["de"]) == [[GOOD_GERMAN]]
    assert not any(map(_is_answered, books))
    # They would take minutes.
    for i, book in enumerate(books):
        assert translated(texts, GOOD, ["de"], supersede_key=f"{i}") == [[GOOD_GERMAN]]
        assert superseded(book)


def test_a_long_text_is_answered_whole(texts: Connection) -> None:
    book = send_text(texts, _book(0), ["de"], outputs=["text_output", "target_ranges"])
    assert len(answer(book)["target_ranges"][0][0]) == 1_200


def test_a_text_that_is_hard_to_cut_is_read_beside_others(texts: Connection) -> None:
    """Its last text is refused, but not before a request that came later is answered."""
    hard = ["".join(chr(0xFDFA) + chr(0x4E00 + i % 9000) for i in range(160_000))] * 4
    refused = send_text(texts, [*hard, b"\xff"], ["de", "fr", "es"], split="none")
    assert translated(texts, GOOD, ["de"]) == [[GOOD_GERMAN]]
    assert not _is_answered(refused)
    with pytest.raises(InferenceServerException, match="row 4: it is not UTF-8"):
        answer(refused)
    assert translated(texts, GOOD, ["de"]) == [[GOOD_GERMAN]]


def test_a_newer_request_ends_a_long_one_that_is_still_read(texts: Connection) -> None:
    """The older one is not checked yet; nor may it end the newer one once it is."""
    hard = ["".join(chr(0xFDFA) + chr(0x4E00 + i % 9000) for i in range(160_000))] * 4
    older = send_text(texts, hard, ["de"], split="none", supersede_key="a")
    while not _is_answered(older):  # Triton may give the backend a short one first
        assert translated(texts, GOOD, ["de"], supersede_key="a") == [[GOOD_GERMAN]]
    assert superseded(older)


def test_a_newer_request_ends_a_long_one_of_its_own_batch(
    make_server: MakeServer, tmp_path: Path
) -> None:
    """Triton holds the long one back until there is a whole batch."""
    prepare(PrepareOptions("demo", tmp_path, "demo", io="both"))
    config = tmp_path / "demo-text" / "config.pbtxt"
    held = "dynamic_batching { preferred_batch_size: [2] max_queue_delay_microseconds: 60000000 }"
    text = config.read_text()
    assert DYNAMIC.search(text)
    text = DYNAMIC.sub(held, text)
    config.write_text(text)
    server = make_server(tmp_path)
    connection = Connection(server.grpc_url)
    older = send_text(connection, _book(1, 200), ["de"], supersede_key="a")
    wait_until(lambda: counts(server, "demo-text").pending == 1)
    newer = send_text(connection, GOOD, ["de"], outputs=["text_output"], supersede_key="a")
    assert superseded(older)
    assert answer(newer)["text_output"] == [[GOOD_GERMAN]]
    connection.close()


def test_a_newer_request_reaches_its_older_one_while_the_queue_is_full(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    model = load(configs.plain(**ONE_WORKER, max_queued_rows=4), "full_queue", endless_model())
    rows = sentences(reference, 8)
    with Occupied(connection, model, *rows[0]):
        older = in_backend(connection, model, *rows[1], "a", **SHORT)
        # Three more fill the queue, and one waits for it.
        waiting = [connection.start(model, [row], [prefix], **SHORT) for row, prefix in rows[2:6]]
        newer = connection.start(model, [rows[6][0]], [rows[6][1]], **SHORT, supersede_key="a")
        assert superseded(older)  # while the only worker is busy
    for pending, (row, prefix) in zip([*waiting, newer], rows[2:7], strict=True):
        expected = reference.translate(row, prefix, **SHORT)
        assert pending.get_result().as_numpy("OUTPUT_IDS").tolist() == [expected]


def test_a_large_request_leaves_places_to_small_ones(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    """It has half of the places: a small one that comes later enters at once, and is superseded."""
    config = configs.plain(**ONE_WORKER, max_queued_rows=8, max_batch_rows=1)
    model = load(config, "shared_queue", endless_model())
    (row, prefix), *_ = sentences(reference, 1)
    many = [[*row[:-1], 50 + i, row[-1]] for i in range(64)]
    with Occupied(connection, model, row, prefix):
        large = connection.start(model, many, [prefix] * len(many), **SHORT)
        older = in_backend(connection, model, row, prefix, "a", **SHORT)
        assert not _is_answered(large)
        newer = connection.start(model, [row], [prefix], **SHORT, supersede_key="a")
        assert superseded(older)
    assert newer.get_result().as_numpy("OUTPUT_IDS").tolist() == [
        reference.translate(row, prefix, **SHORT)
    ]
    expected = [reference.translate(one, prefix, **SHORT) for one in many]
    assert large.get_result().as_numpy("OUTPUT_IDS").tolist() == expected


def test_small_requests_that_fill_the_queue_do_not_keep_a_large_one_out(
    load: LoadModel, connection: Connection, server: TritonServer, reference: Reference
) -> None:
    """Small ones take more than half of the places; still one row of the large one enters."""
    config = configs.plain(**ONE_WORKER, max_queued_rows=8, max_batch_rows=1)
    model = load(config, "full_of_small", endless_model())
    (row, prefix), *_ = sentences(reference, 1)

    def distinct(first: int, count: int) -> list[list[int]]:
        return [[*row[:-1], first + i, row[-1]] for i in range(count)]

    def waiting() -> float:
        return scrape(server, model)["ct2_waiting_rows"]

    small, large = distinct(50, 7), distinct(60, 64)
    with Occupied(connection, model, row, prefix):
        singles = [connection.start(model, [one], [prefix], **SHORT) for one in small]
        wait_until(lambda: waiting() == len(small))
        request = connection.start(model, large, [prefix] * len(large), **SHORT)
        wait_until(lambda: waiting() == len(small) + 1)
    for one, pending in zip(small, singles, strict=True):
        expected = reference.translate(one, prefix, **SHORT)
        assert pending.get_result().as_numpy("OUTPUT_IDS").tolist() == [expected]
    expected = [reference.translate(one, prefix, **SHORT) for one in large]
    assert request.get_result().as_numpy("OUTPUT_IDS").tolist() == expected
