# SPDX-License-Identifier: Apache-2.0
"""One text, translated by a model that sends the translations while they grow (docs/text.md)."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

from ct2_triton.client.calls import Text, code_of, row_key
from ct2_triton.client.failures import closed_error, error_of_message
from ct2_triton.prepared_model import STREAM_SUFFIX, TEXT_SUFFIX

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from ct2_triton.client.balancing import RoundRobin
    from ct2_triton.client.calls import Call
    from ct2_triton.client.connection import Connection
    from ct2_triton.client.results import TextPart
    from ct2_triton.client.retry import Deadline
    from ct2_triton.client.text_codec import TextModel
    from ct2_triton.errors import ClientError

_PATIENCE_S = 5.0  # with streams that end, when the client is closed
_END_AGAIN_AFTER_S = 0.5  # where a stream goes on that was told to end; then twice as long, ...
_END_AGAIN_AT_MOST_S = 2.0


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
        self._ending: dict[asyncio.Task[None], tuple[str, str]] = {}  # with what they take place of
        self._closed = False

    async def parts(
        self, ask: Callable[..., Any], call: Call, text: str
    ) -> AsyncGenerator[TextPart, None]:
        """Send a text and yield the parts of its translations; `ask` is `ServedModel.ask`.

        Leaving the iteration ends the stream on the server. Until the first part has come, the text
        is sent again after an outage, unless a key of the caller's may end a newer request.
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
        """End all streams; their readers get an error. Wait some seconds for their ends."""
        self._closed = True
        for stream in list(self._running):
            stream.give_up(closed_error())
            self._leave(stream)
        if self._ending:
            await asyncio.wait(self._ending, timeout=_PATIENCE_S)

    def _leave(self, stream: _Stream) -> None:
        """Forget a stream; end it on the server, too, where it runs and none has replaced it."""
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

        self.place = model.model, key  # a newer request there ends it
        self.is_over = False  # on the server: it has said its last, or an error
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
        """Let the reader find an error after what has arrived."""
        self._arrived.put_nowait(error)

    async def end(self) -> None:
        """Take its place by a request of no text; wait for the end of both.

        A busy server may refuse such a request, or come to it before the stream's own, which would
        then run on: another follows.
        """
        no_limit = type(self._deadline)(None)
        pause_s = _END_AGAIN_AFTER_S
        while not self._reader.done():
            empty = _Stream(self._connection, self._model, self._call, "", self.place[1], no_limit)
            await asyncio.wait({empty._reader})
            await asyncio.wait({self._reader}, timeout=pause_s)
            pause_s = min(2 * pause_s, _END_AGAIN_AT_MOST_S)

    async def _read(self, request: Any) -> None:  # noqa: ANN401 - protobuf has no types for mypy
        """Keep all responses, then None, or the error. To stop reading would be a cancellation."""
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
