# SPDX-License-Identifier: Apache-2.0
"""Texts of config.pbtxt, written by hand: the backend must not depend on ct2-prepare."""

from __future__ import annotations

import json
from typing import Any


def entry(kind: str, name: str, data_type: str, dims: str, more: str = "") -> str:
    """One input or output."""
    return f'{kind} {{ name: "{name}" data_type: {data_type} dims: {dims} {more} }}\n'


def parameters(**values: Any) -> str:
    """The parameters of a model; lists become JSON, booleans are written in lower case."""
    text = ""
    for name, value in values.items():
        written = value if isinstance(value, str) else json.dumps(value)
        written = written.replace('"', '\\"')
        text += f'parameters {{ key: "{name}" value {{ string_value: "{written}" }} }}\n'
    return text


BACKEND = 'backend: "ctranslate2"\n'
BATCHING = "max_batch_size: 256\ndynamic_batching {}\n"
RAGGED = "allow_ragged_batch: true"


def full(
    id_type: str = "TYPE_INT32", more: str = "", batching: str = BATCHING, **values: Any
) -> str:
    """A config that declares every tensor of the protocol."""
    return (
        BACKEND
        + batching
        + entry("input", "INPUT_IDS", id_type, "[-1]", RAGGED)
        + entry("input", "TARGET_PREFIX", id_type, "[-1]", RAGGED + " optional: true")
        + entry("input", "DRAFT_IDS", id_type, "[-1]", RAGGED + " optional: true")
        + entry("input", "INPUT_LENGTHS", "TYPE_INT32", "[1]", "optional: true")
        + entry("input", "PREFIX_LENGTHS", "TYPE_INT32", "[1]", "optional: true")
        + entry("output", "OUTPUT_IDS", id_type, "[-1]")
        + entry("output", "OUTPUT_LENGTHS", "TYPE_INT32", "[1]")
        + entry("output", "HYPOTHESES", id_type, "[-1, -1]")
        + entry("output", "HYPOTHESIS_LENGTHS", "TYPE_INT32", "[-1]")
        + entry("output", "SCORES", "TYPE_FP32", "[-1]")
        + entry("output", "FINISH_REASON", "TYPE_STRING", "[-1]")
        + more
        + parameters(**values)
    )


def plain(more: str = "", batching: str = BATCHING, **values: Any) -> str:
    """A config with INPUT_IDS, a required TARGET_PREFIX, and OUTPUT_IDS alone."""
    return (
        BACKEND
        + batching
        + entry("input", "INPUT_IDS", "TYPE_INT32", "[-1]", RAGGED)
        + entry("input", "TARGET_PREFIX", "TYPE_INT32", "[-1]", RAGGED)
        + entry("output", "OUTPUT_IDS", "TYPE_INT32", "[-1]")
        + more
        + parameters(**values)
    )
