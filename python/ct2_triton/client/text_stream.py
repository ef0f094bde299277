# SPDX-License-Identifier: Apache-2.0
"""One text, translated by a model that sends the translations while they grow (docs/text.md)."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ct2_triton.client.closing import closed_error
from ct2_triton.client.versions import UNKNOWN_MODEL, first_served
from ct2_triton.errors import (
    ClientError,
    DeadlineExceededError,
    ModelNotFoundError,
    RequestRejectedError,
    ServerBusyError,
    ServerFailedError,
    SupersededError,
    UnexpectedResponseError,
)
from ct2_triton.prepared_model import STREAM_SUFFIX, TEXT_SUFFIX

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from tritonclient.grpc import service_pb2

    from ct2_triton.client.balancing import RoundRobin
    from ct2_triton.client.connection import Connection, Deadline
    from ct2_triton.client.headers import Headers
    from ct2_triton.client.requests import OptionValue

STREAM = "stream"  # the parameter that asks for parts

_PATIENCE_S = 5.0  # with streams that end, when the client is closed
_END_AGAIN_AFTER_S = 0.5  # where a stream goes on that was told to end; then twice as long, ...
_END_AGAIN_AT_MOST_S = 2.0

# A stream has no status codes: how the backend and Triton begin what another class says than
# RequestRejectedError. The classes are those of the status in `Connection`.
_ERROR_OF_WORDING: tuple[tuple[re.Pattern[str], type[ClientError]], ...] = tuple(
    (re.compile(rf"(\[request id: [^\]]*\] )?{wording}"), kind)
    for wording, kind in (
        ("superseded", SupersededError),
        ("deadline exceeded", DeadlineExceededError),
        (f"{UNKNOWN_MODEL}.* (is not at ready state|has no available versions)", ServerBusyError),
        (UNKNOWN_MODEL, ModelNotFoundError),
        ("Exceeds maximum queue size", ServerBusyError),
        ("Request timeout expired", ServerBusyError),
        ("Server is stopping", ServerBusyError),
        ("GRPC server is shutting down", ServerBusyError),
        ("CTranslate2 failed", ServerFailedError),
        ("the server ran out of memory", ServerFailedError),
    )
)


@dataclass(frozen=True)
class TextPart:
    """A part of a translation: what follows the part before in this language.

    Attributes:
        text: The text, in whole characters.
        index: Which of the call's target languages it belongs to, from 0.
        target: That language, as the model's own code; None for a model without languages.
        finish_reason: On the last part of a language why its translation ended, as in
            `Hypothesis.finish_reason`, or "split": a sentence was cut into several. Else None.
    """

    text: str
    index: int
    target: str | None
    finish_reason: str | None = None


@dataclass(frozen=True)
class TextCall:
    """What a call of a stream says, beside the text.

    Attributes:
        model: Name of the model of streams.
        source: Code of the text's language; None: the model's default, or none.
        targets: Codes of the languages wanted; None for a model that has none.
        options: Decoding options by name.
        key: A newer request with this key ends the stream.
        headers: Headers of its requests, beside the client's.
        batched: Whether shapes start with the number of texts (`max_batch_size` above 0).
    """

    model: str
    source: str | None
    targets: Sequence[str] | None
    options: Mapping[str, OptionValue]
    key: str
    headers: Headers = ()
    batched: bool = True

    def request(
        self, version: str, text: str, timeout_s: float | None
    ) -> service_pb2.ModelInferRequest:
        """Build the ModelInferRequest for a text, to a version.

        Raises:
            InvalidCallError: Something cannot be sent.
        """
        from tritonclient.grpc import service_pb2

        from ct2_triton.client.requests import set_parameters
        from ct2_triton.client.text_requests import add_strings

        request = service_pb2.ModelInferRequest(model_name=self.model, model_version=version)
        leading = [1] if self.batched else []
        add_strings(request, "text_input", [*leading, 1], [text])
        if self.source is not None:
            add_strings(request, "source_language", [*leading, 1], [self.source])
        if self.targets is not None:
            shape = [*leading, len(self.targets)]
            add_strings(request, "target_languages", shape, self.targets)
        for name in ("text_output", "target_index", "target_language", "finish_reason"):
            request.outputs.add(name=name)
        set_parameters(request, {**self.options, STREAM: True}, timeout_s, self.key)
        return request


def stream_model(model: str) -> str:
    """Give the name of the model of streams that belongs to a model, which may be one itself."""
    if model.endswith(STREAM_SUFFIX):
        return model
    return model.removesuffix(TEXT_SUFFIX) + STREAM_SUFFIX


class TextStreams:
    """The streams that one connection has under way.

    A stream that is left is ended on the server by a newer request of no text with its key, not by
    a cancellation, which can stop Triton 2.51 where it meets the end of a stream.
    """

    def __init__(self, connection: Connection | RoundRobin) -> None:
        """Keep what sends the requests."""
        self._connection = connection
        self._running: dict[_Stream, None] = {}  # in the order in which they were sent
        self._ending: dict[asyncio.Task[None], TextCall] = {}
        self._batched: dict[tuple[str, str], bool] = {}  # by model and version
        self._closed = False

    async def parts(
        self, call: TextCall, versions: Sequence[str], text: str, deadline: Deadline
    ) -> AsyncGenerator[TextPart, None]:
        """Send a text and yield the parts of its translations as they come.

        Leaving the iteration ends the stream on the server.

        Args:
            call: What to ask for.
            versions: Versions in the order to ask, until the server has one.
            text: The text.
            deadline: When the last part must be there.

        Yields:
            Each part.

        Raises:
            ClientError: One of its subclasses; what was yielded before is no answer.
        """

        async def ask(version: str) -> tuple[_Stream, TextPart | None]:
            batched = await self._is_batched(call.model, version, deadline)
            stream = await self._start(replace(call, batched=batched), version, text, deadline)
            try:
                return stream, await stream.next()
            except BaseException:
                self._batched.pop((call.model, version), None)  # it may have been loaded anew
                self._leave(stream)
                raise

        stream, part = await first_served(versions, ask)
        try:
            while part is not None:
                yield part
                part = await stream.next()
        finally:
            self._leave(stream)

    async def close(self) -> None:
        """End all streams; their readers get an error. Wait some seconds for their ends."""
        self._closed = True
        for stream in list(self._running):
            stream.give_up(closed_error())
            self._leave(stream)
        if self._ending:
            await asyncio.wait(self._ending, timeout=_PATIENCE_S)

    async def _is_batched(self, model: str, version: str, deadline: Deadline) -> bool:
        """Ask the server, once, whether the model's shapes start with the number of texts."""
        place = model, version
        if place not in self._batched:
            metadata = await self._connection.model_metadata(model, version, deadline)
            shapes = [one.shape for one in metadata.inputs if one.name == "text_input"]
            self._batched[place] = [len(shape) for shape in shapes] != [1]
        return self._batched[place]

    async def _start(self, call: TextCall, version: str, text: str, deadline: Deadline) -> _Stream:
        """Send a text, behind the end of streams with its key that were left."""
        ending = [task for task, left in self._ending.items() if _same_place(left, call)]
        if ending:
            await asyncio.wait(ending, timeout=deadline.remaining_s())
        if self._closed:
            raise closed_error()
        stream = _Stream(self._connection, call, version, text, deadline)
        self._running[stream] = None
        return stream

    def _leave(self, stream: _Stream) -> None:
        """Forget a stream; end it on the server, too, where it runs and none has replaced it."""
        if stream not in self._running:
            return
        sent = list(self._running)
        newer = sent[sent.index(stream) + 1 :]
        del self._running[stream]
        if not stream.is_over and not any(_same_place(one.call, stream.call) for one in newer):
            task = asyncio.create_task(stream.end())
            self._ending[task] = stream.call
            task.add_done_callback(self._ending.pop)


class _Stream:
    """A request of a stream, and the responses that nobody has read yet."""

    def __init__(
        self,
        connection: Connection | RoundRobin,
        call: TextCall,
        version: str,
        text: str,
        deadline: Deadline,
    ) -> None:
        self.call = call
        self.is_over = False  # on the server: it has said its last, or an error
        self._connection = connection
        self._version = version
        self._deadline = deadline
        self._arrived: asyncio.Queue[Any] = asyncio.Queue()
        self._reader = asyncio.create_task(
            self._read(call.request(version, text, deadline.remaining_s()))
        )

    async def next(self) -> TextPart | None:
        """Wait for the next part; None is the end."""
        try:
            item = await asyncio.wait_for(self._arrived.get(), self._deadline.remaining_s())
        except asyncio.TimeoutError:  # another class than TimeoutError before Python 3.11
            raise self._deadline.expired_error() from None
        if isinstance(item, Exception):
            raise item
        return None if item is None else _part_of(item)

    def give_up(self, error: ClientError) -> None:
        """Let the reader find an error behind what has arrived."""
        self._arrived.put_nowait(error)

    async def end(self) -> None:
        """Take its place by a request of no text; wait for the end of both.

        A busy server may refuse such a request, or come to it before the stream's own, which would
        then run on: another follows.
        """
        no_limit = type(self._deadline)(None)
        pause_s = _END_AGAIN_AFTER_S
        while not self._reader.done():
            empty = _Stream(self._connection, self.call, self._version, "", no_limit)
            await asyncio.wait({empty._reader})
            await asyncio.wait({self._reader}, timeout=pause_s)
            pause_s = min(2 * pause_s, _END_AGAIN_AT_MOST_S)

    async def _read(self, request: service_pb2.ModelInferRequest) -> None:
        """Keep all responses, then None, or the error. To stop reading would be a cancellation."""
        end: Exception | None = None
        try:
            async for response in self._connection.stream(
                request, self._deadline, self.call.headers
            ):
                if response.error_message:
                    self.is_over = True
                    self._arrived.put_nowait(_error_of(response.error_message))
                else:
                    self._arrived.put_nowait(response)
        except Exception as error:  # raised again where it is read
            end = error
        self.is_over = True
        self._arrived.put_nowait(end)


def _same_place(one: TextCall, other: TextCall) -> bool:
    """Say whether the newer of two calls ends the older."""
    return (one.model, one.key) == (other.model, other.key)


def _error_of(message: str) -> ClientError:
    for wording, kind in _ERROR_OF_WORDING:
        if wording.match(message):
            return kind(message)
    return RequestRejectedError(message)


def _part_of(response: service_pb2.ModelStreamInferResponse) -> TextPart:
    from tritonclient.grpc import InferResult

    result = InferResult(response.infer_response)
    names = ("text_output", "target_index", "target_language", "finish_reason")
    tensors = [result.as_numpy(name) for name in names]
    if any(tensor is None or tensor.size != 1 for tensor in tensors):
        raise UnexpectedResponseError(f"a part of a stream has not one value of {names} each")
    text, index, target, finish = (tensor.reshape(-1)[0] for tensor in tensors)
    return TextPart(text.decode(), int(index), target.decode() or None, finish.decode() or None)
