# SPDX-License-Identifier: Apache-2.0
"""Clients of a model that is loaded again with other tensors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ct2_triton.client import SyncTranslationClient
from ct2_triton.errors import RequestRejectedError, UnexpectedResponseError
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import TritonServer
from server.helpers import Connection
from support.servers import EXPLICIT, MakeServer

pytestmark = pytest.mark.server

SENTENCE = "The ticket office opens at 5:45."
GERMAN = "Der Fahrkartenschalter öffnet um 5:45 Uhr."


class Reloaded:
    """A server with the demo, whose config is exchanged."""

    def __init__(self, server: TritonServer, repository: Path) -> None:
        self.server = server
        self.repository = repository
        self.config = repository / "demo" / "config.pbtxt"
        self.written = self.config.read_text(encoding="utf-8")

    def load(self, config: str) -> None:
        """Loads the demo again, with this config."""
        self.config.write_text(config, encoding="utf-8")
        connection = Connection(self.server.grpc_url)
        connection.raw.load_model("demo")
        connection.close()


@pytest.fixture
def reloaded(tmp_path: Path, make_server: MakeServer) -> Reloaded:
    prepare(PrepareOptions("demo", tmp_path, io="both"))
    return Reloaded(make_server(tmp_path, server_arguments=EXPLICIT), tmp_path)


@pytest.fixture
def client(reloaded: Reloaded) -> Iterator[SyncTranslationClient]:
    with SyncTranslationClient(
        reloaded.server.grpc_url, "demo", repository=reloaded.repository
    ) as opened:
        assert _german(opened) == GERMAN
        yield opened


def _german(client: SyncTranslationClient) -> str:
    german = client.translate(SENTENCE, source="en", targets="de")
    return german.text


def test_other_types_and_fewer_tensors(reloaded: Reloaded, client: SyncTranslationClient) -> None:
    inputs, outputs = reloaded.written.split("output {", 1)
    wide = inputs.replace("TYPE_INT32", "TYPE_INT64") + "output {" + outputs
    no_batches = wide.replace("max_batch_size: 256", "max_batch_size: 0")
    no_batches = no_batches.replace("dynamic_batching {\n}\n", "").replace(
        "  allow_ragged_batch: true\n", ""
    )
    scores = 'output {\n  name: "SCORES"\n  data_type: TYPE_FP32\n  dims: -1\n}\n'
    assert scores in wide
    for config in (wide, no_batches, wide.replace(scores, ""), reloaded.written):
        reloaded.load(config)
        assert _german(client) == GERMAN
        with pytest.raises(RequestRejectedError, match="beam_size"):
            client.translate(SENTENCE, source="en", targets="de", beam_size=-1)
        assert _german(client) == GERMAN


def test_from_ids_to_text_and_back(reloaded: Reloaded, client: SyncTranslationClient) -> None:
    text = (reloaded.repository / "demo-text" / "config.pbtxt").read_text(encoding="utf-8")
    for config, kind in (
        (text.replace("demo-text", "demo"), "text"),
        (reloaded.written, "token ids"),
    ):
        reloaded.load(config)
        with pytest.raises(UnexpectedResponseError, match=f"loaded again and takes {kind} now"):
            _german(client)
        assert client.takes_text is (kind != "text")
        assert _german(client) == GERMAN
        assert client.takes_text is (kind == "text")
