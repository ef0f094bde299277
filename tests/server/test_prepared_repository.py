# SPDX-License-Identifier: Apache-2.0
"""A repository that ct2-prepare filled, with its defaults, loads in a fresh server and answers."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from tritonclient.grpc import InferenceServerClient, InferInput
from tritonclient.utils import InferenceServerException

from ct2_triton.prepare import PrepareOptions, prepare
from support.prepared import prepared_once
from support.servers import MakeServer
from support.tiny import tiny_checkpoint
from tiny_models import FAMILIES

pytestmark = pytest.mark.server


def tensor(name: str, ids: list[int]) -> InferInput:
    value = np.array([ids], dtype=np.int32)
    made = InferInput(name, value.shape, "INT32")
    made.set_data_from_numpy(value)
    return made


def test_every_family_loads_and_answers(tmp_path: Path, make_server: MakeServer) -> None:
    models = [prepared_once(tiny_checkpoint(family), family, 4) for family in FAMILIES]
    for model in models:
        shutil.copytree(model.directory.parent, tmp_path, dirs_exist_ok=True)
    server = make_server(tmp_path)
    client = InferenceServerClient(server.grpc_url)
    for model in models:
        rules = model.rules
        source = rules.source_language("en") if rules.source_required else None
        target = rules.target_language("de") if rules.target_required else None
        prefix = rules.target_prefix(target)
        inputs = [tensor("INPUT_IDS", rules.input_ids([9, 10, 11], source, target))]
        inputs += [tensor("TARGET_PREFIX", prefix)] if prefix else []
        output = client.infer(model.name, inputs).as_numpy("OUTPUT_IDS")[0].tolist()
        echoed = rules.prefix_length(target)
        assert output[:echoed] == prefix[len(prefix) - echoed :]
        assert len(output) > echoed
        assert all(0 <= token < rules.vocabulary_size for token in output)
    client.close()


def test_damaged_files_fail_a_load_that_asks_for_a_check(
    tmp_path: Path, make_server: MakeServer
) -> None:
    """A flipped byte in the weights, a file that is gone, no manifest; mended, the model loads."""
    model = prepare(
        PrepareOptions("demo", tmp_path, name="demo", settings={"verify_files": "true"})
    )
    weights = model.directory / "1" / "model" / "model.bin"
    vocabulary = weights.parent / "shared_vocabulary.json"
    manifest = model.directory / "ct2_model.json"
    with model.config_file.open("a") as config:
        config.write("# edited, as it may be\n")
    server = make_server(tmp_path, server_arguments=["--model-control-mode=explicit"])
    client = InferenceServerClient(server.grpc_url)
    good = weights.read_bytes()
    weights.write_bytes(good[:5000] + bytes([good[5000] ^ 1]) + good[5001:])
    with pytest.raises(InferenceServerException, match=r"model\.bin has changed"):
        client.load_model("demo")
    weights.write_bytes(good)
    for path, text in ((vocabulary, "vocabulary.json is missing"), (manifest, "ct2_model.json is")):
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(InferenceServerException, match=text):
            client.load_model("demo")
        path.write_bytes(content)
    client.load_model("demo")
    assert client.is_model_ready("demo")
