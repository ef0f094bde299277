# SPDX-License-Identifier: Apache-2.0
"""Requests shared by several servers, which come and go."""

from __future__ import annotations

import asyncio
import subprocess
from collections import Counter
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from tritonclient.grpc import service_pb2_grpc

from ct2_triton import errors
from ct2_triton.client import RetryPolicy, Tokenizer, TranslationClient, balancing, connection
from ct2_triton.client.balancing import Address, RoundRobin, look_up
from ct2_triton.client.connection import Connection
from ct2_triton.client.retry import Deadline
from support.fault_server import FaultServer, Wire, abort, alive, hang, request, serving
from support.ports import free_port
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


POLICY = RetryPolicy(budget_s=30, initial_backoff_s=0.05, max_backoff_s=0.1)
NAME = "translate.test:8001"


def late() -> Deadline:
    return Deadline(60)


class Cluster(AsyncExitStack):
    """Servers, and a name that resolves to those that are in `addresses`."""

    def __init__(self, policy: RetryPolicy = POLICY) -> None:
        super().__init__()
        self.servers: dict[str, FaultServer] = {}
        self.addresses: list[str] = []
        self.opened: list[Connection] = []
        self._policy = policy

    async def add(self, port: int = 0, *arguments: Any) -> FaultServer:
        server = FaultServer(*arguments)
        url = await self.enter_async_context(serving(server, port))
        self.servers[url] = server
        self.addresses.append(url)
        return server

    def balanced(self) -> RoundRobin:
        async def find(url: str) -> list[Address]:
            if not self.addresses:
                raise OSError("Name or service not known")
            return [Address(one, url) for one in self.addresses]

        def connect(address: Address) -> Connection:
            self.opened.append(Connection(address.target, self._policy))
            return self.opened[-1]

        robin = RoundRobin([NAME], connect, self._policy.budget_s, find)
        self.push_async_callback(robin.close)
        return robin

    def calls(self) -> list[int]:
        return [server.calls for server in self.servers.values()]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "QUESTION_S", 30.0)
    monkeypatch.setattr(balancing, "_NEXT_LOOKUP_S", 30.0)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balancing, "LOOK_UP_EVERY_S", 0.05)


async def eventually(condition: Callable[[], bool]) -> None:
    """Waits until something holds, for half a minute at most."""
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


async def answered(robin: RoundRobin) -> None:
    """Sends requests until one is answered: its name is looked up again, and a server reached."""
    for _ in range(600):
        robin._next_lookup = 0
        with suppress(errors.ServerUnreachableError):
            await robin.infer(request(), late())
            return
        await asyncio.sleep(0.05)
    raise AssertionError("no server is reached")


async def all_ready(robin: RoundRobin, cluster: Cluster) -> None:
    """Sends requests until every server has got one."""
    for _ in range(2000):
        await robin.infer(request(), late())
        if all(cluster.calls()):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"a server gets nothing: {cluster.calls()}")


async def test_a_call_that_waits_for_a_server_ends_with_the_client() -> None:
    async with Cluster() as cluster:
        cluster.addresses.append(f"127.0.0.1:{free_port()}")
        robin = cluster.balanced()
        call = asyncio.create_task(robin.infer(request(), late()))
        await asyncio.to_thread(wait_until, lambda: len(cluster.opened) == 1)
        await robin.close()
        with pytest.raises(errors.InvalidCallError, match="closed"):
            await call
        with pytest.raises(errors.InvalidCallError, match="closed"):
            await robin.infer(request(), late())
        assert len(cluster.opened) == 1


AT_ONCE = RetryPolicy(budget_s=0)


@pytest.mark.usefixtures("patient")
async def test_a_call_that_may_not_wait_is_answered_by_a_server_that_is_there() -> None:
    async with Cluster(AT_ONCE) as cluster:
        await cluster.add()
        await cluster.balanced().infer(request(), late())
        assert cluster.calls() == [1]


@pytest.mark.usefixtures("patient")
async def test_a_first_look_that_lasts_ends_with_the_client() -> None:
    looks = asyncio.Event()

    async def find(_url: str) -> list[Address]:
        looks.set()
        await asyncio.Event().wait()
        return []

    robin = RoundRobin([NAME], lambda address: Connection(address.target, AT_ONCE), 0, find)
    call = asyncio.create_task(robin.infer(request(), late()))
    await asyncio.wait_for(looks.wait(), 600)
    await robin.close()
    with pytest.raises(errors.InvalidCallError, match="closed"):
        await call


@pytest.mark.usefixtures("patient")
async def test_a_question_whether_a_server_lives_ends_with_the_client() -> None:
    async with Cluster(AT_ONCE) as cluster:
        server = await cluster.add()
        server.life = hang
        robin = cluster.balanced()
        call = asyncio.create_task(robin.infer(request(), late()))
        await asyncio.wait_for(server.started.wait(), 600)
        await robin.close()
        with pytest.raises(errors.InvalidCallError, match="closed"):
            await call


@pytest.mark.usefixtures("patient")
async def test_a_server_that_leaves_its_name_is_not_closed_under_a_question() -> None:
    may_answer = asyncio.Event()

    async def alive_later(server: FaultServer, wanted: Any, context: Any) -> Any:
        server.started.set()
        await may_answer.wait()
        return await alive(server, wanted, context)

    async with Cluster(AT_ONCE) as cluster:
        old = await cluster.add()
        old.life = alive_later
        robin = cluster.balanced()
        call = asyncio.create_task(robin.infer(request(), late()))
        await asyncio.wait_for(old.started.wait(), 600)
        await cluster.add()
        cluster.addresses.pop(0)
        robin._next_lookup = 0
        await robin._start_lookup()
        assert len(robin._retired) == 1
        may_answer.set()
        await call
        assert cluster.calls() == [1, 0]


async def test_each_server_gets_the_same_share() -> None:
    async with Cluster() as cluster:
        for _ in range(3):
            await cluster.add()
        robin = cluster.balanced()
        await all_ready(robin, cluster)
        before = cluster.calls()
        await asyncio.gather(*(robin.infer(request(), late()) for _ in range(30)))
        assert [now - then for now, then in zip(cluster.calls(), before, strict=True)] == [10] * 3


async def test_a_server_that_is_gone_is_passed_over_and_comes_back() -> None:
    port = free_port()
    async with Cluster() as cluster:
        await cluster.add()
        robin = cluster.balanced()
        cluster.addresses.append(f"127.0.0.1:{port}")
        for _ in range(20):
            await robin.infer(request(), late())
        assert cluster.calls() == [20]
        await cluster.add(port)
        await all_ready(robin, cluster)


@pytest.mark.usefixtures("quick")
async def test_a_name_is_followed_to_new_servers_and_away_from_old_ones() -> None:
    async with Cluster() as cluster:
        first = await cluster.add()
        robin = cluster.balanced()
        await all_ready(robin, cluster)
        await cluster.add()
        await all_ready(robin, cluster)
        cluster.addresses.pop(0)
        for _ in range(2000):  # a request looks the name up, now and then
            await robin.infer(request(), late())
            if len(robin._ring) == 1 and not robin._retired:
                break
            await asyncio.sleep(0.01)
        calls = first.calls
        for _ in range(10):
            await robin.infer(request(), late())
        assert first.calls == calls
        assert len(robin._ring) == 1
        assert robin._retired == []
        cluster.addresses.clear()  # a name that fails keeps its servers
        await asyncio.sleep(0.1)
        for _ in range(10):
            await robin.infer(request(), late())


@pytest.mark.usefixtures("quick")
async def test_calls_of_a_server_that_left_the_name_are_answered() -> None:
    held = asyncio.Event()

    async def behave(server: FaultServer, wanted: Any, context: Any) -> Any:
        server.started.set()
        await held.wait()
        return await FaultServer().behaviour(server, wanted, context)

    async with Cluster() as cluster:
        slow = await cluster.add(0, behave)
        robin = cluster.balanced()
        call = asyncio.create_task(robin.infer(request(), late()))
        await asyncio.wait_for(slow.started.wait(), 600)
        await cluster.add()
        cluster.addresses.pop(0)
        for _ in range(20):
            await asyncio.sleep(0.02)
            robin._start_lookup()
        assert len(robin._retired) == 1
        held.set()
        await call


async def test_a_broken_connection_fails_only_its_own_calls_and_is_no_busy_server() -> None:
    async with Cluster() as cluster:
        await cluster.add(0, hang)
        wire = Wire(cluster.addresses[0])
        cluster.addresses[0] = await cluster.enter_async_context(wire.open())
        await cluster.add()
        robin = cluster.balanced()
        robin._start_lookup()
        await eventually(lambda: len(cluster.opened) == 2)
        await eventually(lambda: all(one.is_ready() for one in cluster.opened))
        tasks = [asyncio.create_task(robin.infer(request(), late())) for _ in range(40)]
        await eventually(lambda: sum(t.done() for t in tasks) + cluster.calls()[0] == len(tasks))
        assert cluster.calls() == [20, 20]
        wire.cut()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    lost = [type(one) for one in results if isinstance(one, Exception)]
    assert Counter(lost) == {errors.ConnectionLostError: cluster.calls()[0]}


async def test_requests_with_one_key_go_to_one_server() -> None:
    async with Cluster() as cluster:
        for _ in range(3):
            await cluster.add()
        robin = cluster.balanced()
        await all_ready(robin, cluster)
        used = set()
        for number in range(20):
            before = cluster.calls()
            for _ in range(5):
                message = request()
                message.parameters["supersede_key"].string_param = f"speaker-{number}"
                await robin.infer(message, late())
            shares = [now - then for now, then in zip(cluster.calls(), before, strict=True)]
            assert sorted(shares) == [0, 0, 5]
            used.add(shares.index(5))
    assert len(used) > 1


async def test_a_refusal_is_told_as_it_is() -> None:
    async with Cluster() as cluster:
        for _ in range(2):
            await cluster.add(0, abort(grpc.StatusCode.UNAVAILABLE, "Exceeds maximum queue size"))
        robin = cluster.balanced()
        for _ in range(4):
            with pytest.raises(errors.ServerBusyError):
                await robin.infer(request(), late())


@pytest.mark.parametrize("addresses", [[], ["127.0.0.1:1", "127.0.0.1:2"]])
async def test_no_server_at_all_is_said_with_the_reason(addresses: list[str]) -> None:
    async with Cluster(RetryPolicy(budget_s=0.3, initial_backoff_s=0.05)) as cluster:
        cluster.addresses = addresses
        robin = cluster.balanced()
        reason = "refused" if addresses else "not known"
        with pytest.raises(errors.ServerUnreachableError, match=rf"{NAME}.*{reason}"):
            await robin.infer(request(), late())
        cluster.addresses.clear()
        await cluster.add()
        await answered(robin)


async def test_calls_that_wait_for_an_address_leave_the_event_loop_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counted: what the event loop is asked to run while ten calls wait for an address."""
    async with Cluster(RetryPolicy(budget_s=0.4)) as cluster:
        robin = cluster.balanced()
        loop = asyncio.get_running_loop()
        plain, steps = loop.call_soon, Counter[str]()

        def call_soon(*arguments: Any, **context: Any) -> Any:
            steps["asked"] += 1
            return plain(*arguments, **context)

        monkeypatch.setattr(loop, "call_soon", call_soon)
        calls = [asyncio.create_task(robin.infer(request(), late())) for _ in range(10)]
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(one) for one in ended} == {errors.ServerUnreachableError}
        assert steps["asked"] < 500
        await cluster.add()
        await answered(robin)


@pytest.mark.usefixtures("patient")
async def test_a_call_that_waits_for_an_address_ends_with_the_client() -> None:
    looked = asyncio.Event()

    async def find(_url: str) -> list[Address]:
        looked.set()
        raise OSError("Name or service not known")

    robin = RoundRobin([NAME], lambda address: Connection(address.target, POLICY), 30, find)
    call = asyncio.create_task(robin.infer(request(), late()))
    await asyncio.wait_for(looked.wait(), 600)
    assert robin._lookup is not None
    await asyncio.wait({robin._lookup})
    await asyncio.sleep(0)
    await robin.close()
    with pytest.raises(errors.InvalidCallError, match="closed"):
        await asyncio.wait_for(call, 20)


async def test_a_real_name_is_looked_up() -> None:
    found = await look_up("localhost:8001")
    assert Address("127.0.0.1:8001", "localhost:8001") in found
    assert await look_up("[::1]:1") == [Address("[::1]:1", "[::1]:1")]
    with pytest.raises(OSError, match=r"."):
        await look_up("nowhere.invalid:1")


@pytest.mark.parametrize(
    ("url", "settings"),
    [
        ([], {}),
        ("", {}),
        (["a:1", "b:x"], {}),
        (["a:1", "dns:///b:1"], {}),
        ("a:0", {"load_balancing": "round_robin"}),
        ("a:1", {"load_balancing": "least"}),
    ],
)
def test_servers_that_cannot_be_are_refused_at_once(
    tokenizer: Tokenizer, url: Any, settings: Any
) -> None:
    with pytest.raises(errors.InvalidCallError, match=r"^(url|load_balancing) is"):
        TranslationClient(url, "m", tokenizer=tokenizer, **settings)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[bytes, bytes]:
    """The key and the certificate of a server that is called localhost."""
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    command += f" -addext subjectAltName=DNS:localhost -keyout {key} -out {certificate}"
    subprocess.run(command.split(" "), check=True, capture_output=True)
    return key.read_bytes(), certificate.read_bytes()


async def test_tls_is_checked_against_the_name_and_not_the_address(
    tokenizer: Tokenizer, certificate: tuple[bytes, bytes]
) -> None:
    server = grpc.aio.server()
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(FaultServer(), server)
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([certificate]))
    await server.start()
    settings: dict[str, Any] = {
        "tokenizer": tokenizer,
        "load_balancing": "round_robin",
        "credentials": grpc.ssl_channel_credentials(certificate[1]),
        "retry": RetryPolicy(budget_s=2),
    }
    async with TranslationClient(f"localhost:{port}", "m", **settings) as client:
        assert (await client.translate("One.", source="en", targets="de")).target == "deu_Latn"
    async with TranslationClient(f"127.0.0.1:{port}", "m", **settings) as client:
        with pytest.raises(errors.ServerUnreachableError):
            await client.translate("One.", source="en", targets="de")
    await server.stop(None)
