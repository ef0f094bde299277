# SPDX-License-Identifier: Apache-2.0
"""ct2-gateway --metrics-port: requests, times and connections, of one process and of several."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import aiohttp
import pytest

from server.gateway.conftest import GOOD, Site, StartGateway
from support.ports import free_port
from support.waiting import wait_until
from support.web_metrics import web_metrics

pytestmark = pytest.mark.server


@pytest.mark.parametrize("processes", [1, 2])
async def test_requests_are_counted_by_route_and_status(
    start_gateway: StartGateway, processes: int
) -> None:
    port = free_port()
    gateway = start_gateway("--processes", str(processes), "--metrics-port", str(port))
    for _ in range(4):  # each on a connection of its own: any of the processes may get it
        async with aiohttp.ClientSession() as session:
            site = Site(gateway.url, session)
            await site.good()
            assert (await site.post("/translate", GOOD | {"target": "xx"}))[0] == 400
            assert (await site.get("/nothing"))[0] == 404
            await site.good()
    found = web_metrics(port)
    requests = {name: n for name, n in found.items() if name.startswith("ct2_gateway_requests_t")}
    assert requests == {
        "ct2_gateway_requests_total /translate 200": 8,
        "ct2_gateway_requests_total /translate 400": 4,
        "ct2_gateway_requests_total other 404": 4,
    }
    assert found["ct2_gateway_request_seconds_count /translate"] == 12
    assert sum(n for name, n in found.items() if "in_progress" in name) == 0


async def test_connections_are_counted_and_those_that_are_refused(
    start_gateway: StartGateway,
) -> None:
    port = free_port()
    gateway = start_gateway("--max-connections", "1", "--metrics-port", str(port))
    async with aiohttp.ClientSession() as session, aiohttp.ClientSession() as other:
        await Site(gateway.url, session).good()
        wait_until(lambda: web_metrics(port)["ct2_gateway_connections"] == 1)
        assert (await Site(gateway.url, other).get("/languages"))[0] == 503
        assert web_metrics(port)["ct2_gateway_connections_refused_total"] == 1
        await Site(gateway.url, session).good()
    wait_until(lambda: web_metrics(port)["ct2_gateway_connections"] == 0)


async def test_a_process_that_died_has_no_connections(start_gateway: StartGateway) -> None:
    port = free_port()
    options = ("--processes", "2", "--metrics-port", str(port))
    gateway = start_gateway(*options, stderr=subprocess.PIPE)
    async with aiohttp.ClientSession() as session:
        await Site(gateway.url, session).good()
        wait_until(lambda: web_metrics(port)["ct2_gateway_connections"] == 1)
        for child in _children(gateway.process.pid):
            os.kill(child, signal.SIGKILL)
            assert gateway.process.stderr is not None
            assert "it is replaced" in gateway.process.stderr.readline()
        wait_until(lambda: _connections(port) == 0)
    async with aiohttp.ClientSession() as session:
        await Site(gateway.url, session).good()
    assert web_metrics(port)["ct2_gateway_requests_total /translate 200"] == 2


async def test_who_has_the_main_port_has_no_metrics(start_gateway: StartGateway) -> None:
    port = free_port()
    gateway = start_gateway("--metrics-port", str(port))
    async with aiohttp.ClientSession() as session:
        assert (await Site(gateway.url, session).get("/metrics"))[0] == 404
        await Site(gateway.url, session).good()
    done = start_gateway("--metrics-port", str(port), stderr=subprocess.PIPE).process
    assert done.stderr is not None
    said = f"cannot listen at 127.0.0.1, port {port}: .*; choose others with --metrics-host"
    assert re.search(said, done.stderr.read())
    assert done.wait() == 1


def _children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(child) for child in listed.split()]


def _connections(port: int) -> float | None:
    try:
        return web_metrics(port)["ct2_gateway_connections"]
    except (OSError, urllib.error.URLError, KeyError):  # its process has died just now
        return None
