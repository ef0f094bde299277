# SPDX-License-Identifier: Apache-2.0
"""Models on a GPU, held against CTranslate2 itself on that GPU. Skipped where there is none."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ct2_triton.serve import TritonServer
from ct2_triton.serve.machine import count_gpus
from server import configs
from server.conftest import LoadFailure, LoadModel
from server.helpers import Connection, Ids, Reference, sentences
from server.test_metrics import settled
from server.test_options import LIMIT, OPTIONS, hypotheses_of, on_the_wire
from support.tiny import TinyOptions, tiny_engine_model

pytestmark = [
    pytest.mark.server,
    pytest.mark.gpu,
    pytest.mark.skipif(count_gpus() == 0, reason="no GPU here"),
]

SLACK_MIB = 64
"""What a driver may keep of a model that is gone; its context alone takes some hundreds."""


def on_gpu(count: int = 1, index: int = 0, **values: Any) -> str:
    """A config with instances on a GPU."""
    group = f"instance_group {{ count: {count} kind: KIND_GPU gpus: [ {index} ] }}\n"
    return configs.full(more=group, **values)


def on_cpu(**values: Any) -> str:
    """A config with an instance on the processor."""
    return configs.full(more="instance_group { kind: KIND_CPU }\n", **values)


@pytest.fixture(scope="module")
def model_that_ends() -> Path:
    """A trained model, whose choices are clear: rounding does not change them."""
    return tiny_engine_model("nllb", TinyOptions(train_steps=200, max_positions=128))


@pytest.fixture(scope="module")
def truth(model_that_ends: Path) -> Reference:
    """CTranslate2 itself with that model, on the GPU."""
    return Reference(model_that_ends, device="cuda")


def used_mib() -> int:
    """Memory in use on the first GPU."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return int(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]
    )


def expected_answers(truth: Reference, rows: list[tuple[Ids, Ids]]) -> list[Ids]:
    """What CTranslate2 gives for each row alone."""
    return [truth.translate(row, prefix, beam_size=1, **LIMIT) for row, prefix in rows]


@pytest.mark.parametrize("decoding", ["calls", "loop"])
@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_options(
    load: LoadModel,
    connection: Connection,
    truth: Reference,
    model_that_ends: Path,
    options: dict[str, Any],
    decoding: str,
) -> None:
    model = load(on_gpu(compute_type="float32", decoding=decoding), engine_model=model_that_ends)
    options = {**LIMIT, **options}
    for row, prefix in sentences(truth, 6):
        answer = connection.infer(model, [row], [prefix], outputs=None, **on_the_wire(options))
        expected = truth.run(row, prefix, **{**options, "return_scores": True})
        ids = [[truth.id(token) for token in h] for h in expected.hypotheses]
        assert hypotheses_of(answer) == ids
        np.testing.assert_allclose(answer["SCORES"][0], expected.scores, rtol=1e-3, atol=1e-4)


def test_models_and_instances_at_once_beside_one_on_the_processor(
    load: LoadModel, connection: Connection, truth: Reference, model_that_ends: Path
) -> None:
    models = [
        load(config, name, model_that_ends)
        for name, config in (
            ("one", on_gpu(compute_type="float32")),
            ("two", on_gpu(2, compute_type="float32")),
            ("threads", on_gpu(compute_type="float32", inter_threads=2)),
            ("loop", on_gpu(compute_type="float32", decoding="loop", calls="refuse")),
            ("loops", on_gpu(2, compute_type="float32", decoding="loop", calls="refuse")),
            ("processor", on_cpu(compute_type="float32")),
        )
    ]
    rows = sentences(truth, 24)
    expected = expected_answers(truth, rows)
    asked = [(model, *row) for row in rows for model in models]
    with ThreadPoolExecutor(32) as threads:
        answers = list(
            threads.map(lambda each: connection.translate(*each, beam_size=1, **LIMIT), asked)
        )
    for i, model in enumerate(models):
        assert answers[i :: len(models)] == expected, model


def test_rows_share_the_steps_of_a_loop(
    server: TritonServer, load: LoadModel, connection: Connection, truth: Reference,
    model_that_ends: Path,
) -> None:  # fmt: skip
    config = on_gpu(compute_type="float32", decoding="loop", return_scores=True)
    model = load(config, engine_model=model_that_ends)
    rows = sentences(truth, 24)
    with ThreadPoolExecutor(24) as threads:
        answers = list(
            threads.map(lambda row: connection.translate(model, *row, beam_size=1, **LIMIT), rows)
        )
    assert answers == expected_answers(truth, rows)
    found = settled(server, model, len(rows))
    assert 0 < found["ct2_loop_steps_total"] <= found["ct2_loop_step_rows_total"]


def test_without_an_instance_group_a_model_goes_to_the_gpu(
    load: LoadModel, connection: Connection, truth: Reference, model_that_ends: Path
) -> None:
    model = load(configs.plain(compute_type="float32"), engine_model=model_that_ends)
    (group,) = connection.raw.get_model_config(model).config.instance_group
    assert (group.kind, list(group.gpus)) == (group.KIND_GPU, list(range(count_gpus())))
    rows = sentences(truth, 3)
    answers = [connection.translate(model, *row, beam_size=1, **LIMIT) for row in rows]
    assert answers == expected_answers(truth, rows)


@pytest.mark.parametrize("decoding", ["calls", "loop"])
def test_memory_comes_back_after_an_unload(
    load: LoadModel, connection: Connection, truth: Reference, model_that_ends: Path, decoding: str
) -> None:
    model = load(on_gpu(compute_type="float32", decoding=decoding), engine_model=model_that_ends)
    rows = sentences(truth, 4)
    expected = expected_answers(truth, rows)
    used = []
    for _ in range(6):
        assert [connection.translate(model, *row, beam_size=1, **LIMIT) for row in rows] == expected
        used.append(used_mib())
        connection.raw.load_model(model)
    assert max(used) <= used[0] + SLACK_MIB, used


def test_a_gpu_that_is_not_there_is_refused_and_the_others_serve(
    load: LoadModel, load_failure: LoadFailure, connection: Connection, truth: Reference,
    model_that_ends: Path,
) -> None:  # fmt: skip
    absent = count_gpus() + 6
    assert str(absent) in load_failure(on_gpu(index=absent), "absent")
    model = load(on_gpu(compute_type="float32"), engine_model=model_that_ends)
    row, prefix = sentences(truth, 1)[0]
    (expected,) = expected_answers(truth, [(row, prefix)])
    assert connection.translate(model, row, prefix, beam_size=1, **LIMIT) == expected


def test_bad_rows_are_refused_and_good_ones_answered(
    load: LoadModel, connection: Connection, truth: Reference, model_that_ends: Path
) -> None:
    model = load(on_gpu(compute_type="float32"), engine_model=model_that_ends)
    row, prefix = sentences(truth, 1)[0]
    (expected,) = expected_answers(truth, [(row, prefix)])
    for bad in ([[-1, 2]], [[10**6, 2]], [[50] * 5000]):
        assert "INPUT_IDS" in connection.refusal(model, bad, [prefix])
        assert connection.translate(model, row, prefix, beam_size=1, **LIMIT) == expected


def test_more_candidates_than_a_gpu_sorts_are_refused(
    load: LoadModel, connection: Connection
) -> None:
    folder = tiny_engine_model("nllb", TinyOptions(vocab_size=9000))
    truth = Reference(folder, device="cuda")
    row, prefix = sentences(truth, 1)[0]
    (expected,) = expected_answers(truth, [(row, prefix)])
    model = load(on_gpu(compute_type="float32"), engine_model=folder)
    options = {**LIMIT, "beam_size": 1}
    refused = [
        ("sampling_topk", {"sampling_topk": 4097}),
        ("sampling_topk", {"sampling_topk": 8192, "sampling_topp": 0.9}),
        ("sampling_topp", {"sampling_topk": 0, "sampling_topp": 0.9}),
    ]
    for name, sampling in refused:
        said = connection.refusal(model, [row], [prefix], **options, **sampling)
        assert name in said
        assert "4096" in said
        assert connection.translate(model, row, prefix, **options) == expected
    for sampling in ({"sampling_topk": 4096, "sampling_topp": 0.9}, {"sampling_topk": 0}):
        assert connection.translate(model, row, prefix, **options, **sampling)
