# SPDX-License-Identifier: Apache-2.0
"""One text, translated by a model that sends the translations while they grow (docs/text.md)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ct2_triton.client.supersede import SUPERSEDE_KEY
from ct2_triton.client.versions import UNKNOWN_MODEL
from ct2_triton.errors import (
    ClientError,
    ModelNotFoundError,
    RequestRejectedError,
    SupersededError,
    UnexpectedResponseError,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from tritonclient.grpc import service_pb2

    from ct2_triton.client.balancing import RoundRobin
    from ct2_triton.client.connection import Connection, Deadline
    from ct2_triton.client.requests import OptionValue

_SUPERSEDED = "superseded"  # how the backend begins such an answer


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
        version: Version to ask for; "" leaves it to the server.
        source: Code of the text's language; None: the model's default, or none.
        targets: Codes of the languages wanted; None for a model that has none.
        options: Decoding options by name.
        key: A newer request with this key ends the stream.
    """

    model: str
    version: str
    source: str | None
    targets: Sequence[str] | None
    options: Mapping[str, OptionValue]
    key: str

    def request(self, text: str) -> service_pb2.ModelInferRequest:
        """Build the ModelInferRequest for a text."""
        from tritonclient.grpc import service_pb2

        from ct2_triton.client.requests import set_parameter
        from ct2_triton.client.text_requests import add_strings

        request = service_pb2.ModelInferRequest(model_name=self.model, model_version=self.version)
        add_strings(request, "text_input", [1], [text])
        if self.source is not None:
            add_strings(request, "source_language", [1], [self.source])
        if self.targets is not None:
            add_strings(request, "target_languages", [len(self.targets)], self.targets)
        for name in ("text_output", "target_index", "target_language", "finish_reason"):
            request.outputs.add(name=name)
        for name, value in self.options.items():
            set_parameter(request, name, value)
        set_parameter(request, SUPERSEDE_KEY, self.key)
        return request


async def stream_parts(
    connection: Connection | RoundRobin,
    call: TextCall,
    text: str,
    deadline: Deadline,
    leaving: set[asyncio.Task[None]],
) -> AsyncGenerator[TextPart, None]:
    """Send a text and yield the parts of its translations as they come.

    Leaving the iteration ends the stream on the server by a newer request of no text, not by a
    cancellation, which can stop Triton 2.51 where it meets the end of a stream.

    Args:
        connection: Sends the request.
        call: What to ask for.
        text: The text.
        deadline: When the last part must be there.
        leaving: Keeps the task that ends a stream that was left.

    Yields:
        Each part.

    Raises:
        ClientError: One of its subclasses; what was yielded before is no answer.
    """
    arrived: asyncio.Queue[Any] = asyncio.Queue()
    reader = asyncio.create_task(_read(connection, call.request(text), deadline, arrived))
    try:
        while (item := await _next(arrived, deadline)) is not None:
            if isinstance(item, ClientError):
                raise item
            yield _part_of(item)
    finally:
        if not reader.done():
            task = asyncio.create_task(_end(connection, call, deadline, reader))
            leaving.add(task)
            task.add_done_callback(leaving.discard)


async def _read(
    connection: Connection | RoundRobin,
    request: service_pb2.ModelInferRequest,
    deadline: Deadline,
    arrived: asyncio.Queue[Any],
) -> None:
    """Hand on all responses, then None, or the error. To stop reading would be a cancellation."""
    try:
        async for response in connection.stream(request, deadline):
            arrived.put_nowait(response)
    except ClientError as error:
        arrived.put_nowait(error)
    else:
        arrived.put_nowait(None)


async def _next(arrived: asyncio.Queue[Any], deadline: Deadline) -> Any:  # noqa: ANN401
    try:
        return await asyncio.wait_for(arrived.get(), deadline.remaining_s())
    except TimeoutError:
        raise deadline.expired_error() from None


async def _end(
    connection: Connection | RoundRobin,
    call: TextCall,
    deadline: Deadline,
    reader: asyncio.Task[None],
) -> None:
    """Take the place of a stream that nobody reads any more; wait for its end."""
    await _read(connection, call.request(""), type(deadline)(None), asyncio.Queue())
    await reader


def _part_of(response: service_pb2.ModelStreamInferResponse) -> TextPart:
    from tritonclient.grpc import InferResult

    message = response.error_message
    if message.startswith(_SUPERSEDED):
        raise SupersededError(message)
    if message:  # the stream has no status codes
        kind = ModelNotFoundError if message.startswith(UNKNOWN_MODEL) else RequestRejectedError
        raise kind(message)
    result = InferResult(response.infer_response)
    names = ("text_output", "target_index", "target_language", "finish_reason")
    tensors = [result.as_numpy(name) for name in names]
    if any(tensor is None or tensor.size != 1 for tensor in tensors):
        raise UnexpectedResponseError(f"a part of a stream has not one value of {names} each")
    text, index, target, finish = (tensor.reshape(-1)[0] for tensor in tensors)
    return TextPart(text.decode(), int(index), target.decode() or None, finish.decode() or None)
