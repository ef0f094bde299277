# SPDX-License-Identifier: Apache-2.0
"""A real gRPC inference service that misbehaves on request, and a wire that can be cut.

Only for what a healthy tritonserver does not do on command: refuse, answer late, break off.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    Behaviour = Callable[["FaultServer", Any, Any], Awaitable[Any]]


def request() -> service_pb2.ModelInferRequest:
    """A request of one id."""
    message = service_pb2.ModelInferRequest(model_name="m")
    message.inputs.add(name="INPUT_IDS", datatype="INT32", shape=[1, 1])
    message.raw_input_contents.append(b"\1\0\0\0")
    return message


async def echo(_server: FaultServer, request: Any, _context: Any) -> Any:
    """Answers INPUT_IDS, the prefix in front, as OUTPUT_IDS."""
    rows = dict(
        zip((tensor.name for tensor in request.inputs), request.raw_input_contents, strict=True)
    )
    content = rows.get("TARGET_PREFIX", b"") + rows["INPUT_IDS"]
    response = service_pb2.ModelInferResponse(model_name=request.model_name)
    response.outputs.add(name="OUTPUT_IDS", datatype="INT32", shape=[1, len(content) // 4])
    response.raw_output_contents.append(content)
    return response


async def alive(_server: FaultServer, _request: Any, _context: Any) -> Any:
    """Says that the server lives."""
    return service_pb2.ServerLiveResponse(live=True)


async def hang(server: FaultServer, _request: Any, _context: Any) -> Any:
    """Never answers, and notes when it is told to stop."""
    server.started.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        server.cancelled.set()
        raise


def abort(status: grpc.StatusCode, text: str) -> Behaviour:
    """Makes a behaviour that refuses with a status."""

    async def behave(_server: FaultServer, _request: Any, context: Any) -> Any:
        await context.abort(status, text)

    return behave


class FaultServer(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]
    """The service; `calls` counts the inference requests that arrived.

    `behaviour` answers them, `life` the question whether the server lives.
    """

    def __init__(self, behaviour: Behaviour = echo) -> None:
        self.behaviour = behaviour
        self.life: Behaviour = alive
        self.calls = 0
        self.metadata: list[tuple[str, str]] = []
        self.started = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def ServerLive(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await self.life(self, request, context)

    async def ModelMetadata(self, request: Any, context: Any) -> Any:  # noqa: N802
        response = service_pb2.ModelMetadataResponse(name=request.name)
        for name in ("INPUT_IDS", "TARGET_PREFIX"):
            response.inputs.add(name=name, datatype="INT32", shape=[-1, -1])
        response.outputs.add(name="OUTPUT_IDS", datatype="INT32", shape=[-1, -1])
        return response

    async def ModelInfer(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.calls += 1
        self.metadata = [(str(key), str(value)) for key, value in context.invocation_metadata()]
        return await self.behaviour(self, request, context)


@contextlib.asynccontextmanager
async def serving(server: FaultServer, port: int = 0) -> AsyncIterator[str]:
    """Serves on a port (0: any) and gives the URL."""
    grpc_server = grpc.aio.server()
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(server, grpc_server)
    port = grpc_server.add_insecure_port(f"127.0.0.1:{port}")
    await grpc_server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await grpc_server.stop(grace=None)


@contextlib.contextmanager
def serving_in_a_thread(server_of: type[FaultServer], *arguments: Any) -> Iterator[Any]:
    """Serves from a loop in a thread; gives the server and its URL."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def enter() -> tuple[FaultServer, Any, str]:
        server = server_of(*arguments)
        context = serving(server)
        return server, context, await context.__aenter__()

    server, context, url = asyncio.run_coroutine_threadsafe(enter(), loop).result(30)
    try:
        yield server, url
    finally:
        leave = context.__aexit__(None, None, None)
        asyncio.run_coroutine_threadsafe(leave, loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


class Wire:
    """A TCP relay whose connections can be cut or fall silent; `accepted` counts them."""

    def __init__(self, url: str | None) -> None:
        self._target = url
        self._writers: list[asyncio.StreamWriter] = []
        self._pumps: list[asyncio.Task[None]] = []
        self._silent = asyncio.Event()  # of the connections that stand
        self.accepted = 0

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        """Listens and gives the URL. Without a target it hangs up on everybody."""
        listener = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        async with listener:
            port = listener.sockets[0].getsockname()[1]
            yield f"127.0.0.1:{port}"
            self.cut()

    def cut(self) -> None:
        """Breaks the standing connections."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def silence(self) -> None:
        """Forwards nothing more on the standing connections, which stay open; new ones work.

        So a router behaves that has forgotten its connections, and a peer whose power went.
        """
        self._silent.set()
        self._silent = asyncio.Event()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self._target is None:
            writer.transport.abort()
            return
        host, port = self._target.split(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        self._writers += [writer, far_writer]
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            self._pumps.append(asyncio.create_task(_pump(source, sink, self._silent)))


async def _pump(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, silent: asyncio.Event
) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(65536):
            if not silent.is_set():
                sink.write(data)
                await sink.drain()
