# SPDX-License-Identifier: Apache-2.0
"""Rows that need a call of CTranslate2: its weights come and go, or the operator refuses calls."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ct2_triton.serve import TritonServer
from server import configs
from server.conftest import LoadModel
from server.helpers import Connection, Reference, sentences
from support.metrics import fresh, scrape
from support.tiny import tiny_engine_model
from support.waiting import wait_until

pytestmark = pytest.mark.server

LIMIT = {"max_decoding_length": 24}
PENALIZED = {**LIMIT, "beam_size": 4, "coverage_penalty": 0.5}
GREEDY = {**LIMIT, "beam_size": 1}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Files whose weights no other model of the server has."""
    return Path(shutil.copytree(tiny_engine_model("nllb"), tmp_path / "model"))


def test_the_weights_of_calls_come_and_go(
    load: LoadModel,
    connection: Connection,
    server: TritonServer,
    reference: Reference,
    files: Path,
) -> None:
    model = load(configs.plain(compute_type="float32", calls_idle_s=0), "coming", files)
    [(row, prefix)] = sentences(reference, 1)
    wait_until(lambda: scrape(server, model)["ct2_weight_bytes"] > 0)
    weights = scrape(server, model)["ct2_weight_bytes"]
    expected = reference.hypotheses(row, prefix, **PENALIZED)[0]
    assert connection.translate(model, row, prefix, **PENALIZED) == expected
    wait_until(lambda: scrape(server, model)["ct2_call_loads_total"] == 1)
    # What was published before may be of the time before the call.
    wait_until(lambda: fresh(server, model)["ct2_weight_bytes"] == weights)
    assert connection.translate(model, row, prefix, **PENALIZED) == expected
    wait_until(lambda: scrape(server, model)["ct2_call_loads_total"] == 2)
    answer = connection.translate(model, row, prefix, **GREEDY)
    assert answer == reference.hypotheses(row, prefix, **GREEDY)[0]
    assert scrape(server, model)["ct2_call_loads_total"] == 2


def test_a_row_that_needs_a_refused_call(
    load: LoadModel, connection: Connection, reference: Reference, files: Path
) -> None:
    model = load(configs.plain(compute_type="float32", calls="refuse"), "refusing", files)
    [(row, prefix)] = sentences(reference, 1)
    message = connection.refusal(model, [row], [prefix], **PENALIZED)
    assert "coverage_penalty is not 0" in message
    assert 'calls is "refuse"' in message
    answer = connection.translate(model, row, prefix, **GREEDY)
    assert answer == reference.hypotheses(row, prefix, **GREEDY)[0]
