# SPDX-License-Identifier: Apache-2.0
"""What whoever reaches the ports can do to a server that ct2-serve starts, told nothing else."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import tritonclient.grpc as grpc_client
from tritonclient.utils import InferenceServerException

from ct2_triton.serve import ServerOptions, TritonServer
from ct2_triton.serve.command import closed_apis
from server.helpers import Connection, Reference, sentences
from support.repository import write_model

pytestmark = pytest.mark.server

MakeServer = Callable[..., TritonServer]
SHARED_MEMORY = ("/v2/systemsharedmemory/region/x/register", {"key": "/x", "byte_size": 8})
LOGGING = ("/v2/logging", {"log_verbose_level": 9})
TRACE = ("/v2/trace/setting", {"trace_rate": "1"})


def post(server: TritonServer, path: str, body: object) -> tuple[int, str]:
    """Status and text of the answer."""
    data = json.dumps(body).encode()
    request = urllib.request.Request(server.http_url + path, data, method="POST")  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=600) as response:  # noqa: S310
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_models_cannot_be_controlled_from_outside(
    make_server: MakeServer, tmp_path: Path, nllb_engine_model: Path
) -> None:
    write_model(tmp_path, "nllb", nllb_engine_model)
    server = make_server(tmp_path)
    for action in ("load", "unload"):
        status, text = post(server, f"/v2/repository/models/nllb/{action}", {})
        assert status == 503
        assert "not allowed" in text
    with grpc_client.InferenceServerClient(server.grpc_url) as client:
        with pytest.raises(InferenceServerException, match="not allowed"):
            client.unload_model("nllb")
        assert client.is_model_ready("nllb")


def test_a_server_for_others_keeps_its_memory_and_its_log_to_itself(
    make_server: MakeServer, tmp_path: Path, nllb_engine_model: Path
) -> None:
    """What ct2-serve adds for other addresses, here on loopback: no test opens the machine."""
    write_model(tmp_path, "nllb", nllb_engine_model)
    arguments = closed_apis(ServerOptions([], host="0.0.0.0"))
    server = make_server(tmp_path, server_arguments=arguments)
    for path, body in (SHARED_MEMORY, LOGGING, TRACE):
        status, text = post(server, path, body)
        assert status == 403
        assert "restricted" in text
    with grpc_client.InferenceServerClient(server.grpc_url) as client:
        with pytest.raises(InferenceServerException, match="restricted"):
            client.register_system_shared_memory("x", "/x", 8)
        with pytest.raises(InferenceServerException, match="restricted"):
            client.update_log_settings({"log_verbose_level": 9})
    assert server.model_states()
    reference = Reference(nllb_engine_model)
    (row, prefix), *_ = sentences(reference, 1)
    connection = Connection(server.grpc_url)
    expected = reference.translate(row, prefix, max_decoding_length=9)
    assert connection.translate("nllb", row, prefix, max_decoding_length=9) == expected
    connection.close()


@pytest.mark.parametrize(("path", "body"), [LOGGING, TRACE])
def test_no_file_can_be_written_through_a_port(
    make_server: MakeServer,
    tmp_path: Path,
    nllb_engine_model: Path,
    path: str,
    body: dict[str, object],
) -> None:
    """Even where log and trace settings are open, as on loopback."""
    write_model(tmp_path / "repository", "nllb", nllb_engine_model)
    server = make_server(tmp_path / "repository")
    target = tmp_path / "written"
    status, text = post(server, path, {"log_file": str(target), "trace_file": str(target)} | body)
    assert status >= 400, text
    assert not target.exists()
