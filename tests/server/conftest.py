# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests against a live backend."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tritonclient.utils import InferenceServerException

from ct2_triton.serve import TritonServer
from server.helpers import Connection, Reference, sentences
from support.repository import write_model


@pytest.fixture(scope="session")
def reference(nllb_engine_model: Path) -> Reference:
    """CTranslate2 itself, on the files that the model `nllb` serves."""
    return Reference(nllb_engine_model)


@pytest.fixture
def connection(server: TritonServer) -> Iterator[Connection]:
    """A connection to the session's server."""
    opened = Connection(server.grpc_url)
    yield opened
    opened.close()


LoadModel = Callable[..., str]
LoadFailure = Callable[..., str]


@pytest.fixture
def load(
    server_repository: Path, nllb_engine_model: Path, connection: Connection
) -> Iterator[LoadModel]:
    """A function that adds a model to the session's server for one test.

    `load(config, name="test", engine_model=...)` gives the name. Raises what the server says.
    """
    added: list[str] = []

    def add(config: str | None, name: str = "test", engine_model: Path = nllb_engine_model) -> str:
        write_model(server_repository, name, engine_model, config)
        added.append(name)
        connection.raw.load_model(name)
        return name

    yield add
    for name in added:
        connection.raw.unload_model(name)
        shutil.rmtree(server_repository / name)


@pytest.fixture
def load_failure(load: LoadModel) -> LoadFailure:
    """A function like `load` for a config that must be refused; it gives the server's text."""

    def add(config: str | None, name: str = "test", **kwargs: Path) -> str:
        with pytest.raises(InferenceServerException) as raised:
            load(config, name, **kwargs)
        return str(raised.value.message())

    return add


@pytest.fixture
def longer_vocabulary(nllb_engine_model: Path, tmp_path: Path) -> Path:
    """A model whose vocabulary has ten tokens more than its embedding table has rows."""
    folder = tmp_path / "longer"
    shutil.copytree(nllb_engine_model, folder)
    file = folder / "shared_vocabulary.json"
    tokens = json.loads(file.read_text())
    file.write_text(json.dumps([*tokens, *(f"surplus{i}" for i in range(10))]))
    return folder


@pytest.fixture
def the_same_server_still_answers(
    server: TritonServer, connection: Connection, reference: Reference
) -> Iterator[None]:
    """After the test: the shared server is the process that it was, and translates."""
    process = server.process.pid
    yield
    assert server.is_alive()
    assert server.process.pid == process
    for row, prefix in sentences(reference, 2):
        expected = reference.translate(row, prefix, max_decoding_length=10)
        assert connection.translate("nllb", row, prefix, max_decoding_length=10) == expected
