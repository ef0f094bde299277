# SPDX-License-Identifier: Apache-2.0
"""Requests over HTTP: JSON, and Triton's binary extension, for inputs and outputs."""

from __future__ import annotations

import http.client
import json
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tritonclient.utils import deserialize_bytes_tensor, triton_to_np_dtype

from reliability.fuzz_judge import Reply
from reliability.fuzz_request import Request, Tensor

_TIMEOUT_S = 120
LENGTH_HEADER = "Inference-Header-Content-Length"
_CODES = {
    200: "OK",
    400: "INVALID_ARGUMENT",
    404: "NOT_FOUND",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
}


@dataclass
class HttpMessage:
    """A POST request, ready to be sent."""

    path: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


def to_message(
    request: Request, request_id: str, chooser: random.Random, *, json_only: bool = False
) -> HttpMessage:
    """The HTTP request; each tensor goes as JSON or as bytes, and likewise for the outputs."""
    all_binary = chooser.random() < 0.4
    head: dict[str, Any] = {"id": request_id, "inputs": []}
    tail = b""
    for tensor in request.tensors:
        entry = {"name": tensor.name, "datatype": tensor.datatype, "shape": tensor.shape}
        if not json_only and (all_binary or chooser.random() < 0.2):
            raw = tensor.data.tobytes()
            entry["parameters"] = {"binary_data_size": len(raw)}
            tail += raw
        else:
            entry["data"] = _json_data(tensor, chooser)
        head["inputs"].append(entry)
    if request.parameters:
        head["parameters"] = dict(request.parameters)
    if request.outputs is not None:
        head["outputs"] = [_wanted(name, chooser) for name in request.outputs]
    elif chooser.random() < 0.5:
        head.setdefault("parameters", {})["binary_data_output"] = True
    text = json.dumps(head).encode()
    version = f"/versions/{request.version}" if request.version else ""
    message = HttpMessage(f"/v2/models/{request.model}{version}/infer", text + tail)
    if tail or (not json_only and chooser.random() < 0.1):
        message.headers[LENGTH_HEADER] = str(len(text))
    return message


def _wanted(name: str, chooser: random.Random) -> dict[str, Any]:
    if chooser.random() < 0.5:
        return {"name": name, "parameters": {"binary_data": True}}
    return {"name": name}


def _json_data(tensor: Tensor, chooser: random.Random) -> Any:
    nested = (
        tensor.data.reshape(tensor.shape) if tensor.data.size == np.prod(tensor.shape) else None
    )
    if nested is not None and chooser.random() < 0.5:
        return nested.tolist()
    return tensor.data.ravel().tolist()


class HttpSender:
    """One connection, for one thread."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(
            url.removeprefix("http://"), timeout=_TIMEOUT_S
        )

    def send(self, message: HttpMessage) -> Reply:
        """Sends and waits. A connection that the server closed is opened again for the next."""
        self._connection.request("POST", message.path, message.body, message.headers)
        response = self._connection.getresponse()
        body = response.read()
        code = _CODES.get(response.status, str(response.status))
        if code != "OK":
            return Reply(code, _error_text(body))
        length = response.getheader(LENGTH_HEADER)
        return Reply("OK", outputs=_outputs(body, int(length) if length else len(body)))

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


def _error_text(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace")


def _outputs(body: bytes, head_length: int) -> dict[str, np.ndarray[Any, Any]]:
    at = head_length
    outputs = {}
    for entry in json.loads(body[:head_length])["outputs"]:
        size = entry.get("parameters", {}).get("binary_data_size")
        if size is None:
            data = entry["data"]
            is_text = entry["datatype"] == "BYTES"
            array = np.array(data, object if is_text else triton_to_np_dtype(entry["datatype"]))
        else:
            raw, at = body[at : at + size], at + size
            if entry["datatype"] == "BYTES":
                array = np.array([text.decode() for text in deserialize_bytes_tensor(raw)], object)
            else:
                array = np.frombuffer(raw, triton_to_np_dtype(entry["datatype"]))
        outputs[entry["name"]] = array.reshape(entry["shape"])
    return outputs
