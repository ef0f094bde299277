# SPDX-License-Identifier: Apache-2.0
"""The demo's text model on a server of its own, and gateways in front of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from ct2_triton.client import RetryPolicy, TranslationClient
from ct2_triton.gateway.admission import Limits
from ct2_triton.gateway.catalog import Catalog, read_catalog
from ct2_triton.gateway.detection import Detector, detector_of
from ct2_triton.gateway.server import Gateway
from ct2_triton.gateway.translation import FORMATS, Format, Translator
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import TritonServer
from ct2_triton.terms import Terms
from support import forked
from support.servers import ServerStack
from support.web_command import WebCommand

MODEL = "demo-text"
SENTENCE = "The ticket office opens at 5:45."
GERMAN = "Der Fahrkartenschalter öffnet um 5:45 Uhr."
GOOD = {"q": SENTENCE, "source": "en", "target": "de"}
MakeSite = Callable[..., Awaitable["Site"]]
StartGateway = Callable[..., WebCommand]


class Site:
    """A gateway's address, and requests to it."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self.session = session

    async def get(self, path: str, **options: Any) -> tuple[int, Any]:
        async with self.session.get(f"{self.url}{path}", **options) as response:
            return response.status, await response.json()

    async def post(self, path: str, fields: Any, **options: Any) -> tuple[int, Any]:
        """Posts JSON, or whatever `options` say if there are no fields."""
        if fields is not None:
            options["json"] = fields
        async with self.session.post(f"{self.url}{path}", **options) as response:
            return response.status, await response.json()

    async def good(self) -> None:
        """A request that must be answered."""
        assert await self.post("/translate", GOOD) == (200, {"translatedText": GERMAN})


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Computed in float32: the same answers whatever else is in the batch.

    Its table has every pair of languages, so that a gateway has several sources to choose from.
    """
    folder = tmp_path_factory.mktemp("gateway")
    prepare(PrepareOptions("demo", folder, settings={"compute_type": "float32"}, io="both"))
    path = folder / "demo" / "tokenizer" / "languages.json"
    table = json.loads(path.read_text())
    for language in table["languages"]:
        language.update(source=True, target=True)
    path.unlink()  # it may be a link
    path.write_text(json.dumps(table))
    return folder


@pytest.fixture(scope="session")
def demo_server(repository: Path) -> Iterator[TritonServer]:
    with ServerStack() as stack:
        yield stack.start(repository)


@pytest.fixture(scope="session")
def catalog(repository: Path) -> Catalog:
    return read_catalog([MODEL], repository)


@pytest.fixture(scope="session")
def detector(catalog: Catalog) -> Detector:
    return detector_of(catalog)


@pytest.fixture
async def make_site(
    demo_server: TritonServer,
    repository: Path,
    catalog: Catalog,
    detector: Detector,
    tmp_path: Path,
) -> AsyncIterator[MakeSite]:
    """A function that starts a gateway in this process, with limits, formats or a client."""
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())

        async def make(
            formats: dict[str, Format] | None = None,
            url: str | None = None,
            client_timeout_s: float = 60.0,
            files: Path | None = tmp_path,
            glossaries: dict[str, Terms] | None = None,
            **limits: Any,
        ) -> Site:
            client = await stack.enter_async_context(
                TranslationClient(
                    url or demo_server.grpc_url,
                    MODEL,
                    repository=repository,
                    timeout_s=client_timeout_s,
                    # The shared server is there; another one may be gone.
                    retry=RetryPolicy(budget_s=0.5 if url else 30),
                    join_texts=True,
                )
            )
            translator = Translator(
                *(catalog, detector, {MODEL: client}, formats or FORMATS, glossaries or {})
            )
            runner = Gateway(translator, Limits(**limits), files).runner(0.1)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            return Site(f"http://127.0.0.1:{runner.addresses[0][1]}", session)

        yield make


@pytest.fixture
async def site(make_site: MakeSite) -> Site:
    return await make_site()


@pytest.fixture(scope="session")
def start_gateway(demo_server: TritonServer, repository: Path) -> Iterator[StartGateway]:
    """A function that starts the command on a free port."""
    with ExitStack() as stack:

        def start(*arguments: str, stderr: int | None = None, **variables: str) -> WebCommand:
            command = [
                str(Path(sys.executable).with_name("ct2-gateway")),
                *("--model", MODEL, "--model-repository", str(repository)),
                # A busy server may take longer than the second that is the default.
                *("--url", demo_server.grpc_url, "--port", "0", "--retry-for", "60", *arguments),
            ]
            environment = {**os.environ, **variables}
            process = forked.Popen(
                command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return WebCommand(process)

        yield start


@pytest.fixture(scope="session")
def gateway(start_gateway: StartGateway) -> str:
    """The address of a gateway that all tests share."""
    return start_gateway("--max-texts", "50").url
