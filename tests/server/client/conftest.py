# SPDX-License-Identifier: Apache-2.0
"""Prepared models on the session's server, and clients of them."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.client import SyncTranslationClient, TranslationClient
from ct2_triton.errors import SupersededError
from ct2_triton.prepared_model import PreparedModel
from ct2_triton.serve import TritonServer
from server.helpers import Connection
from support.endless import ALLOWS_ENDLESS, ENDLESS, ROOMY
from support.prepared import prepare_tiny

Prepared = Callable[..., PreparedModel]
MakeClient = Callable[..., TranslationClient]
Command = Callable[..., list[str]]
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


@pytest.fixture
def command(server: TritonServer, server_repository: Path, prepared: Prepared) -> Command:
    """The command line that translates into German with the tiny NLLB model."""

    def line(*arguments: str | Path) -> list[str]:
        start = [str(Path(sys.executable).with_name("ct2-translate")), "--url", server.grpc_url]
        place = ["--model-repository", str(server_repository), "--model", prepared("nllb").name]
        what = ["--from=en", "--to=de", "--option", "max_decoding_length=8"]
        return [*start, *place, *what, *map(str, arguments)]

    return line


@pytest.fixture
def expected(
    server: TritonServer, server_repository: Path, prepared: Prepared
) -> Callable[[list[str]], list[str]]:
    """A function that gives the translations of lines."""

    def texts(lines: list[str]) -> list[str]:
        with SyncTranslationClient(
            server.grpc_url, prepared("nllb").name, repository=server_repository
        ) as client:
            answers = client.translate(lines, source="en", targets="de", max_decoding_length=8)
        return [" ".join(answer.text.splitlines()) for answer in answers]

    return texts
