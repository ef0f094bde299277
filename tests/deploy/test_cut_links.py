# SPDX-License-Identifier: Apache-2.0
"""Two servers, HAProxy and a client, each in a network namespace of its own, and a link is cut.

A cut link ends no connection: nobody is told, as when a machine loses its power.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ct2_triton.serve import TritonServer
from support.haproxy import KEY, Proxy, addresses, make_folder, needs_haproxy, running_proxy
from support.namespaces import Network
from support.prepared import prepare_tiny
from support.servers import ServerStack, suspended
from support.waiting import wait_until
from tiny_corpus import sentences

pytestmark = [pytest.mark.server, needs_haproxy]
SETTINGS = {"CT2_PROXY_REQUESTS_IN_10S": "1000000", "CT2_PROXY_BODY_BYTES": "65536"}
SERVERS = ("first", "second")
TEXTS = sentences(60, seed=29)


class Site:
    """Servers on two machines, the proxy on the hub, the client on a fourth machine."""

    def __init__(self, network: Network, stack: ServerStack, folder: Path) -> None:
        self.network = network
        self._repository = folder / "repository"
        prepare_tiny("nllb", self._repository, "nllb")
        self.servers = [self._start(name, stack) for name in SERVERS]
        names = f"DNS:localhost,IP:{network.links['client'].near}"
        self._folder = make_folder(folder, names)

    def _start(self, name: str, stack: ServerStack) -> TritonServer:
        with self.network.machines[name].entered():
            return stack.start(self._repository, host=self.network.links[name].far)

    @contextlib.contextmanager
    def proxy(self) -> Iterator[Proxy]:
        """Both servers are up and have no call yet."""
        servers = [addresses(server) for server in self.servers]
        with self.network.hub.entered():
            running = running_proxy(self._folder, servers, SETTINGS, host="0.0.0.0")
            with running as proxy:
                for name in SERVERS:
                    wait_until(lambda name=name: proxy.state(name)["status"] == "UP", name)
                yield proxy

    @contextlib.contextmanager
    def client(self, url: str) -> Iterator[subprocess.Popen[str]]:
        """ct2-translate, which has all texts."""
        command = [
            str(Path(sys.executable).with_name("ct2-translate")), "--url", url,
            "--model", "nllb", "--model-repository", str(self._repository), "--from", "eng_Latn",
            "--to", "deu_Latn", "--option", "max_decoding_length=8", "--max-in-flight", "16",
            "--timeout", "200", *(["--header", "x-api-key: " + KEY["x-api-key"],
            "--tls-ca", str(self._folder / "certificate.pem")] if url.startswith("grpcs") else []),
        ]  # fmt: skip
        with self.network.machines["client"].entered():
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, env={**os.environ, "CT2_MODEL_REPOSITORY": str(self._repository)},
            )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def through(self, proxy: Proxy) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
        """The client of the proxy."""
        return self.client(f"grpcs://{self.network.links['client'].near}:{proxy.port}")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Network(*SERVERS, "client") as network, ServerStack() as stack:
        yield Site(network, stack, tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def expected(site: Site) -> list[str]:
    """What the translations are where no link is cut."""
    with site.proxy() as proxy, site.through(proxy) as client:
        send(client, TEXTS)
        return lines_of(client)


def lines_of(client: subprocess.Popen[str], before: Sequence[str] = ()) -> list[str]:
    """Those that were printed before, and the rest."""
    output, log = client.communicate()
    assert client.returncode == 0, log
    lines = [*before, *output.splitlines()]
    assert len(lines) == len(TEXTS), log
    return lines


def send(client: subprocess.Popen[str], texts: Sequence[str]) -> None:
    assert client.stdin is not None
    client.stdin.write("".join(f"{text}\n" for text in texts))
    client.stdin.flush()


def line_of(client: subprocess.Popen[str]) -> str:
    """The next one that it prints."""
    assert client.stdout is not None
    return client.stdout.readline().rstrip("\n")


@contextlib.contextmanager
def holding(site: Site, proxy: Proxy, client: subprocess.Popen[str]) -> Iterator[list[str]]:
    """Both servers have calls of this client and answer none; at the end they go on.

    Gives what was answered before. Health checks are off until then: stopped servers fail them.
    """
    send(client, TEXTS[:1])
    first = line_of(client)
    for name in SERVERS:
        assert proxy.say(f"disable health grpc/{name}") == ""
    try:
        with suspended(*site.servers):
            send(client, TEXTS[1:])
            for name in SERVERS:
                wait_until(lambda name=name: int(proxy.state(name)["scur"]) == 8, name, 120.0)
            yield [first]
    finally:
        for name in SERVERS:
            proxy.say(f"enable health grpc/{name}")


def test_what_a_server_had_when_its_link_was_cut_is_answered_by_the_other(
    site: Site, expected: list[str]
) -> None:
    link = site.network.links["first"]
    with site.proxy() as proxy:
        with site.through(proxy) as client:
            with holding(site, proxy, client) as answered:
                link.cut()
            try:
                assert lines_of(client, answered) == expected
                assert proxy.state("first")["status"] == "DOWN"
            finally:
                link.join()
        wait_until(lambda: proxy.state("first")["status"] == "UP", "the link is there again")
        before = int(proxy.state("first")["stot"])
        with site.through(proxy) as client:
            send(client, TEXTS)
            assert lines_of(client) == expected
        assert int(proxy.state("first")["stot"]) > before


def test_what_is_sent_into_a_cut_link_is_answered_by_the_other(
    site: Site, expected: list[str]
) -> None:
    """Over a connection that stands: its bytes are repeated and never acknowledged."""
    link = site.network.links["first"]
    with site.proxy() as proxy, site.through(proxy) as client:
        send(client, TEXTS[:8])
        answered = [line_of(client) for _ in range(8)]
        assert all(int(proxy.state(name)["stot"]) > 0 for name in SERVERS)
        link.cut()
        try:
            send(client, TEXTS[8:])
            assert lines_of(client, answered) == expected
        finally:
            link.join()


def test_a_client_whose_link_was_cut_gets_the_answers_of_that_time(
    site: Site, expected: list[str]
) -> None:
    link = site.network.links["client"]
    with site.proxy() as proxy, site.through(proxy) as client:
        with holding(site, proxy, client) as answered:
            link.cut()
        try:
            for name in SERVERS:
                wait_until(lambda name=name: proxy.state(name)["scur"] == "0", name)
        finally:
            link.join()
        assert lines_of(client, answered) == expected
