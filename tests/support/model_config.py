# SPDX-License-Identifier: Apache-2.0
"""Model configurations as JSON text, the way Triton hands them to a backend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_DATA = Path(__file__).resolve().parents[1] / "core" / "data"


def tensor(
    name: str, data_type: str = "TYPE_INT32", dims: tuple[int, ...] = (-1,)
) -> dict[str, Any]:
    """One declared tensor; ragged."""
    return {"name": name, "data_type": data_type, "dims": list(dims), "allow_ragged_batch": True}


def config(**changes: Any) -> dict[str, Any]:
    """A config that loads, with members replaced; `parameters` are given as plain strings."""
    base = {
        "name": "m",
        "backend": "ctranslate2",
        "max_batch_size": 8,
        "input": [tensor("INPUT_IDS"), tensor("TARGET_PREFIX")],
        "output": [tensor("OUTPUT_IDS")],
        "instance_group": [{"name": "m_0", "kind": "KIND_CPU", "count": 1}],
        "dynamic_batching": {},
    }
    parameters = changes.pop("parameters", {})
    values = {name: {"string_value": value} for name, value in parameters.items()}
    return base | changes | {"parameters": values}


def config_json(**changes: Any) -> str:
    """The same as text."""
    return json.dumps(config(**changes))


def recorded(name: str) -> str:
    """What tritonserver 2.51 gave a backend; see core/data/README.md."""
    return (_DATA / f"{name}.json").read_text(encoding="utf-8")


def pbtxt_as_json(name: str) -> str:
    """A config.pbtxt of core/data through protobuf's own JSON, with 64-bit integers as strings."""
    from google.protobuf import json_format, text_format
    from tritonclient.grpc import model_config_pb2

    text = (_DATA / f"{name}.pbtxt").read_text(encoding="utf-8")
    message = text_format.Parse(text, model_config_pb2.ModelConfig())
    return json_format.MessageToJson(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
