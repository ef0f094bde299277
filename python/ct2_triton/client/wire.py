# SPDX-License-Identifier: Apache-2.0
"""The common parts of token-ID requests and text requests."""

from __future__ import annotations

import json
from numbers import Integral, Real
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from ct2_triton.client.calls import SUPERSEDE_KEY, is_unicode
from ct2_triton.errors import InvalidCallError, UnexpectedResponseError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tritonclient.grpc import service_pb2

    from ct2_triton.client.calls import OptionValue

_RESERVED = {"sequence_id", "sequence_start", "sequence_end", "priority", "timeout"}


class Declared(Protocol):
    """The properties of a loaded model that a codec uses."""

    takes_text: ClassVar[bool]

    @property
    def model(self) -> str:
        """Name on the server."""

    @property
    def version(self) -> str:
        """Version to ask for; "" leaves it to the server."""

    @property
    def outputs(self) -> frozenset[str]:
        """Names of the outputs."""


def set_parameters(
    request: service_pb2.ModelInferRequest,
    options: Mapping[str, OptionValue],
    timeout_s: float | None,
    supersede_key: str | None,
) -> None:
    """Set the fields of a request except its tensors; arguments as in `build_request`."""
    for name, value in options.items():
        set_parameter(request, name, value)
    if supersede_key is not None:
        set_parameter(request, SUPERSEDE_KEY, supersede_key)
    if timeout_s is not None:
        request.parameters["timeout"].int64_param = max(1, round(timeout_s * 1e6))


def set_parameter(request: service_pb2.ModelInferRequest, name: str, value: OptionValue) -> None:
    """Set a request parameter by the type of its value, which may be a number of numpy.

    Lists are sent as JSON strings.
    """
    if name in _RESERVED or name.startswith("triton_"):
        raise InvalidCallError(f"{name!r} is a parameter of Triton itself, not a decoding option")
    if not is_unicode(name):
        raise InvalidCallError(f"{name!r} cannot be the name of an option: it is not valid Unicode")
    parameter = request.parameters[name]
    try:
        if isinstance(value, bool | np.bool_):
            parameter.bool_param = bool(value)
        elif isinstance(value, Integral):
            parameter.int64_param = int(value)
        elif isinstance(value, Real):
            parameter.double_param = float(value)
        elif isinstance(value, list | tuple | np.ndarray):
            parameter.string_param = json.dumps(value, default=_plain)
        else:
            parameter.string_param = value  # protobuf raises if it is not a string
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidCallError(
            f"option {name!r} is {value!r}; a bool, an integer of 64 bits, a float, a string of "
            "Unicode characters, or a list of these can be sent"
        ) from error


def _plain(value: object) -> object:
    """Convert a number or array of numpy for json."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError


def add_strings(
    request: service_pb2.ModelInferRequest, name: str, shape: list[int], values: Sequence[str]
) -> None:
    """Add one tensor of strings."""
    try:
        data = [value.encode() for value in values]
    except UnicodeEncodeError as error:
        raise InvalidCallError(f"{name} is not valid Unicode: {error}") from error
    request.inputs.add(name=name, datatype="BYTES", shape=shape)
    request.raw_input_contents.append(
        b"".join(len(value).to_bytes(4, "little") + value for value in data)
    )


def check_declared(wanted: Sequence[str], model: Declared) -> None:
    """Check that the model has the outputs that are read."""
    missing = [name for name in wanted if name not in model.outputs]
    if missing:
        raise InvalidCallError(
            f"model {model.model!r} does not declare {', '.join(missing)}; without it, "
            "num_hypotheses, return_scores, return_alignments, quality and on_doubt cannot come "
            "back in: declare it in config.pbtxt, or leave the option out"
        )


def require_kind(model: Declared, *, takes_text: bool) -> None:
    """Raise if the model was replaced by one of another kind; the next call connects to it."""
    if model.takes_text is not takes_text:
        kind = "text" if model.takes_text else "token ids"
        raise UnexpectedResponseError(
            f"model {model.model!r} was loaded again and takes {kind} now; send the call again"
        )
