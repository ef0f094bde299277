# SPDX-License-Identifier: Apache-2.0
"""Real servers behind a real HAProxy: one is killed, one drained, one added, and nothing is lost.

Suspended servers (SIGSTOP) keep what they were sent, so that the moment is made, not met: while
none answers, each has the same share. Health checks are off meanwhile, so that a busy machine does
not change it. One answer that came nevertheless would keep its place in the stream's
`max_in_flight` while a text before it is open, and the calls under way would stay one short.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.client import RetryPolicy, TranslationClient
from ct2_triton.client import connection as keepalive
from ct2_triton.errors import ConnectionLostError
from ct2_triton.serve import TritonServer
from support.fault_server import FaultServer, Wire, echo, serving
from support.haproxy import KEY, ROOT, Proxy, addresses, make_folder, needs_haproxy, running_proxy
from support.prepared import prepare_tiny
from support.servers import MakeServer, ServerStack, suspended
from support.waiting import wait_until
from tiny_corpus import sentences

# A test takes about ten seconds. Its time limit does not end waits in threads; LIMIT_S is theirs.
pytestmark = [pytest.mark.server, pytest.mark.timeout(240), needs_haproxy]
LIMIT_S = 120.0
CALL: dict[str, Any] = {"source": "eng_Latn", "targets": "deu_Latn", "max_decoding_length": 8}
SETTINGS = {"CT2_PROXY_REQUESTS_IN_10S": "1000000", "CT2_PROXY_BODY_BYTES": "65536"}
ONCE = RetryPolicy()
AGAIN = RetryPolicy(outage_s=LIMIT_S, max_backoff_s=0.2)
TEXTS = sentences(60, seed=23)
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def no_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client asks silent servers whether they live: on a busy machine one more call to share."""
    monkeypatch.setattr(keepalive, "QUESTION_AFTER_S", 600.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("proxy"))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("repository")
    prepare_tiny("nllb", made, "nllb")
    return made


@pytest.fixture(scope="module")
def second(repository: Path) -> Iterator[TritonServer]:
    """A server that outlives the tests of this file."""
    with ServerStack() as stack:
        yield stack.start(repository)


@pytest.fixture(scope="module")
def expected(repository: Path, second: TritonServer) -> list[str]:
    """What one server gives, without a proxy."""

    async def ask() -> list[str]:
        async with TranslationClient(second.grpc_url, "nllb", repository=repository) as client:
            return [one.text for one in await client.translate(TEXTS, **CALL)]

    return asyncio.run(ask())


@pytest.fixture
def first(repository: Path, make_server: MakeServer) -> TritonServer:
    return make_server(repository)


@pytest.fixture
def proxy(first: TritonServer, second: TritonServer, folder: Path) -> Iterator[Proxy]:
    """Before both servers, which are up; their health is as it is said to be."""
    with running_proxy(folder, [addresses(first), addresses(second)], SETTINGS) as running:
        for name in ("first", "second"):
            wait_until(lambda name=name: running.state(name)["check_status"] == "L7OK", name)
            assert running.say(f"disable health grpc/{name}") == ""
        yield running


def client_of(proxy: Proxy, repository: Path, retry: RetryPolicy) -> TranslationClient:
    return TranslationClient(
        f"localhost:{proxy.port}",
        "nllb",
        repository=repository,
        credentials=proxy.credentials(),
        metadata=KEY,
        retry=retry,
    )


async def _texts(items: AsyncIterator[Any], count: int = -1) -> list[str]:
    """The next translations of a stream, whose positions are those of the input."""
    found: list[str] = []
    async for item in items:
        assert TEXTS[item.position] == item.sentence.text
        found.append(item.translation.text)
        if len(found) == count:
            break
    return found


async def _calls(proxy: Proxy, server: str, count: int, *others: str) -> None:
    """Waits until so many calls are under way at a server, those of others counted, too."""

    def are_there() -> bool:
        return sum(int(proxy.state(one)["scur"]) for one in (server, *others)) >= count

    what = f"{count} calls at {' and '.join((server, *others))}"
    await asyncio.to_thread(wait_until, are_there, what, LIMIT_S)


async def _connect(client: TranslationClient, proxy: Proxy) -> None:
    """Lets the proxy have a connection to each server: after 5 s it takes the call that waits for
    one to another server.
    """
    await asyncio.gather(*(client.translate(text, **CALL) for text in TEXTS[:8]))
    for name in ("first", "second"):
        assert int(proxy.state(name)["stot"]) > 0
        await asyncio.to_thread(wait_until, lambda name=name: proxy.state(name)["scur"] == "0")


def _stream(client: TranslationClient, in_flight: int) -> Any:
    async def source() -> AsyncIterator[str]:
        for text in TEXTS:
            yield text

    return client.stream(source(), max_in_flight=in_flight, **CALL)


def _command(start: str) -> str:
    """What the page sends to the proxy's socket."""
    found = re.findall(r"^echo '(.*)' \| socat stdio proxy\.sock$", PAGE, re.MULTILINE)
    (line,) = [one for one in found if one.startswith(start)]
    return str(line)


async def test_the_calls_of_one_connection_are_shared(
    proxy: Proxy, first: TritonServer, second: TritonServer, repository: Path, expected: list[str]
) -> None:
    async with client_of(proxy, repository, ONCE) as client:
        await _connect(client, proxy)
        with suspended(first, second):
            answers = asyncio.create_task(_texts(_stream(client, 20)))
            await _calls(proxy, "first", 10)
            await _calls(proxy, "second", 10)
            assert [proxy.state(name)["scur"] for name in ("first", "second")] == ["10", "10"]
        assert await answers == expected


async def test_what_a_killed_server_had_is_answered_by_the_other(
    proxy: Proxy, first: TritonServer, second: TritonServer, repository: Path, expected: list[str]
) -> None:
    async with client_of(proxy, repository, AGAIN) as client:
        await _connect(client, proxy)
        with suspended(first, second):
            answers = asyncio.create_task(_texts(_stream(client, 8)))
            # Not 4 each: the proxy gives a call that waits for a connection to another server.
            await _calls(proxy, "first", 1)
            await _calls(proxy, "first", 8, "second")
            first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        assert await answers == expected


async def test_a_dead_server_gets_no_more_calls(
    proxy: Proxy, first: TritonServer, repository: Path, expected: list[str]
) -> None:
    proxy.say("enable health grpc/first")
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    wait_until(lambda: proxy.state("first")["status"] == "DOWN")
    before = proxy.state("first")["stot"]
    async with client_of(proxy, repository, ONCE) as client:
        assert await _texts(_stream(client, 8)) == expected
    assert proxy.state("first")["stot"] == before


async def test_a_server_is_drained_under_load_and_nothing_has_to_be_sent_again(
    proxy: Proxy, first: TritonServer, second: TritonServer, repository: Path, expected: list[str]
) -> None:
    async with client_of(proxy, repository, ONCE) as client:
        await _connect(client, proxy)
        with suspended(first, second):
            answers = asyncio.create_task(_texts(_stream(client, 8)))
            await _calls(proxy, "first", 4)
            await _calls(proxy, "second", 4)
            assert proxy.say(_command("set server grpc/first state drain")) == ""
            had = proxy.state("first")["stot"]
        assert await answers == expected
    wait_until(lambda: proxy.state("first")["scur"] == "0")
    assert proxy.state("first")["stot"] == had


async def test_a_server_is_added_under_load(
    proxy: Proxy,
    first: TritonServer,
    second: TritonServer,
    repository: Path,
    expected: list[str],
    make_server: MakeServer,
) -> None:
    third, third_http = addresses(make_server(repository))
    add = _command("add server grpc/third").replace("192.0.2.3:8001", third)
    add = add.replace("port 8000", f"port {third_http.rpartition(':')[2]}")
    async with client_of(proxy, repository, ONCE) as client:
        await _connect(client, proxy)
        with suspended(first, second):
            answers = asyncio.create_task(_texts(_stream(client, 16)))
            await _calls(proxy, "first", 8)
            await _calls(proxy, "second", 8)
            for command in add.split("; "):
                assert proxy.say(command) in ("", "New server registered."), command
            wait_until(lambda: proxy.state("third")["status"] == "UP")
            # The others answer nothing yet.
            assert (await client.translate(TEXTS[0], **CALL)).text == expected[0]
        assert await answers == expected
    assert int(proxy.state("third")["hrsp_2xx"]) >= 1


@pytest.mark.parametrize("begun", [False, True])
async def test_a_sentence_under_which_connections_break_is_given_up(
    begun: bool, second: TritonServer, repository: Path, folder: Path
) -> None:
    """It may be what ends the servers. The connection to the proxy itself stands all the time."""
    wire = Wire("")

    async def die(server: FaultServer, request: Any, context: Any) -> Any:
        if server.calls <= 3:
            if begun:
                await context.send_initial_metadata(())
                await asyncio.sleep(0.1)
            wire.cut()
        return await echo(server, request, context)

    guilty = FaultServer(die)
    async with serving(guilty) as url:
        wire._target = url
        async with wire.open() as through:
            servers = [(through, addresses(second)[1])]
            with running_proxy(folder, servers, SETTINGS) as proxy:
                async with client_of(proxy, repository, AGAIN) as client:
                    with pytest.raises(ConnectionLostError, match="^3 connections broke"):
                        await client.translate("One.", **CALL)
                    assert guilty.calls == 3
                    assert await client.translate("Two.", **CALL)


def test_the_page_shows_the_state_of_the_servers(proxy: Proxy) -> None:
    assert "grpc,second," in proxy.say(_command("show stat"))
