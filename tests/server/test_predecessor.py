# SPDX-License-Identifier: Apache-2.0
"""Configs and clients of speechmatics/ctranslate2_triton_backend work unchanged.

On a machine without a GPU, after changing KIND_GPU and the float16 compute type only.
"""

from __future__ import annotations

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client

from ct2_triton.serve import TritonServer
from server import configs
from server.conftest import LoadModel
from server.helpers import Connection, Ids, Reference, sentences
from support.tiny import tiny_engine_model

pytestmark = pytest.mark.server

IDS = configs.entry("input", "INPUT_IDS", "TYPE_INT32", "[ -1 ]", configs.RAGGED)
PREFIX = configs.entry("input", "TARGET_PREFIX", "TYPE_INT32", "[ -1 ]", configs.RAGGED)
OUTPUT = configs.entry("output", "OUTPUT_IDS", "TYPE_INT32", "[ -1 ]")
CPU = "instance_group [{ kind: KIND_CPU, count: 1 }]\n"
BATCHING = "dynamic_batching { max_queue_delay_microseconds: 5000 }\n"

MINIMAL = configs.BACKEND + "max_batch_size: 128\n" + IDS + OUTPUT + CPU + BATCHING
OPUS_MT = MINIMAL + configs.parameters(
    compute_type="float32", max_decoding_length_multiple="2", beam_size="4"
)
M2M100 = (
    configs.BACKEND
    + "max_batch_size: 64\n"
    + IDS
    + PREFIX
    + OUTPUT
    + CPU
    + BATCHING
    + configs.parameters(
        compute_type="float32",
        max_decoding_length_multiple="2",
        beam_size="5",
        repetition_penalty="1.5",
    )
)


def test_the_minimal_config(load: LoadModel, connection: Connection, reference: Reference) -> None:
    """The client sends one row, [1, n], and reads OUTPUT_IDS."""
    model = load('name: "minimal"\n' + MINIMAL, name="minimal")
    for row, _ in sentences(reference, 3):
        answer = connection.infer(model, [row])
        assert answer["OUTPUT_IDS"].tolist() == [reference.translate(row)]


def test_the_opus_mt_example(load: LoadModel, connection: Connection) -> None:
    marian = tiny_engine_model("marian")
    reference = Reference(marian)
    model = load(OPUS_MT, engine_model=marian)
    for row in ([40, 50, 60, 70, 0], [400, 0], [7, 300, 21, 99, 5, 5, 612, 0]):
        expected = reference.translate(row, beam_size=4, max_decoding_length=2 * len(row))
        assert connection.infer(model, [row])["OUTPUT_IDS"].tolist() == [expected]


@pytest.fixture
def m2m100_model(load: LoadModel) -> str:
    return load(M2M100)


def m2m100_expected(reference: Reference, row: Ids, prefix: Ids) -> Ids:
    return reference.translate(
        row, prefix, beam_size=5, repetition_penalty=1.5, max_decoding_length=2 * len(row)
    )


def test_the_m2m100_example(
    m2m100_model: str, connection: Connection, reference: Reference
) -> None:
    """INPUT_IDS [1, n] and TARGET_PREFIX [1, k], all requests at once, as its client sends them."""
    rows = sentences(reference, 16)
    pending = [connection.start(m2m100_model, [row], [prefix]) for row, prefix in rows]
    for answer, (row, prefix) in zip(pending, rows, strict=True):
        expected = m2m100_expected(reference, row, prefix)
        assert answer.get_result().as_numpy("OUTPUT_IDS").tolist() == [expected]


def test_both_protocols(m2m100_model: str, server: TritonServer, reference: Reference) -> None:
    row, prefix = sentences(reference, 1)[0]
    expected = m2m100_expected(reference, row, prefix)
    for module, url in (
        (grpc_client, server.grpc_url),
        (http_client, server.http_url.removeprefix("http://")),
    ):
        client = module.InferenceServerClient(url=url)
        inputs = []
        for name, ids in (("INPUT_IDS", row), ("TARGET_PREFIX", prefix)):
            inputs.append(module.InferInput(name, [1, len(ids)], "INT32"))
            inputs[-1].set_data_from_numpy(np.array([ids], np.int32))
        outputs = [module.InferRequestedOutput("OUTPUT_IDS")]
        answer = client.infer(model_name=m2m100_model, inputs=inputs, outputs=outputs)
        assert answer.as_numpy("OUTPUT_IDS").tolist() == [expected]
        client.close()
