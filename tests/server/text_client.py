# SPDX-License-Identifier: Apache-2.0
"""Requests of text, as any client of Triton would make them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tritonclient.utils import InferenceServerException

from server.helpers import Connection, Pending, tensor

Texts = str | bytes | Sequence[str | bytes]


def strings(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    """A matrix of BYTES."""
    rows = [[_bytes(value) for value in row] for row in values]
    return np.array(rows, dtype=np.object_).reshape(len(rows), len(rows[0]) if rows else 0)


def send_text(
    connection: Connection,
    texts: Texts,
    targets: Sequence[str] | None,
    source: str | None = "en",
    *,
    model: str = "demo-text",
    outputs: Sequence[str] | None = None,
    more: Sequence[Any] = (),
    **parameters: Any,
) -> Pending:
    """Sends texts, each into the same targets; None leaves an input out."""
    each = [texts] if isinstance(texts, str | bytes) else list(texts)
    inputs = [tensor("text_input", strings([[text] for text in each]))]
    if source is not None:
        inputs.append(tensor("source_language", strings([[source]] * len(each))))
    if targets is not None:
        inputs.append(tensor("target_languages", strings([targets] * len(each))))
    inputs += more
    return connection.send(model, inputs, outputs, **parameters)


def answer(pending: Pending) -> dict[str, list[Any]]:
    """Waits; gives each output as nested lists, with text in place of bytes."""
    result = pending.get_result()
    outputs = {}
    for output in result.get_response().outputs:
        values = result.as_numpy(output.name).tolist()
        outputs[output.name] = _text(values)
    return outputs


def translated(*args: Any, **kwargs: Any) -> list[list[str]]:
    """Sends texts and gives their translations."""
    return answer(send_text(*args, outputs=["text_output"], **kwargs))["text_output"]


def refusal(*args: Any, **kwargs: Any) -> str:
    """Sends texts that must be refused as the client's mistake; gives the message."""
    try:
        got = answer(send_text(*args, **kwargs))
    except InferenceServerException as error:
        if error.status() == "StatusCode.INVALID_ARGUMENT":
            return str(error.message())
        raise
    raise AssertionError(f"accepted, answered {got}")


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _text(value: Any) -> Any:
    if isinstance(value, list):
        return [_text(one) for one in value]
    return value.decode() if isinstance(value, bytes) else value
