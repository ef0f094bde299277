# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from ct2_triton.client.servers import Servers, ServerUrl, parse_url
from ct2_triton.errors import InvalidCallError


@pytest.mark.parametrize(
    ("url", "target", "has_tls"),
    [
        ("localhost:9000", "localhost:9000", None),
        ("localhost", "localhost:8001", None),
        ("grpc://a.example", "a.example:8001", False),
        ("grpcs://a.example:443/", "a.example:443", True),
        ("grpcs://[::1]", "[::1]:8001", True),
        ("127.0.0.1:1", "127.0.0.1:1", None),
        ("unix:socket", "unix:socket", None),
    ],
)
def test_a_url_has_a_host_a_port_and_perhaps_tls(
    url: str, target: str, has_tls: bool | None
) -> None:
    assert parse_url(url) == ServerUrl(target, has_tls)


@pytest.mark.parametrize(
    "url",
    ["http://a:8000", "a:b", "a:0", "a:65536", "grpc://", "a b", "grpc://a/path", "::1", ":1"],
)
def test_anything_else_is_named_with_what_is_allowed(url: str) -> None:
    with pytest.raises(InvalidCallError) as refused:
        parse_url(url)
    assert str(refused.value).startswith(f"url is {url!r}; it must be grpc://host:port")


def test_all_servers_have_tls_or_none() -> None:
    assert Servers.of(["grpcs://a", "grpcs://b"], None, has_credentials=True).has_tls
    with pytest.raises(InvalidCallError, match="all must be grpc://"):
        Servers.of(["grpcs://a", "b"], None, has_credentials=False)
    with pytest.raises(InvalidCallError, match="in the clear, and certificates"):
        Servers.of("grpc://a", None, has_credentials=True)
