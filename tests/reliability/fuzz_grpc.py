# SPDX-License-Identifier: Apache-2.0
"""Requests over gRPC: raw bytes, typed contents, and the bidirectional stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import deserialize_bytes_tensor, triton_to_np_dtype

from reliability.fuzz_judge import Reply
from reliability.fuzz_request import Request

_TIMEOUT_S = 120
_CONTENTS = {"INT32": "int_contents", "INT64": "int64_contents"}


def to_message(request: Request, request_id: str, typed: bool) -> Any:
    """The protobuf message; `typed` puts the ids into typed contents in place of raw bytes."""
    message = service_pb2.ModelInferRequest(
        model_name=request.model, model_version=request.version, id=request_id
    )
    for name, value in request.parameters.items():
        set_parameter(message.parameters[name], value)
    for tensor in request.tensors:
        sent = message.inputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
        if typed and tensor.datatype in _CONTENTS:
            getattr(sent.contents, _CONTENTS[tensor.datatype]).extend(tensor.data.ravel().tolist())
        else:
            message.raw_input_contents.append(tensor.data.tobytes())
    for name in request.outputs or ():
        message.outputs.add(name=name)
    return message


def set_parameter(parameter: Any, value: Any) -> None:
    """Writes a value into the field of its type."""
    if isinstance(value, bool):
        parameter.bool_param = value
    elif isinstance(value, int):
        parameter.int64_param = value
    elif isinstance(value, float):
        parameter.double_param = value
    else:
        parameter.string_param = value


def open_channel(url: str) -> grpc.Channel:
    """A channel with a connection of its own; gRPC would share one within the process."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
    return grpc.insecure_channel(url, options=options)


def stub(channel: grpc.Channel) -> Any:
    """The calls of the inference service."""
    return service_pb2_grpc.GRPCInferenceServiceStub(channel)


class GrpcSender:
    """One connection, for one thread."""

    def __init__(self, url: str) -> None:
        self._channel = open_channel(url)
        self._stub = stub(self._channel)

    def send_together(self, messages: Sequence[Any]) -> list[Reply]:
        """Sends all before any answer is waited for."""
        calls = [self._stub.ModelInfer.future(message, timeout=_TIMEOUT_S) for message in messages]
        return [reply_of(call) for call in calls]

    def send_as_stream(self, messages: Sequence[Any]) -> list[Reply]:
        """Sends all over one stream, which must give one answer for each."""
        stream = self._stub.ModelStreamInfer(iter(messages), timeout=_TIMEOUT_S)
        replies: dict[str, Reply] = {}
        for response in stream:
            answer = response.infer_response
            reply = (
                Reply("ERROR", response.error_message) if response.error_message else Reply("OK")
            )
            if reply.code == "OK":
                reply.outputs = outputs_of(answer)
            if answer.id in replies:
                replies[answer.id] = Reply("TWICE", f"two answers for id {answer.id!r}")
            else:
                replies[answer.id] = reply
        lost = Reply("LOST", "the stream gave no answer")
        return [replies.get(message.id, lost) for message in messages]

    def close(self) -> None:
        """Closes the connection."""
        self._channel.close()


def reply_of(call: Any) -> Reply:
    """Waits for a call; its own cancellation is a reply too."""
    try:
        response = call.result()
    except grpc.FutureCancelledError:
        return Reply("CANCELLED")
    except grpc.RpcError as error:
        return Reply(error.code().name, error.details() or "")  # type: ignore[attr-defined]
    return Reply("OK", outputs=outputs_of(response))


def outputs_of(response: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The output tensors of a response, by name."""
    outputs = {}
    for output, raw in zip(response.outputs, response.raw_output_contents, strict=True):
        if output.datatype == "BYTES":
            array = np.array([text.decode() for text in deserialize_bytes_tensor(raw)], object)
        else:
            array = np.frombuffer(raw, triton_to_np_dtype(output.datatype))
        outputs[output.name] = array.reshape(list(output.shape))
    return outputs
