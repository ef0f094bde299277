# SPDX-License-Identifier: Apache-2.0
"""URLs of servers, and the connections that a client has in an event loop."""

from __future__ import annotations

import asyncio
import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ct2_triton.client.balancing import RoundRobin, split
from ct2_triton.client.calls import Text, code_of, row_key
from ct2_triton.client.messages import error_of_message
from ct2_triton.client.retry import Outage, closed_error
from ct2_triton.errors import InvalidCallError
from ct2_triton.prepared_model import STREAM_SUFFIX, TEXT_SUFFIX

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    import grpc

    from ct2_triton.client.balancing import Address
    from ct2_triton.client.calls import Call
    from ct2_triton.client.connection import Connection
    from ct2_triton.client.results import TextPart
    from ct2_triton.client.retry import Deadline, RetryPolicy
    from ct2_triton.client.text_codec import TextModel
    from ct2_triton.errors import ClientError

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
        has_tls: Whether the URL asks for TLS; None if it has no scheme.
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
    """The servers of a client.

    Attributes:
        urls: Each `host:port`, or a name that gRPC resolves; at least one.
        is_balanced: Whether requests go in turn to all servers of the URLs.
        has_tls: Whether the URLs ask for TLS; None if they have no scheme.
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
    """The connections to the servers, and the state of their outage.

    Attributes:
        loop: The event loop in which it was opened, the only one in which it works.
        connection: Sends requests.
        outage: Sends them again after an outage.
        streams: The streams of text in progress.
    """

    loop: asyncio.AbstractEventLoop
    connection: Connection | RoundRobin
    outage: Outage
    streams: TextStreams

    @classmethod
    def of(
        cls, loop: asyncio.AbstractEventLoop, connection: Connection | RoundRobin, outage: Outage
    ) -> Link:
        """Make one without streams."""
        return cls(loop, connection, outage, TextStreams(connection))

    async def close(self) -> None:
        """End the streams, then close the connection; other calls in progress end with an error."""
        await self.streams.close()
        await self.connection.close()


def open_link(
    servers: Servers,
    retry: RetryPolicy,
    loop: asyncio.AbstractEventLoop,
    credentials: grpc.ChannelCredentials | None,
    metadata: Mapping[str, str] | None,
) -> Link:
    """Open the connections; nothing is sent yet. Must be called in the event loop.

    Without credentials, the public authorities are trusted if the URLs ask for TLS. The result must
    be closed.
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


_PATIENCE_S = 5.0  # for streams to end when the client is closed
_END_AGAIN_AFTER_S = 0.5  # until the end of a stream is requested again; then twice as long, ...
_END_AGAIN_AT_MOST_S = 2.0


def stream_model(model: str) -> str:
    """Return the name of the stream model of a model, which may be one itself."""
    if model.endswith(STREAM_SUFFIX):
        return model
    return model.removesuffix(TEXT_SUFFIX) + STREAM_SUFFIX


class TextStreams:
    """The streams in progress on a connection.

    A stream that is left is ended on the server by a newer request with its key and no text, not by
    a cancellation, which can crash Triton 2.51 when it coincides with the end of a stream.
    """

    def __init__(self, connection: Connection | RoundRobin) -> None:
        """Keep the function that sends requests."""
        self._connection = connection
        self._running: dict[_Stream, None] = {}  # in the order in which they were sent
        self._ending: dict[asyncio.Task[None], tuple[str, str]] = {}  # requests without text
        self._closed = False

    async def parts(
        self, ask: Callable[..., Any], call: Call, text: str
    ) -> AsyncGenerator[TextPart, None]:
        """Send a text and yield the parts of its translations; `ask` is `ServedModel.ask`.

        Leaving the iteration ends the stream on the server. Before the first part, the text is sent
        again after an outage, unless the caller's key could then end a newer request.
        """
        has_key = call.supersede is not None
        key = row_key(call.supersede) if call.supersede else f"stream/{uuid.uuid4()}"

        async def start(model: TextModel, deadline: Deadline) -> tuple[_Stream, TextPart | None]:
            ending = [task for task, place in self._ending.items() if place == (model.model, key)]
            if ending:
                await asyncio.wait(ending, timeout=deadline.remaining_s())
            if self._closed:
                raise closed_error()
            stream = _Stream(self._connection, model, call, text, key, deadline)
            self._running[stream] = None
            try:
                return stream, await stream.next()
            except BaseException:
                self._leave(stream)
                raise

        stream, part = await ask(start, call, text, repeats=not has_key)
        try:
            while part is not None:
                yield part
                part = await stream.next()
        finally:
            self._leave(stream)

    async def close(self) -> None:
        """End all streams, whose readers get an error, and wait some seconds for their ends."""
        self._closed = True
        for stream in list(self._running):
            stream.give_up(closed_error())
            self._leave(stream)
        if self._ending:
            await asyncio.wait(self._ending, timeout=_PATIENCE_S)

    def _leave(self, stream: _Stream) -> None:
        """Forget a stream, and end it on the server if it runs there and none has replaced it."""
        if stream not in self._running:
            return
        sent = list(self._running)
        newer = sent[sent.index(stream) + 1 :]
        del self._running[stream]
        if not stream.is_over and not any(one.place == stream.place for one in newer):
            task = asyncio.create_task(stream.end())
            self._ending[task] = stream.place
            task.add_done_callback(self._ending.pop)


class _Stream:
    """A request of a stream, and its unread responses."""

    def __init__(
        self,
        connection: Connection | RoundRobin,
        model: TextModel,
        call: Call,
        text: str,
        key: str,
        deadline: Deadline,
    ) -> None:
        from ct2_triton.client.text_codec import build_text_request

        self.place = model.model, key  # a newer request to this model with this key ends it
        self.is_over = False  # on the server, with its last part or an error
        self._connection = connection
        self._model = model
        self._call = call
        self._deadline = deadline
        self._arrived: asyncio.Queue[Any] = asyncio.Queue()
        asked = Text(text, code_of(call.source), call.codes)
        left_s = deadline.remaining_s()
        request = build_text_request(model, [asked], call.options, left_s, key, streams=True)
        self._reader = asyncio.create_task(self._read(request))

    async def next(self) -> TextPart | None:
        """Wait for the next part; None is the end."""
        from ct2_triton.client.text_codec import read_part

        try:
            item = await asyncio.wait_for(self._arrived.get(), self._deadline.remaining_s())
        except asyncio.TimeoutError:  # another class than TimeoutError before Python 3.11
            raise self._deadline.expired_error() from None
        if isinstance(item, Exception):
            raise item
        return None if item is None else read_part(item.infer_response)

    def give_up(self, error: ClientError) -> None:
        """Raise an error in the reader, after the parts that have arrived."""
        self._arrived.put_nowait(error)

    async def end(self) -> None:
        """Replace it with a request without text, and wait for the end of both.

        A busy server may refuse this request, or process it before the stream's own, which then
        continues; in both cases another one follows.
        """
        no_limit = type(self._deadline)(None)
        pause_s = _END_AGAIN_AFTER_S
        while not self._reader.done():
            empty = _Stream(self._connection, self._model, self._call, "", self.place[1], no_limit)
            await asyncio.wait({empty._reader})
            await asyncio.wait({self._reader}, timeout=pause_s)
            pause_s = min(2 * pause_s, _END_AGAIN_AT_MOST_S)

    async def _read(self, request: Any) -> None:  # noqa: ANN401 - protobuf has no types for mypy
        """Keep all responses, then None or the error. Reading on avoids a cancellation."""
        end: Exception | None = None
        try:
            async for response in self._connection.stream(
                request, self._deadline, self._call.headers
            ):
                if response.error_message:
                    self.is_over = True
                    self._arrived.put_nowait(error_of_message(response.error_message))
                else:
                    self._arrived.put_nowait(response)
        except Exception as error:  # raised again where it is read
            end = error
        self.is_over = True
        self._arrived.put_nowait(end)
