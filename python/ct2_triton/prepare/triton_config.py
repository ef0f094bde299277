# SPDX-License-Identifier: Apache-2.0
"""Triton's model configuration as dataclasses, written in protobuf text format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tritonclient.grpc.model_config_pb2 import ModelConfig

BACKEND = "ctranslate2"


@dataclass(frozen=True)
class Tensor:
    """An input or output.

    Attributes:
        name: Its name on the wire.
        data_type: Triton's name of the type, `TYPE_INT32` for example.
        dims: Its shape without the batch dimension; -1 is any size.
        ragged: Whether rows of different lengths share a batch unpadded (inputs).
        optional: Whether a request may omit it (inputs).
    """

    name: str
    data_type: str
    dims: tuple[int, ...] = (-1,)
    ragged: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Parameter:
    """A parameter of the backend.

    Attributes:
        name: Its name in the backend's table.
        value: Its value as text, as in Triton.
        reason: Why it has this value; written as a comment.
    """

    name: str
    value: str
    reason: str = ""


@dataclass(frozen=True)
class TritonConfig:
    """One model's configuration.

    Attributes:
        name: The model's name.
        max_batch_size: Most rows of a batch; 0: requests are not batched.
        inputs: Input tensors.
        outputs: Output tensors.
        parameters: Parameters of the backend.
        instance_kind: `auto`, `cpu` or `gpu`.
        comment: First lines of the file.
        decoupled: Whether a request can have many responses.
    """

    name: str
    max_batch_size: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    parameters: tuple[Parameter, ...] = ()
    instance_kind: str = "auto"
    comment: tuple[str, ...] = ()
    decoupled: bool = False

    def to_message(self) -> ModelConfig:
        """Build the protobuf message."""
        message = self._message_without_parameters()
        for parameter in self.parameters:
            message.parameters[parameter.name].string_value = parameter.value
        return message

    def to_json(self) -> str:
        """Return the JSON that Triton passes to a backend."""
        from google.protobuf import json_format

        return str(json_format.MessageToJson(self.to_message(), preserving_proto_field_name=True))

    def to_text(self) -> str:
        """Return the text of `config.pbtxt`, with the reasons as comments."""
        from google.protobuf import text_format
        from tritonclient.grpc.model_config_pb2 import ModelConfig

        lines = [f"# {' '.join(line.splitlines())}" for line in self.comment]
        body = text_format.MessageToString(self._message_without_parameters(), as_utf8=True)
        lines.append(body.rstrip("\n"))
        if self.max_batch_size == 0:  # the text format omits zeros, but Triton needs this one
            lines.append("max_batch_size: 0")
        for parameter in self.parameters:
            if parameter.reason:
                lines.append(f"# {parameter.reason}")
            one = ModelConfig()
            one.parameters[parameter.name].string_value = parameter.value
            lines.append(text_format.MessageToString(one, as_utf8=True).rstrip("\n"))
        return "\n".join(lines) + "\n"

    def _message_without_parameters(self) -> ModelConfig:
        from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInstanceGroup

        message = ModelConfig(name=self.name, backend=BACKEND, max_batch_size=self.max_batch_size)
        for tensor in self.inputs:
            message.input.add(
                name=tensor.name,
                data_type=tensor.data_type,
                dims=tensor.dims,
                allow_ragged_batch=tensor.ragged,
                optional=tensor.optional,
            )
        for tensor in self.outputs:
            message.output.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        kind = ModelInstanceGroup.Kind.Value(f"KIND_{self.instance_kind.upper()}")
        message.instance_group.add(kind=kind, count=1)
        if self.max_batch_size > 0:
            message.dynamic_batching.SetInParent()
        if self.decoupled:
            message.model_transaction_policy.decoupled = True
        return message
