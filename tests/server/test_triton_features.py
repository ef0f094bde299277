# SPDX-License-Identifier: Apache-2.0
"""Features of Triton that meet a backend which answers after Execute has returned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from server import configs
from server.conftest import LoadModel
from server.helpers import Connection, Reference, sentences, tensor
from support.repository import write_model

pytestmark = pytest.mark.server

LIMIT = {"max_decoding_length": 8}


def warmup() -> str:
    inputs = "".join(
        f'inputs {{ key: "{name}" value {{ data_type: TYPE_INT32 dims: [4] zero_data: true }} }}'
        for name in ("INPUT_IDS", "TARGET_PREFIX")
    )
    return f'model_warmup {{ name: "w" batch_size: 3 count: 2 {inputs} }}'


def test_warmup(load: LoadModel, connection: Connection, reference: Reference) -> None:
    """Its requests are answered before the model is ready."""
    model = load(configs.plain(warmup(), **LIMIT))
    row, prefix = sentences(reference, 1)[0]
    assert connection.translate(model, row, prefix) == reference.translate(row, prefix, **LIMIT)


ENSEMBLE = """
platform: "ensemble"
max_batch_size: 256
input { name: "TEXT" data_type: TYPE_INT32 dims: [-1] }
input { name: "LANGUAGE" data_type: TYPE_INT32 dims: [-1] }
output { name: "TRANSLATION" data_type: TYPE_INT32 dims: [-1] }
ensemble_scheduling { step {
  model_name: "nllb" model_version: -1
  input_map { key: "INPUT_IDS" value: "TEXT" }
  input_map { key: "TARGET_PREFIX" value: "LANGUAGE" }
  output_map { key: "OUTPUT_IDS" value: "TRANSLATION" }
} }
"""


def test_a_step_of_an_ensemble(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    """Only the output that is mapped is asked for; parameters reach the step."""
    model = load(ENSEMBLE, name="ensemble")
    for row, prefix in sentences(reference, 4):
        inputs = [tensor("TEXT", [row]), tensor("LANGUAGE", [prefix])]
        answer = connection.send(model, inputs, **LIMIT).get_result()
        expected = reference.translate(row, prefix, **LIMIT)
        assert answer.as_numpy("TRANSLATION").tolist() == [expected]
    with pytest.raises(Exception, match="unknown parameter"):
        connection.send(model, inputs, nonsense=1).get_result()


def test_a_trace_of_each_request(
    make_server: Any, tmp_path: Path, nllb_engine_model: Path, reference: Reference
) -> None:
    """Its times come from the statistics, and stand in the order of the work."""
    write_model(tmp_path / "models", "nllb", nllb_engine_model)
    file = tmp_path / "trace.json"
    settings = ["mode=triton", "rate=1", "level=TIMESTAMPS", f"triton,file={file}"]
    server = make_server(
        tmp_path / "models", server_arguments=[f"--trace-config={s}" for s in settings]
    )
    connection = Connection(server.grpc_url)
    for row, prefix in sentences(reference, 5):
        connection.translate("nllb", row, prefix, **LIMIT)
    connection.close()
    server.stop()
    times: dict[int, dict[str, int]] = {}
    for entry in json.loads(file.read_text()):
        for stamp in entry.get("timestamps", ()):
            times.setdefault(entry["id"], {})[stamp["name"]] = stamp["ns"]
    order = ["QUEUE_START", "COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START"]
    order += ["COMPUTE_END", "REQUEST_END"]
    assert len(times) == 5
    for stamps in times.values():
        in_order = [stamps[name] for name in order]
        assert in_order == sorted(in_order)
