# SPDX-License-Identifier: Apache-2.0
"""The same ids in every encoding that Triton's protocols have for them."""

from __future__ import annotations

import json
import socket
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

from ct2_triton.serve import TritonServer
from server.helpers import Connection, Reference, json_inputs, padded, post, sentences, tensor
from support.waiting import wait_until

pytestmark = pytest.mark.server

MODEL = "nllb"


def post_in_two_pieces(server: TritonServer, path: str, head: bytes, body: bytes, cut: int) -> Any:
    """Sends a binary HTTP request whose body arrives in two pieces; gives the JSON answer."""
    host, port = server.http_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=600) as wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire.sendall(
            f"POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
            f"Inference-Header-Content-Length: {len(head)}\r\n"
            f"Content-Length: {len(head) + len(body)}\r\n\r\n".encode()
        )
        wire.sendall(head + body[:cut])
        wire.sendall(body[cut:])
        answer = b"".join(iter(lambda: wire.recv(65536), b""))
    return json.loads(answer.split(b"\r\n\r\n", 1)[1])


def test_a_large_http_body_in_pieces(server: TritonServer, reference: Reference) -> None:
    (row, _), *_ = sentences(reference, 1)
    rows = [row] * 256
    width = 4001
    body = padded([[*r, *[1] * (width - len(r))] for r in rows]).tobytes()
    body += np.array([[len(row)]] * len(rows), np.int32).tobytes()
    head = json.dumps(
        {
            "inputs": [
                {"name": "INPUT_IDS", "datatype": "INT32", "shape": [len(rows), width],
                 "parameters": {"binary_data_size": len(rows) * width * 4}},
                {"name": "INPUT_LENGTHS", "datatype": "INT32", "shape": [len(rows), 1],
                 "parameters": {"binary_data_size": len(rows) * 4}},
            ],
            "outputs": [{"name": "OUTPUT_IDS"}],
            "parameters": {"max_decoding_length": 6},
        }
    ).encode()  # fmt: skip
    answer = post_in_two_pieces(server, f"/v2/models/{MODEL}/infer", head, body, 1_000_003)
    expected = reference.translate(row, max_decoding_length=6)
    assert answer["outputs"][0]["data"] == expected * len(rows)


def test_ids_as_json(server: TritonServer, reference: Reference) -> None:
    (row, prefix), *_ = sentences(reference, 1)
    body = {
        "inputs": json_inputs("INT32", {"INPUT_IDS": row, "TARGET_PREFIX": prefix}),
        "outputs": [{"name": "OUTPUT_IDS"}, {"name": "FINISH_REASON"}],
        "parameters": {"max_decoding_length": 6, "beam_size": 1},
    }
    _, sent = post(server, f"{MODEL}/infer", body)
    outputs = {output["name"]: output["data"] for output in json.loads(sent)["outputs"]}
    expected = reference.translate(row, prefix, beam_size=1, max_decoding_length=6)
    assert outputs == {"OUTPUT_IDS": expected, "FINISH_REASON": ["length"]}


def test_ids_as_typed_contents(server: TritonServer, reference: Reference) -> None:
    """Clients may send lists of integers in place of raw bytes."""
    (row, prefix), *_ = sentences(reference, 1)
    request = service_pb2.ModelInferRequest(model_name=MODEL)
    request.parameters["max_decoding_length"].int64_param = 6
    request.outputs.add(name="OUTPUT_IDS")
    for name, ids in (("INPUT_IDS", row), ("TARGET_PREFIX", prefix)):
        sent = request.inputs.add(name=name, datatype="INT32", shape=[1, len(ids)])
        sent.contents.int_contents.extend(ids)
    with grpc.insecure_channel(server.grpc_url) as channel:
        answer = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request)
    expected = reference.translate(row, prefix, max_decoding_length=6)
    assert np.frombuffer(answer.raw_output_contents[0], np.int32).tolist() == expected


def _unregister(connection: Connection, region: str) -> bool:
    """Lets the server forget a region, unless a request still uses it."""
    try:
        connection.raw.unregister_system_shared_memory(region)
    except InferenceServerException as error:
        if "currently in use" not in str(error):
            raise
        return False
    return True


def test_system_shared_memory_that_is_too_small(
    connection: Connection, reference: Reference
) -> None:
    """Triton cannot place the output: the request fails, the next one does not."""
    import tritonclient.utils.shared_memory as shm

    (row, prefix), *_ = sentences(reference, 1)
    region = shm.create_shared_memory_region("small", "/ct2_triton_small", 8)
    connection.raw.register_system_shared_memory("small", "/ct2_triton_small", 8)
    try:
        output = grpc_client.InferRequestedOutput("OUTPUT_IDS")
        output.set_shared_memory("small", 8)
        inputs = [tensor("INPUT_IDS", [row]), tensor("TARGET_PREFIX", [prefix])]
        with pytest.raises(Exception, match="OUTPUT_IDS"):
            connection.raw.infer(MODEL, inputs, outputs=[output])
    finally:
        # An answer is sent before the request is released, and with it the region.
        wait_until(lambda: _unregister(connection, "small"))
        shm.destroy_shared_memory_region(region)
    expected = reference.translate(row, prefix, max_decoding_length=9)
    assert connection.translate(MODEL, row, prefix, max_decoding_length=9) == expected
