# SPDX-License-Identifier: Apache-2.0
"""Requests meant to break the backend: each is refused in a sentence, and the server goes on.

All of them meet one and the same tritonserver process, which gives a correct answer after each.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from ct2_triton.serve import TritonServer
from server.helpers import END, Connection, Reference, padded, sentences, tensor

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("the_same_server_still_answers")]

MODEL = "nllb"
ROW, PREFIX = [300, 50, 60, 70, END], [9]
VOCABULARY = 1406


@pytest.mark.parametrize("bad_id", [-1, -(2**31), VOCABULARY, 2**31 - 1])
def test_source_id_out_of_range(connection: Connection, bad_id: int) -> None:
    message = connection.refusal(MODEL, [[300, bad_id, END]], [PREFIX])
    assert f"INPUT_IDS, row 0: id {bad_id} at position 1" in message
    assert f"ids 0 to {VOCABULARY - 1}" in message


@pytest.mark.parametrize("bad_id", [-1, -(2**31), VOCABULARY, 2**31 - 1])
def test_prefix_id_out_of_range(connection: Connection, bad_id: int) -> None:
    message = connection.refusal(MODEL, [ROW], [[9, bad_id]])
    assert f"TARGET_PREFIX, row 0: id {bad_id} at position 1" in message


def test_the_row_at_fault_is_named(connection: Connection) -> None:
    rows = [ROW, ROW, [*ROW[:-1], 99999]]
    assert "INPUT_IDS, row 2: id 99999 at position 4" in connection.refusal(MODEL, rows)


def test_5000_tokens(connection: Connection) -> None:
    message = connection.refusal(MODEL, [[50] * 5000], [PREFIX])
    assert "it has 5000 ids" in message


def test_a_prefix_of_5000_tokens(connection: Connection, reference: Reference) -> None:
    """A prefix is cut at the row's limit, as CTranslate2 does."""
    prefix = [50] * 5000
    expected = reference.translate(ROW, prefix, max_decoding_length=20)
    assert connection.translate(MODEL, ROW, prefix, max_decoding_length=20) == expected


def test_a_million_tokens_in_many_rows(connection: Connection) -> None:
    message = connection.refusal(MODEL, np.full((200, 5000), 50, np.int32))
    assert "it has 5000 ids" in message


def test_more_rows_than_max_batch_size(connection: Connection) -> None:
    assert "batch-size must be <= 256" in connection.refusal(MODEL, [ROW] * 257)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "float64", "bool"])
def test_wrong_type(connection: Connection, dtype: str) -> None:
    message = connection.refusal(MODEL, np.ones((1, 4), dtype))
    assert "INPUT_IDS" in message
    assert "data-type" in message


def test_strings_for_ids(connection: Connection) -> None:
    assert "data-type" in connection.refusal(MODEL, np.array([[b"Hello", b"world"]], object))


@pytest.mark.parametrize("shape", [(4,), (1, 1, 4), (2, 2, 1)])
def test_wrong_rank(connection: Connection, shape: tuple[int, ...]) -> None:
    assert "shape" in connection.refusal(MODEL, np.full(shape, 50, np.int32))


def test_rows_of_no_length(connection: Connection) -> None:
    answer = connection.infer(MODEL, np.zeros((3, 0), np.int32), outputs=None)
    assert answer["OUTPUT_IDS"].shape == (3, 0)


def test_no_rows_of_some_length(connection: Connection) -> None:
    """Triton itself refuses them: it counts the bytes of one row."""
    assert "byte size mismatch" in connection.refusal(MODEL, np.zeros((0, 4), np.int32))


def test_fewer_bytes_than_the_shape_says(connection: Connection) -> None:
    lying = tensor("INPUT_IDS", [ROW])
    lying.set_shape([1, 1000])
    with pytest.raises(InferenceServerException, match="byte size mismatch"):
        connection.send(MODEL, [lying]).get_result()


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("INPUT_LENGTHS", [[9], [5]], "INPUT_LENGTHS, row 0: length 9 does not fit"),
        ("INPUT_LENGTHS", [[5], [-1]], "INPUT_LENGTHS, row 1: length -1 does not fit"),
        ("INPUT_LENGTHS", [[5], [2**31 - 1]], "INPUT_LENGTHS, row 1: length 2147483647"),
        ("PREFIX_LENGTHS", [[1], [2]], "PREFIX_LENGTHS, row 1: length 2 does not fit"),
        ("INPUT_LENGTHS", [[5], [5], [5]], "batch size does not match"),
        ("INPUT_LENGTHS", [[5, 5], [5, 5]], "unexpected shape for input 'INPUT_LENGTHS'"),
        ("TARGET_PREFIX", [[9], [9], [9]], "batch size does not match"),
    ],
)
def test_tensors_that_lie(
    connection: Connection, name: str, values: list[list[int]], said: str
) -> None:
    inputs: dict[str, Any] = {"INPUT_IDS": [ROW, ROW], "TARGET_PREFIX": [PREFIX, PREFIX]}
    inputs[name] = values
    with pytest.raises(InferenceServerException) as raised:
        connection.send(MODEL, [tensor(*item) for item in inputs.items()]).get_result()
    assert raised.value.status() == "StatusCode.INVALID_ARGUMENT"
    assert said in raised.value.message()


def test_prefix_lengths_without_a_prefix(connection: Connection) -> None:
    message = connection.refusal(MODEL, [ROW], more={"PREFIX_LENGTHS": [[0]]})
    assert "PREFIX_LENGTHS is given without TARGET_PREFIX" in message


def test_missing_input(connection: Connection) -> None:
    with pytest.raises(InferenceServerException, match="INPUT_IDS"):
        connection.send(MODEL, [tensor("TARGET_PREFIX", [PREFIX])]).get_result()


def test_surplus_input(connection: Connection) -> None:
    assert "SOURCE" in connection.refusal(MODEL, [ROW], more={"SOURCE": [ROW]})


def test_an_input_sent_twice(connection: Connection) -> None:
    inputs = [tensor("INPUT_IDS", [ROW]), tensor("INPUT_IDS", [[1, 2, 3]])]
    with pytest.raises(InferenceServerException):
        connection.send(MODEL, inputs).get_result()


def test_unknown_output(connection: Connection) -> None:
    assert "LOGITS" in connection.refusal(MODEL, [ROW], outputs=["LOGITS"])


def test_a_flood_of_bad_requests_among_good_ones(
    server: TritonServer, reference: Reference
) -> None:
    """Every good one is answered correctly."""
    connection = Connection(server.grpc_url)
    rows = sentences(reference, 40)
    poison: list[dict[str, Any]] = [
        {"ids": [[-5]]},
        {"ids": [ROW], "beam_size": 0},
        {"ids": [[50] * 3000]},
        {"ids": [ROW], "prefix": [[-1]]},
        {"ids": [ROW], "nonsense": True},
    ]

    def ask(i: int) -> bool:
        if i % 2:
            return bool(connection.refusal(MODEL, **poison[i % len(poison)]))
        row, prefix = rows[i // 2]
        got = connection.translate(MODEL, row, prefix, max_decoding_length=10)
        return got == reference.translate(row, prefix, max_decoding_length=10)

    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(ask, range(80)))
    connection.close()


def test_over_http(server: TritonServer) -> None:
    """The status is 400: the client can mend it."""
    client = http_client.InferenceServerClient(server.http_url.removeprefix("http://"))
    ids = http_client.InferInput("INPUT_IDS", [1, 3], "INT32")
    ids.set_data_from_numpy(padded([[1, -7, END]]))
    with pytest.raises(InferenceServerException, match="id -7 at position 1") as raised:
        client.infer(MODEL, [ids])
    assert raised.value.status() == "400"
    client.close()
