# SPDX-License-Identifier: Apache-2.0
"""A server whose `--exit-timeout-secs` is over while a model works exits with Triton's status.

Triton then calls exit(): static objects of all libraries are destroyed while threads run.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import TritonServer
from server import configs
from server.helpers import Connection, Reference, sentences
from server.text_client import send_text
from support.endless import ALLOWS_ENDLESS, ENDLESS, endless_model
from support.metrics import scrape
from support.repository import write_model
from support.servers import MakeServer, running
from support.waiting import wait_until

pytestmark = pytest.mark.server

SERVERS = 2
AT_ONCE = ["--exit-timeout-secs=0"]
# What Triton exits with when requests or models are left.
LEFT = 1


def _serve_ids(make_server: MakeServer, repository: Path, **settings: Any) -> Connection:
    write_model(repository, "nllb", endless_model(), configs.plain(**ALLOWS_ENDLESS, **settings))
    return Connection(make_server(repository, server_arguments=AT_ONCE).grpc_url)


def _send_endless(connection: Connection, **options: Any) -> Connection:
    [(row, prefix)] = sentences(Reference(endless_model()), 1)
    connection.start("nllb", [row], [prefix], **{**ENDLESS, **options})
    return connection


def _loop(make_server: MakeServer, repository: Path) -> Connection:
    return _send_endless(_serve_ids(make_server, repository))


def _greedy_call(make_server: MakeServer, repository: Path) -> Connection:
    return _send_endless(_serve_ids(make_server, repository, decoding="calls"))


def _beam_call(make_server: MakeServer, repository: Path) -> Connection:
    """CTranslate2 calls nobody back during a beam search."""
    connection = _serve_ids(make_server, repository, decoding="calls")
    long = {"beam_size": 2, "min_decoding_length": 16_000, "max_decoding_length": 16_000}
    return _send_endless(connection, **long)


def _text(make_server: MakeServer, repository: Path) -> Connection:
    prepare(PrepareOptions("demo", repository, "demo", io="both"))
    connection = Connection(make_server(repository, server_arguments=AT_ONCE).grpc_url)
    slow = {"beam_size": 1, "min_decoding_length": 120, "max_decoding_length": 120}
    book = " ".join(f"Gate {i} closes in 6 minutes!" for i in range(3_000))
    send_text(connection, book, ["de", "fr", "es"], **slow)
    return connection


def _wait_until_decoding(server: TritonServer, model: str) -> None:
    wait_until(lambda: scrape(server, model)["ct2_decoding_rows"] > 0)


@pytest.mark.parametrize("send", [_loop, _greedy_call, _beam_call, _text, _serve_ids])
def test_a_server_that_exits_while_a_model_works_is_not_ended_by_a_signal(
    make_server: MakeServer, tmp_path: Path, send: Callable[[MakeServer, Path], Connection]
) -> None:
    """With no request, Triton unloads the model while the process exits."""
    connections = [send(make_server, tmp_path / f"{i}") for i in range(SERVERS)]
    for server in running[-SERVERS:]:
        if send is not _serve_ids:
            _wait_until_decoding(server, "demo-text" if send is _text else "nllb")
        server.process.send_signal(signal.SIGTERM)
    assert [server.process.wait() for server in running[-SERVERS:]] == [LEFT] * SERVERS
    for connection in connections:
        connection.close()
