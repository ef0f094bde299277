# SPDX-License-Identifier: Apache-2.0
"""A server that forwards every header as a request parameter: no header breaks a request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tritonclient.grpc import InferenceServerClient

from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import TritonServer
from server.helpers import Connection, json_inputs, post, tensor
from server.text_client import strings, translated
from support.servers import ServerStack

pytestmark = pytest.mark.server

VALUES = {"text_input": "Gate C19 closes in 6 minutes!", "target_languages": "de"}
GERMAN = "Gate C19 schließt in 6 Minuten!"
ORDINARY = [
    ("Authorization", "Bearer a.b.c"),
    ("User-Agent", "curl/8.14"),
    ("X-Request-Id", "7"),
    ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ("Cookie", "a=b"),
    ("X-Forwarded-For", "10.0.0.1"),
    ("Accept", "*/*"),
]
# Those that meet a parameter's name, of this backend or of Triton, but for upper case and hyphens.
MEETING = [
    ("Timeout", "Second-4100000000"),
    ("Priority", "u=1, i"),
    ("X-Stream", "yes"),
    ("Top-P", "x"),
    ("Sequence-Id", "x"),
    ("Max-Tokens", "many"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    repository = tmp_path_factory.mktemp("repository")
    prepare(PrepareOptions("demo", repository, "demo", io="stream"))
    forward = [f"--{door}-header-forward-pattern=.*" for door in ("grpc", "http")]
    with ServerStack() as stack:
        yield stack.start(repository, server_arguments=forward)


def _infer_body() -> dict[str, Any]:
    return {"inputs": json_inputs("BYTES", {name: [value] for name, value in VALUES.items()})}


@pytest.mark.parametrize("header", [*ORDINARY, *MEETING], ids=lambda header: header[0])
def test_over_http(server: TritonServer, header: tuple[str, str]) -> None:
    for body, route in ((VALUES, "generate"), (_infer_body(), "infer")):
        status, answered = post(server, f"demo-text/{route}", body, [header])
        assert (status, GERMAN in answered) == (200, True), answered


def test_a_header_that_comes_twice(server: TritonServer) -> None:
    twice = [("X-Forwarded-For", "10.0.0.1"), ("X-Forwarded-For", "10.0.0.2")]
    assert post(server, "demo-text/generate", VALUES, twice)[0] == 200


@pytest.mark.parametrize("header", [*ORDINARY, *MEETING[1:]], ids=lambda header: header[0])
def test_over_grpc(server: TritonServer, connection: Connection, header: tuple[str, str]) -> None:
    name, value = header
    inputs = [tensor(name, strings([[value]])) for name, value in VALUES.items()]
    with InferenceServerClient(server.grpc_url) as client:
        answered = client.infer("demo-text", inputs, headers={name.lower(): value})
    assert answered.as_numpy("text_output").tolist() == [[GERMAN.encode()]]
    assert translated(connection, VALUES["text_input"], ["de"]) == [[GERMAN]]


@pytest.mark.parametrize(("name", "value"), [("timeout", "Second-4100000000"), ("stream", "yes")])
def test_a_header_with_exactly_a_parameters_name_is_that_parameter(
    server: TritonServer, name: str, value: str
) -> None:
    """Triton does not tell one from the other, and forwards none to /generate."""
    status, answered = post(server, "demo-text/infer", _infer_body(), [(name, value)])
    assert status == 400
    error = json.loads(answered)["error"]
    assert error.startswith(f'parameter "{name}": the value "{value}" is not allowed')
    assert post(server, "demo-text/infer", _infer_body(), [(name, "0")])[0] == 200
