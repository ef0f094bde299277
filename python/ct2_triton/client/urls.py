# SPDX-License-Identifier: Apache-2.0
"""URLs of servers: `grpc://host:port` in the clear, `grpcs://host:port` with TLS."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ct2_triton.errors import InvalidCallError

DEFAULT_PORT = 8001
DEFAULT_URL = f"localhost:{DEFAULT_PORT}"
_SECURITY = {"": None, "grpc": False, "grpcs": True}
_URL = re.compile(r"(?:(\w+)://)?(\[[0-9A-Fa-f:.%\w]+\]|[^\s\[\]:/?#@]+)(?::(\d{1,5}))?/?")
# Names that gRPC itself resolves; they stay as they are.
_OWN_OF_GRPC = ("unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:", "xds:", "vsock:")


@dataclass(frozen=True)
class ServerUrl:
    """Where a server listens.

    Attributes:
        target: `host:port`, or a name that gRPC resolves.
        has_tls: Whether the URL asks for TLS; None where it says nothing.
    """

    target: str
    has_tls: bool | None


def parse_url(url: str) -> ServerUrl:
    """Read a URL.

    Args:
        url: `grpc://host:port`, `grpcs://host:port`, `host:port`, or each without a port; or a
            name such as `unix:path`, which gRPC resolves.

    Returns:
        The server's address, with the default port where none is named.

    Raises:
        InvalidCallError: It is something else.
    """
    if url.startswith(_OWN_OF_GRPC):
        return ServerUrl(url, None)
    match = _URL.fullmatch(url)
    scheme, host, port = match.groups() if match else (None, "", None)
    if not match or (scheme or "") not in _SECURITY or not 0 < int(port or DEFAULT_PORT) < 65536:
        hint = "; the client speaks gRPC, not HTTP" if url.startswith("http") else ""
        raise InvalidCallError(
            f"url is {url!r}; it must be grpc://host:port, grpcs://host:port (TLS) or host:port"
            f"{hint}; without a port it is {DEFAULT_PORT}"
        )
    return ServerUrl(f"{host}:{port or DEFAULT_PORT}", _SECURITY[scheme or ""])
