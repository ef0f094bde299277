# SPDX-License-Identifier: Apache-2.0
"""URLs of servers, and what a client has in one event loop: the way to them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ct2_triton.client.balancing import RoundRobin, split
from ct2_triton.client.retry import Outage
from ct2_triton.client.text_stream import TextStreams
from ct2_triton.errors import InvalidCallError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping, Sequence

    import grpc

    from ct2_triton.client.balancing import Address
    from ct2_triton.client.connection import Connection
    from ct2_triton.client.retry import RetryPolicy

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
    """Read `grpc://host:port`, `grpcs://host:port`, `host:port`, or each without a port.

    A name such as `unix:path`, which gRPC resolves, stays as it is.
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


LoadBalancing = Literal["round_robin"]


@dataclass(frozen=True)
class Servers:
    """Where requests go.

    Attributes:
        urls: Each `host:port`, or a name that gRPC resolves; at least one.
        is_balanced: Whether they go in turn to all servers behind the URLs.
        has_tls: Whether the URLs ask for TLS; None where they say nothing.
    """

    urls: tuple[str, ...]
    is_balanced: bool
    has_tls: bool | None = None

    @classmethod
    def of(
        cls,
        url: str | Sequence[str],
        load_balancing: LoadBalancing | None,
        *,
        has_credentials: bool,
    ) -> Servers:
        """Read a client's arguments."""
        urls = (url,) if isinstance(url, str) else tuple(url)
        if not all(urls) or not urls:
            raise InvalidCallError(f"url is {url!r}; name at least one server, as host:port")
        if load_balancing not in (None, "round_robin"):
            raise InvalidCallError(
                f"load_balancing is {load_balancing!r}; it must be 'round_robin' or None"
            )
        servers = [parse_url(one) for one in urls]
        is_balanced = load_balancing is not None or len(urls) > 1
        if is_balanced:
            for server in servers:
                split(server.target)
        security = {server.has_tls for server in servers}
        if len(security) > 1:
            raise InvalidCallError(
                f"url is {', '.join(urls)}; all must be grpc://, or all grpcs://, or none of them"
            )
        if has_credentials and False in security:
            raise InvalidCallError(
                f"url is {', '.join(urls)}, in the clear, and certificates are given: say grpcs://"
            )
        return cls(tuple(server.target for server in servers), is_balanced, security.pop())


@dataclass(frozen=True)
class Link:
    """A way to the servers, and what is known of their outage.

    Attributes:
        loop: The event loop in which it was opened, and in which alone it works.
        connection: Sends requests.
        outage: Sends them again.
        streams: The streams of text under way.
    """

    loop: asyncio.AbstractEventLoop
    connection: Connection | RoundRobin
    outage: Outage
    streams: TextStreams

    @classmethod
    def of(
        cls, loop: asyncio.AbstractEventLoop, connection: Connection | RoundRobin, outage: Outage
    ) -> Link:
        """Make one with nothing under way."""
        return cls(loop, connection, outage, TextStreams(connection))

    async def close(self) -> None:
        """End the streams, then close the connection: other calls under way end with an error."""
        await self.streams.close()
        await self.connection.close()


def open_link(
    servers: Servers,
    retry: RetryPolicy,
    loop: asyncio.AbstractEventLoop,
    credentials: grpc.ChannelCredentials | None,
    metadata: Mapping[str, str] | None,
) -> Link:
    """Open the way to the servers; nothing is sent yet. Must be called in the loop.

    Without credentials the usual authorities are trusted where the URLs ask for TLS. The connection
    must be closed.
    """
    import grpc

    from ct2_triton.client.connection import Connection

    if credentials is None and servers.has_tls:
        credentials = grpc.ssl_channel_credentials()

    def connect(address: Address) -> Connection:
        names = [("grpc.default_authority", address.url)]
        if credentials is not None:
            names.append(("grpc.ssl_target_name_override", address.host))
        return Connection(
            address.target, retry, credentials=credentials, metadata=metadata, options=names
        )

    if servers.is_balanced:
        return Link.of(loop, RoundRobin(servers.urls, connect, retry.budget_s), Outage(retry))
    connection = Connection(servers.urls[0], retry, credentials=credentials, metadata=metadata)
    return Link.of(loop, connection, Outage(retry))
