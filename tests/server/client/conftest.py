# SPDX-License-Identifier: Apache-2.0
"""Prepared models on the session's server, and clients of them."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.client import TranslationClient
from ct2_triton.errors import SupersededError
from ct2_triton.prepared_model import PreparedModel
from ct2_triton.serve import TritonServer
from server.helpers import Connection
from support.endless import ALLOWS_ENDLESS, ENDLESS, ROOMY
from support.prepared import prepare_tiny

Prepared = Callable[..., PreparedModel]
MakeClient = Callable[..., TranslationClient]
ENDLESS_MODEL: dict[str, Any] = {
    "tiny": ROOMY,
    "settings": {name: str(value) for name, value in ALLOWS_ENDLESS.items()},
}


async def endless_call(client: TranslationClient, text: str, target: str, key: str) -> Any:
    """A call that the server surely has, and that does not end by itself.

    It is made twice: the one that is superseded shows that the other has arrived.
    """
    calls = [
        asyncio.create_task(
            client.translate(text, source="eng_Latn", targets=target, supersede=key, **ENDLESS)
        )
        for _ in range(2)
    ]
    (ended,), (under_way,) = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    with pytest.raises(SupersededError, match="superseded by a newer request"):
        await ended
    return under_way


@pytest.fixture(scope="session")
def prepared(server: TritonServer, server_repository: Path) -> Iterator[Prepared]:
    """A function that gives the tiny model of a family, prepared and loaded; made once.

    `prepared("nllb", max_batch_size=0)`: further arguments are those of PrepareOptions.
    `prepared("nllb", **ENDLESS_MODEL)`: a model that takes the rows of `support.endless`.
    """
    made: dict[str, PreparedModel] = {}
    with ExitStack() as stack:
        connection = Connection(server.grpc_url)
        stack.callback(connection.close)

        def unload(model: PreparedModel) -> None:
            connection.raw.unload_model(model.name)
            shutil.rmtree(model.directory)

        def give(family: str, **options: Any) -> PreparedModel:
            name = "-".join(["client", family, *(f"{k}-{v}" for k, v in options.items())])
            name = "client-endless" if options == ENDLESS_MODEL else name
            if name not in made:
                made[name] = prepare_tiny(family, server_repository, name, **options)
                stack.callback(unload, made[name])
                connection.raw.load_model(name)
            return made[name]

        yield give


@pytest.fixture
def make_client(server: TritonServer, server_repository: Path, prepared: Prepared) -> MakeClient:
    """A function that gives a client of the tiny model of a family; the test closes it."""

    def make(family: str = "nllb", *, made: dict[str, Any] | None = None, **settings: Any) -> Any:
        model = prepared(family, **(made or {}))
        return TranslationClient(
            server.grpc_url, model.name, repository=server_repository, **settings
        )

    return make


@pytest.fixture
def statistics(server: TritonServer) -> Iterator[Callable[[str], Any]]:
    """A function that gives the server's statistics of a model."""
    connection = Connection(server.grpc_url)
    yield connection.statistics
    connection.close()
