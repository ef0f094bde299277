# SPDX-License-Identifier: Apache-2.0
"""Streams of text, as any gRPC client of Triton would read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import deserialize_bytes_tensor

MODEL = "demo-stream"


@dataclass(frozen=True)
class Part:
    """One response of a stream."""

    text: str
    index: int
    language: str
    finish: str
    input_tokens: int
    output_tokens: int
    is_final: bool


class StreamError(Exception):
    """A response that is an error."""


def _strings(name: str, values: Sequence[str | bytes]) -> Any:
    data = [value.encode() if isinstance(value, str) else value for value in values]
    return service_pb2.ModelInferRequest.InferInputTensor(
        name=name,
        datatype="BYTES",
        shape=[1, len(data)],
        contents=service_pb2.InferTensorContents(bytes_contents=data),
    )


def request(
    text: str | bytes,
    targets: Sequence[str] | None,
    source: str | None = "en",
    model: str = MODEL,
    *,
    more: Mapping[str, Sequence[str]] = {},
    **parameters: Any,
) -> Any:
    """A request for a stream; None leaves an input out, `stream=None` the parameter."""
    message = service_pb2.ModelInferRequest(model_name=model)
    parameters = {"stream": True, **parameters}
    if parameters["stream"] is None:
        del parameters["stream"]
    message.inputs.append(_strings("text_input", [text]))
    if source is not None:
        message.inputs.append(_strings("source_language", [source]))
    if targets is not None:
        message.inputs.append(_strings("target_languages", targets))
    message.inputs.extend(_strings(name, values) for name, values in more.items())
    for name, value in parameters.items():
        kinds = {bool: "bool_param", int: "int64_param", float: "double_param"}
        setattr(message.parameters[name], kinds.get(type(value), "string_param"), value)
    return message


def part_of(response: Any) -> Part:
    """Reads one response; raises StreamError where it is an error."""
    if response.error_message:
        raise StreamError(response.error_message)
    answer = response.infer_response
    values: dict[str, Any] = {}
    for output, raw in zip(answer.outputs, answer.raw_output_contents, strict=True):
        if output.datatype == "BYTES":
            values[output.name] = deserialize_bytes_tensor(raw)[0].decode()
        else:
            values[output.name] = int.from_bytes(raw, "little")
        assert list(output.shape) == [1, 1], output.name
    return Part(
        values.get("text_output", ""),
        values.get("target_index", 0),
        values.get("target_language", ""),
        values.get("finish_reason", ""),
        values.get("num_input_tokens", 0),
        values.get("num_output_tokens", 0),
        answer.parameters["triton_final_response"].bool_param,
    )


class Streams:
    """A channel on which streams are read."""

    def __init__(self, url: str) -> None:
        self._channel = grpc.insecure_channel(url)
        self._stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)

    def close(self) -> None:
        """Closes the channel."""
        self._channel.close()

    def open(self, *args: Any, **kwargs: Any) -> Iterator[Part]:
        """Sends a request (see `request`) and gives its parts as they come."""
        return self.send(request(*args, **kwargs))

    def send(self, message: Any) -> Iterator[Part]:
        """Sends a request that `request` made, and gives its parts as they come."""
        return map(part_of, self._stub.ModelStreamInfer(iter([message])))

    def send_raw(self, message: Any) -> list[Any]:
        """Sends a request and gives all its responses, as they are."""
        return list(self._stub.ModelStreamInfer(iter([message])))

    def parts(self, *args: Any, **kwargs: Any) -> list[Part]:
        """Reads a whole stream, whose last response, and no other, is final."""
        parts = list(self.open(*args, **kwargs))
        assert [part.is_final for part in parts] == [False] * (len(parts) - 1) + [True]
        return parts

    def refusal(self, *args: Any, **kwargs: Any) -> str:
        """Sends a request that must be refused, and gives the one response, which is the error."""
        responses = self.send_raw(request(*args, **kwargs))
        assert len(responses) == 1
        message: str = responses[0].error_message
        return message


def joined(parts: Sequence[Part], targets: int) -> list[str]:
    """The texts of a stream, which must be well-formed, by target."""
    for index in range(targets):
        own = [part for part in parts if part.index == index]
        assert [bool(part.finish) for part in own] == [False] * (len(own) - 1) + [True]
        assert all(part.text for part in own[:-1])
    return ["".join(part.text for part in parts if part.index == i) for i in range(targets)]
