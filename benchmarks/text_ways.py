# SPDX-License-Identifier: Apache-2.0
"""The ways in which `measure_text.py` asks for a translation of text."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from ct2_triton.bench.errors import BenchError
from ct2_triton.client import TranslationClient
from ct2_triton.prepared_model import TEXT_SUFFIX
from ensemble import ENSEMBLE_SUFFIX

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from contextlib import AsyncExitStack
    from pathlib import Path

    import aiohttp

MODEL = "demo"
WAYS = ("ids", "text", "ensemble", "gateway")
"""Token ids of a client that tokenizes; text; text to a classic ensemble; text over HTTP."""

_COMMAND = "import sys; from ct2_triton.cli import gateway; sys.exit(gateway())"


class Way(Protocol):
    """Asks for translations of an English sentence."""

    async def ask(self, sentence: str, targets: Sequence[str]) -> list[str]:
        """Translate a sentence into each language.

        Args:
            sentence: The sentence.
            targets: The languages.

        Returns:
            A translation for each.
        """


class _ByClient:
    """All languages in one call of the client, which builds the model's requests."""

    def __init__(self, client: TranslationClient) -> None:
        self._client = client

    async def ask(self, sentence: str, targets: Sequence[str]) -> list[str]:
        found = await self._client.translate(sentence, source="en", targets=targets)
        return [one.text for one in found]


class _ByEnsemble:
    """A request for each language, all at the same time."""

    def __init__(self, client: TranslationClient) -> None:
        self._client = client

    async def ask(self, sentence: str, targets: Sequence[str]) -> list[str]:
        found = await asyncio.gather(
            *(self._client.translate(sentence, source="en", targets=one) for one in targets)
        )
        return [one.text for one in found]


class _ByGateway:
    """Requests over HTTP to ct2-gateway."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def ask(self, sentence: str, targets: Sequence[str]) -> list[str]:
        return await asyncio.gather(*(self._one(sentence, target) for target in targets))

    async def _one(self, sentence: str, target: str) -> str:
        body = {"q": sentence, "source": "en", "target": target}
        async with self._session.post(self._url, json=body) as response:
            answer = await response.json()
        if response.status != 200:
            raise BenchError(f"the gateway answered {response.status}: {answer}")
        return str(answer["translatedText"])


async def open_ways(
    stack: AsyncExitStack, names: Sequence[str], url: str, repository: Path
) -> dict[str, Way]:
    """Connect in some ways.

    Args:
        stack: Closes what is opened.
        names: The ways, of `WAYS`.
        url: The server's gRPC endpoint; it has the model of ids, of text and the ensemble.
        repository: Its model repository.

    Returns:
        The ways by name.
    """
    ways: dict[str, Way] = {}
    models = {"ids": MODEL, "text": MODEL + TEXT_SUFFIX, "ensemble": MODEL + ENSEMBLE_SUFFIX}
    for name in names:
        if name == "gateway":
            ways[name] = await stack.enter_async_context(_gateway(url, repository))
            continue
        client = TranslationClient(url, models[name], repository=repository)
        await stack.enter_async_context(client)
        ways[name] = _ByEnsemble(client) if name == "ensemble" else _ByClient(client)
    return ways


@asynccontextmanager
async def _gateway(url: str, repository: Path) -> AsyncGenerator[_ByGateway, None]:
    """Start ct2-gateway, with a process for each core."""
    import aiohttp

    command = [
        *(sys.executable, "-c", _COMMAND, "--model", MODEL + TEXT_SUFFIX, "--port", "0"),
        *("--processes", str(os.cpu_count() or 1), "--retry-for", "60"),
        *("--url", url, "--model-repository", str(repository)),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220
    try:
        assert process.stdout is not None
        line = await asyncio.to_thread(process.stdout.readline)
        if not line:
            raise BenchError("ct2-gateway has not started; it has said why")
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            yield _ByGateway(session, f"{line.split()[1]}translate")
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)
