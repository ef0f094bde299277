# SPDX-License-Identifier: Apache-2.0
"""The demo model on a server of its own, and words that grow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ct2_triton.client import TranslationClient
from ct2_triton.live import SegmentUpdate
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepared_model import PreparedModel
from ct2_triton.serve import TritonServer
from server.live.caption_site import Site
from support import forked
from support.browser import chromium
from support.servers import ServerStack
from support.web_command import WebCommand

Start = Callable[..., WebCommand]


@pytest.fixture(scope="session")
def demo_model(tmp_path_factory: pytest.TempPathFactory) -> PreparedModel:
    """Computed in float32: the same answers whatever else is in the batch."""
    repository = tmp_path_factory.mktemp("demo")
    return prepare(
        PrepareOptions("demo", repository, settings={"compute_type": "float32"}, io="both")
    )


@pytest.fixture(scope="session")
def demo_server(demo_model: PreparedModel) -> Iterator[TritonServer]:
    with ServerStack() as stack:
        yield stack.start(demo_model.directory.parent)


@pytest.fixture
async def client(
    demo_server: TritonServer, demo_model: PreparedModel
) -> AsyncIterator[TranslationClient]:
    repository = demo_model.directory.parent
    async with TranslationClient(demo_server.grpc_url, "demo", repository=repository) as made:
        yield made


@pytest.fixture(params=["demo", "demo-text"], ids=["ids", "text"])
async def either_client(
    request: pytest.FixtureRequest, demo_server: TritonServer, demo_model: PreparedModel
) -> AsyncIterator[TranslationClient]:
    """Of the same model by token ids and by text."""
    repository = None if request.param == "demo-text" else demo_model.directory.parent
    async with TranslationClient(
        demo_server.grpc_url, request.param, repository=repository
    ) as made:
        yield made


@pytest.fixture
def command(demo_server: TritonServer, demo_model: PreparedModel) -> list[str]:
    place = ["--url", demo_server.grpc_url, "--model-repository", str(demo_model.directory.parent)]
    return [
        str(Path(sys.executable).with_name("ct2-live")),
        *("--model", "demo", "--from", "en", "--to", "de,fr", *place),
    ]


@pytest.fixture
def start(command: list[str]) -> Iterator[Start]:
    """A function that starts ct2-live on a free port."""
    with ExitStack() as stack:

        def make(*arguments: str, stderr: int | None = None) -> WebCommand:
            # A busy server may take longer than the second that is the default.
            whole = [*command, "--port", "0", "--retry-for", "300", *arguments]
            process = forked.Popen(whole, stdout=subprocess.PIPE, stderr=stderr, text=True)
            stack.enter_context(process)
            stack.callback(process.kill)
            return WebCommand(process)

        yield make


@pytest.fixture
async def web() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()
    await made.start()
    yield made
    await made.stop()


async def finals(
    socket: aiohttp.ClientWebSocketResponse, languages: set[str]
) -> dict[str, dict[str, Any]]:
    """Reads captions until the final of each language is there."""
    found: dict[str, dict[str, Any]] = {}
    while set(found) != languages:
        message = await socket.receive_json()
        if message["final"]:
            assert message["target"] not in found
            found[message["target"]] = message
    return found


def growing(segment: str, sentence: str) -> list[SegmentUpdate]:
    """A sentence word by word, as a recognizer without errors gives it."""
    words = sentence.split()
    ends = range(1, len(words) + 1)
    return [
        SegmentUpdate(segment, " ".join(words[:end]), final=end == len(words), time=end / 2.5)
        for end in ends
    ]


def in_turn(*segments: Sequence[SegmentUpdate]) -> list[SegmentUpdate]:
    """Updates of several segments, one of each at a time."""
    longest = max(map(len, segments))
    return [segment[i] for i in range(longest) for segment in segments if i < len(segment)]
