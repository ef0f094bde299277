# SPDX-License-Identifier: Apache-2.0
"""Encoded requests damaged on the wire, with the code and the words of the refusal."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from reliability.fuzz_http import LENGTH_HEADER, HttpMessage
from reliability.fuzz_request import Answer

# None: the damage does no harm, the right answer must come back.
GrpcDamage = Callable[[Any, random.Random], Answer | None]
HttpDamage = Callable[[HttpMessage, random.Random], Answer | None]

_HUGE = (2**62, 2**63 - 1, 2**40)


def _refused(pattern: str) -> Answer:
    return Answer("INVALID_ARGUMENT", pattern)


def _not_understood() -> Answer:
    """Triton answers 500, not 400, where it cannot read the JSON at all."""
    return Answer("INVALID_ARGUMENT|INTERNAL", "parse|header size|[Ii]nput")


# gRPC: each changes a ModelInferRequest whose tensors are raw bytes.


def lost_bytes(message: Any, chooser: random.Random) -> Answer:
    """A tensor ends early."""
    i = chooser.randrange(len(message.raw_input_contents))
    raw = message.raw_input_contents[i]
    message.raw_input_contents[i] = raw[: chooser.randrange(len(raw))] if raw else b"x"
    return _refused("byte size|expected")


def surplus_bytes(message: Any, chooser: random.Random) -> Answer:
    """A tensor goes on behind its end."""
    i = chooser.randrange(len(message.raw_input_contents))
    message.raw_input_contents[i] += bytes(chooser.choice((1, 4, 4096)))
    return _refused("byte size|expected")


def lost_tensor(message: Any, chooser: random.Random) -> Answer:
    """An input without its bytes."""
    del message.raw_input_contents[chooser.randrange(len(message.raw_input_contents))]
    return _refused("raw_input_contents|input|contents|byte size")


def surplus_tensor(message: Any, chooser: random.Random) -> None:
    """Bytes without their input: Triton ignores them."""
    message.raw_input_contents.append(bytes(chooser.choice((0, 4, 400))))


def both_contents(message: Any, chooser: random.Random) -> Answer:
    """Raw bytes and typed contents for the same input."""
    message.inputs[0].contents.int_contents.extend([1, 2, 3])
    return _refused("contents field")


def impossible_shape(message: Any, chooser: random.Random) -> Answer:
    """A negative dimension, or one whose bytes overflow 64 bits."""
    tensor = chooser.choice(list(message.inputs))
    for i in range(len(tensor.shape)):
        tensor.shape[i] = chooser.choice((-1, -(2**63), *_HUGE))
    return _refused("input|shape|data-type|dimension|bytes")


def unknown_datatype(message: Any, chooser: random.Random) -> Answer:
    """A type that does not exist."""
    chooser.choice(list(message.inputs)).datatype = chooser.choice(("", "INT31", "BF16", "BYTES"))
    return _refused("input|shape|data-type|dimension|bytes")


def strange_parameter(message: Any, chooser: random.Random) -> Answer:
    """A parameter without a value, or one of Triton's own with a value of another type."""
    if chooser.random() < 0.5:
        message.parameters["beam_size"].Clear()
    else:
        message.parameters[chooser.choice(("timeout", "priority"))].string_param = "soon"
    return _refused("parameter|beam_size|timeout|priority")


GRPC_DAMAGES: list[GrpcDamage] = [
    lost_bytes,
    surplus_bytes,
    lost_tensor,
    surplus_tensor,
    both_contents,
    impossible_shape,
    unknown_datatype,
    strange_parameter,
]

# HTTP: each changes a message whose body is all JSON.


def cut_body(message: HttpMessage, chooser: random.Random) -> Answer:
    """The JSON ends early; the length header agrees with it."""
    message.body = message.body[: chooser.randrange(1, len(message.body))]
    return _not_understood()


def no_json(message: HttpMessage, chooser: random.Random) -> Answer:
    """Something else than a JSON object."""
    bodies = (b"", b"[]", b"7", b"null", b'"x"', b"{" * 500, b"\xff\xfe", b"{}", b'{"inputs":7}')
    message.body = chooser.choice(bodies)
    return _not_understood()


def wrong_head_length(message: HttpMessage, chooser: random.Random) -> Answer:
    """A length of the JSON part that is no length, or not this body's."""
    wrong = ("-1", "x", "1e3", str(len(message.body) + 1), str(2**63), "99999999999999999999", "3")
    message.headers[LENGTH_HEADER] = chooser.choice(wrong)
    return _not_understood()


def damaged_entry(message: HttpMessage, chooser: random.Random) -> Answer:
    """One field of one input is missing, or of another kind.

    Not 2**40 among INT32 data: Triton's JSON reader keeps the lower 32 bits without a word.
    """
    head = json.loads(message.body)
    filled = [entry for entry in head["inputs"] if 0 not in entry["shape"]]
    if not filled:
        return cut_body(message, chooser)
    entry = chooser.choice(filled)
    field = chooser.choice(("name", "datatype", "shape", "data"))
    if chooser.random() < 0.4:
        del entry[field]
    else:
        wrong: dict[str, list[Any]] = {
            "name": [7, None, "", ["INPUT_IDS"]],
            "datatype": [7, None, "", "INT31", "BYTES", "FP32"],
            "shape": [7, None, "1,4", [-1, 4], [1.5, 2], ["1", "4"], list(_HUGE[:2])],
            "data": [7, None, "1,2", ["a"], [1.5], [2**70], [None], {"a": 1}],
        }
        entry[field] = chooser.choice(wrong[field])
    message.body = json.dumps(head).encode()
    return _not_understood()


def lying_binary_size(message: HttpMessage, chooser: random.Random) -> Answer:
    """A size of the binary part that is not its size."""
    head = json.loads(message.body)
    entry = chooser.choice(head["inputs"])
    size = chooser.choice((-1, 1, 3, 2**31, 2**62, 2**63 - 1, "4", None, 10**6))
    del entry["data"]
    entry["parameters"] = {"binary_data_size": size}
    text = json.dumps(head).encode()
    message.body = text + bytes(chooser.choice((0, 1, 2, 5)))
    message.headers[LENGTH_HEADER] = str(len(text))
    return _not_understood()


def array_parameter(message: HttpMessage, chooser: random.Random) -> Answer:
    """A parameter that is an array or an object: Triton takes neither."""
    head = json.loads(message.body)
    value = chooser.choice(([1], {"a": 1}, None))
    head.setdefault("parameters", {})["end_token"] = value
    message.body = json.dumps(head).encode()
    return _refused("end_token")


HTTP_DAMAGES: list[HttpDamage] = [
    cut_body,
    no_json,
    wrong_head_length,
    damaged_entry,
    lying_binary_size,
    array_parameter,
]
