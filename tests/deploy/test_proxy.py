# SPDX-License-Identifier: Apache-2.0
"""deploy/haproxy/haproxy.cfg in a real HAProxy before a real server: who and what is kept out."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from tritonclient.utils import InferenceServerException

from ct2_triton.serve import TritonServer
from support import forked
from support.haproxy import (
    CONFIG,
    KEY,
    READY,
    ROOT,
    Proxy,
    addresses,
    make_folder,
    needs_haproxy,
    running_proxy,
)
from support.waiting import wait_until

MOST_BYTES = 20_000
_NUMBERS = itertools.count(1)


def _has_http2() -> bool:
    curl = shutil.which("curl")
    return curl is not None and "HTTP2" in subprocess.check_output([curl, "-V"], text=True)


pytestmark = [pytest.mark.server, needs_haproxy]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate with its key, and the list of keys."""
    return make_folder(tmp_path_factory.mktemp("proxy"))


@pytest.fixture
def proxy(server: TritonServer, folder: Path, request: pytest.FixtureRequest) -> Iterator[Proxy]:
    """One before the server of the session; a parameter says how many requests it lets through."""
    settings = {
        "CT2_PROXY_REQUESTS_IN_10S": str(getattr(request, "param", 1_000_000)),
        "CT2_PROXY_BODY_BYTES": str(MOST_BYTES),
    }
    with running_proxy(folder, [addresses(server)], settings) as running:
        yield running


def test_without_a_key_that_is_known_nobody_is_let_in(proxy: Proxy) -> None:
    for headers in ({}, {"x-api-key": "guessed"}, {"x-api-key": ""}):
        assert proxy.http(*READY, headers)[0] == 401
    with proxy.grpc() as client, pytest.raises(InferenceServerException, match="401"):
        client.is_server_ready()
    with proxy.grpc() as client:
        assert client.is_server_ready(headers=KEY)
    assert proxy.http(*READY, KEY)[0] == 200


def test_calls_that_translating_does_not_need_are_closed(proxy: Proxy) -> None:
    for method, path in (
        ("POST", "/v2/repository/index"),
        ("POST", "/v2/repository/models/nllb/unload"),
        ("GET", "/v2/systemsharedmemory/status"),
        ("GET", "/v2/logging"),
        ("GET", "/v2/models/nllb/trace/setting"),
        ("GET", "/v2/models/../logging"),
        ("GET", "/metrics"),
    ):
        assert proxy.http(method, path, KEY)[0] == 403, path
    with proxy.grpc() as client:
        for call in (
            client.get_model_repository_index,
            client.get_system_shared_memory_status,
            client.get_log_settings,
        ):
            with pytest.raises(InferenceServerException, match="403"):
                call(headers=KEY)
        assert client.is_model_ready("nllb", headers=KEY)
    assert proxy.http("GET", "/v2/models/nllb/ready", KEY)[0] == 200


def test_a_row_is_translated_through_it(proxy: Proxy) -> None:
    tensor = grpc_client.InferInput("INPUT_IDS", [1, 3], "INT32")
    tensor.set_data_from_numpy(np.array([[5, 6, 2]], dtype=np.int32))
    with proxy.grpc() as client:
        answer = client.infer("nllb", [tensor], headers=KEY)
    assert answer.as_numpy("OUTPUT_IDS").size


def test_bodies_over_http_are_bounded(proxy: Proxy) -> None:
    path = "/v2/models/nllb/infer"
    tensor = '{"name": "INPUT_IDS", "shape": [1, 3], "datatype": "INT32", "data": [5, 6, 2]}'
    good = f'{{"inputs": [{tensor}]}}'.encode()
    # Heads alone: the answer does not wait for the body.
    for head, status in (
        ({"content-length": str(MOST_BYTES + 1)}, 413),
        ({"content-length": "2", "content-encoding": "gzip"}, 415),
        ({"transfer-encoding": "chunked"}, 411),
    ):
        assert proxy.http("POST", path, {**KEY, **head})[0] == status
    status, text = proxy.http("POST", path, KEY, good)
    assert (status, "OUTPUT_IDS" in text) == (200, True), text


def _over_http2(
    proxy: Proxy, folder: Path, method: str, size: int = 0, head: str = "", late: bool = False
) -> int:
    """Send a request over HTTP/2, its body without content-length; give the status in the log.

    Where a body is refused before it is sent, curl may not show the answer. A late body is sent
    once the proxy has answered.
    """
    number = next(_NUMBERS)
    line = re.compile(rf" (\d+) \d+ - - .*{method} \S*\?number={number} HTTP/2")

    def is_answered() -> bool:
        return line.search((folder / "log").read_text()) is not None

    command = [
        "curl", "-sS", "--http2", "--max-time", "20", "--cacert", proxy.certificate,
        "-X", method, "-H", f"x-api-key: {KEY['x-api-key']}", "-H", head or "accept: */*",
        *(["-T", "-"] if size else []),
        f"https://localhost:{proxy.port}/v2/health/ready?number={number}",
    ]  # fmt: skip
    with forked.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        if late:
            wait_until(is_answered)
        with suppress(BrokenPipeError):
            process.communicate(bytes(size))
    wait_until(is_answered)
    found = line.search((folder / "log").read_text())
    assert found is not None
    return int(found[1])


@pytest.mark.skipif(not _has_http2(), reason="no curl that speaks HTTP/2")
def test_over_http2_no_method_takes_a_body_past_the_limit(proxy: Proxy, folder: Path) -> None:
    assert _over_http2(proxy, folder, "GET") == 200
    for size in (1, MOST_BYTES + 1):
        assert _over_http2(proxy, folder, "GET", size) == 400
        assert _over_http2(proxy, folder, "POST", size) == 411
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FETCH"):
        assert _over_http2(proxy, folder, method) == 405
        assert _over_http2(proxy, folder, method, MOST_BYTES + 1) == 405
    for method in ("GET", "POST"):
        head = f"content-length: {MOST_BYTES + 1}"
        assert _over_http2(proxy, folder, method, MOST_BYTES + 1, head) in (400, 413)
    # A body that comes later than the proxy waits for it.
    assert _over_http2(proxy, folder, "GET", 1, late=True) == 408


@pytest.mark.parametrize("proxy", [3], indirect=True)
def test_a_client_that_asks_too_often_is_told_to_wait(proxy: Proxy) -> None:
    statuses = [proxy.http(*READY, KEY)[0] for _ in range(40)]
    assert set(statuses) <= {200, 429}
    assert 429 in statuses
    assert proxy.http(*READY, {})[0] == 401


def test_the_page_sets_every_variable_of_the_configuration() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    used = set(re.findall(r"\$\{(CT2_PROXY_\w+)\}", CONFIG.read_text(encoding="utf-8")))
    assert used == set(re.findall(r"\b(CT2_PROXY_\w+)=", page))
    assert len(used) == 12
