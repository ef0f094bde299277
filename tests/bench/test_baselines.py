# SPDX-License-Identifier: Apache-2.0
"""The served baselines under load: right answers, real batches, and a bad request fails alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from bench.test_baseline_translators import mixed_rows
from ct2_triton.bench.comparison import _processes
from ct2_triton.bench.contenders import (
    Contender,
    ListContender,
    ServerCounts,
    TritonContender,
    make_contender,
)
from ct2_triton.bench.models.engine import EngineTranslator
from ct2_triton.bench.models.translator import Settings
from ct2_triton.bench.setup import MODEL, Ids, Row, Setup
from server.helpers import Connection
from support.tiny import tiny_checkpoint

pytestmark = pytest.mark.server

LIMIT = 40
ROWS = mixed_rows([(1205,), (1210,), (1220,)], 2, count=48)
UNKNOWN = Row((4, 9999, 2), (1205,))
SERVED = (
    "python-transformers-float32",
    "python-ctranslate2-float32",
    "python-transformers-threads-float32",
    "python-ctranslate2-workers-float32",
    "fastapi-transformers-float32",
    "fastapi-transformers-tuned-float32",
)


@dataclass(frozen=True)
class Outcome:
    """What one contender did with all rows at once, a bad one among them."""

    name: str
    answers: Sequence[Ids | BaseException]
    refusal: Ids | BaseException
    refused_option: str
    counts: ServerCounts | None
    processes: Sequence[int]


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Setup:
    folder = tmp_path_factory.mktemp("bench")
    return Setup(str(tiny_checkpoint("nllb")), folder, max_decoding_length=LIMIT, cores=2)


@pytest.fixture(scope="module")
def truth(setup: Setup) -> list[Ids]:
    """What CTranslate2 answers in this process."""
    folder = str(setup.prepared("float32").model_folder)
    translator = EngineTranslator(Settings(folder, max_decoding_length=LIMIT))
    return [tuple(ids) for ids in translator.translate(ROWS)]


@pytest.fixture(scope="module", params=SERVED)
def outcome(request: pytest.FixtureRequest, setup: Setup) -> Outcome:
    return asyncio.run(run(request.param, setup))


async def run(name: str, setup: Setup) -> Outcome:
    if name.startswith("fastapi"):
        setup = replace(setup, models=("first", "second"))  # which get every other row
    rows = [
        Row(row.input_ids, row.target_prefix, setup.models[i % len(setup.models)])
        for i, row in enumerate([*ROWS, UNKNOWN])
    ]
    async with make_contender(name, setup) as contender:
        processes = [one.pid for one in _processes(contender.pid)]
        *answers, refusal = await asyncio.gather(
            *map(contender.translate, rows), return_exceptions=True
        )
        counts = await counts_of(contender, len(rows))
        refused_option = ""
        if isinstance(contender, TritonContender):
            refused_option = await asyncio.to_thread(ask_for_a_beam, contender)
    return Outcome(name, answers, refusal, refused_option, counts, processes)


async def counts_of(contender: Contender, rows: int) -> ServerCounts | None:
    """Triton counts the last batches after it has answered them."""
    for _ in range(3000):
        counts = await contender.server_counts()
        if counts is None or counts.rows >= rows:
            return counts
        await asyncio.sleep(0.02)
    raise AssertionError(f"never counted: {counts}")


def ask_for_a_beam(contender: TritonContender) -> str:
    connection = Connection(contender.server.grpc_url)
    refusal = connection.refusal(MODEL, [[4, 5, 2]], [[1205]], beam_size=2)
    connection.close()
    return refusal


def test_mixed_lengths_and_languages_at_once_are_answered_as_by_the_engine(
    outcome: Outcome, truth: list[Ids]
) -> None:
    assert outcome.answers == truth
    assert {len(ids) for ids in truth} == {LIMIT}


def test_a_malformed_row_fails_alone(outcome: Outcome) -> None:
    """The other rows of its batch were answered: see the test above."""
    assert isinstance(outcome.refusal, Exception)
    if outcome.counts is None:
        assert "400" in str(outcome.refusal)
    else:
        assert "id 9999 is outside the vocabulary" in str(outcome.refusal)


@pytest.mark.parametrize("outcome", SERVED[:4], indirect=True)
def test_the_python_backend_forms_batches_of_rows_that_waited(outcome: Outcome) -> None:
    assert outcome.counts is not None
    assert outcome.counts.rows == len(ROWS) + 1
    assert outcome.counts.batches <= len(ROWS) / 2


@pytest.mark.parametrize("outcome", SERVED[:4], indirect=True)
def test_the_python_backend_refuses_options_instead_of_ignoring_them(outcome: Outcome) -> None:
    assert 'takes no options with a request: {"beam_size":2}' in outcome.refused_option


def test_there_are_as_many_processes_as_the_settings_say_and_none_is_left(outcome: Outcome) -> None:
    processes = {
        "python-transformers-float32": 1 + 2,  # tritonserver, two instances
        "python-ctranslate2-float32": 1 + 2,
        "python-transformers-threads-float32": 1 + 1,
        "python-ctranslate2-workers-float32": 1 + 1,
        "fastapi-transformers-float32": 1 + 1,
        "fastapi-transformers-tuned-float32": 1 + 2,
    }
    assert len(outcome.processes) == processes[outcome.name]
    assert not [pid for pid in outcome.processes if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize("name", ["ctranslate2-float32", "transformers-float32"])
def test_a_library_in_process_answers_lists_and_single_rows(
    name: str, setup: Setup, truth: list[Ids]
) -> None:
    async def translate() -> tuple[list[Ids], list[Ids], Ids, int]:
        contender = make_contender(name, setup)
        assert isinstance(contender, ListContender)
        async with contender:
            together, _ = await contender.translate_list(ROWS)
            singly, seconds = await contender.translate_each(ROWS[:3])
            return together, singly, await contender.translate(ROWS[3]), len(seconds)

    assert asyncio.run(translate()) == (truth, truth[:3], truth[3], 3)


@pytest.mark.parametrize(("models", "cores"), [("a", 5), ("ab", 2), ("abcdefg", 1)])
@pytest.mark.parametrize(
    ("kind", "layout"),
    [
        ("python-transformers", "{0} 1 1"),
        ("python-transformers-threads", "1 1 {0}"),
        ("python-ctranslate2", "{0} 1 1"),
        ("python-ctranslate2-workers", "1 {0} 1"),
    ],
)
def test_the_models_share_five_cores(
    setup: Setup, tmp_path: Path, models: str, cores: int, kind: str, layout: str
) -> None:
    """A layout is instances, workers, threads."""
    setup = replace(setup, models=tuple(models), beam_size=3, cores=5)
    contender = make_contender(f"{kind}-float32", setup)
    assert isinstance(contender, TritonContender)
    contender.write_repository(tmp_path)
    for model in models:
        config = text_format.Parse((tmp_path / model / "config.pbtxt").read_text(), ModelConfig())
        settings = Settings.read(tmp_path / model / "1" / "settings.json")
        found = (config.instance_group[0].count, settings.workers, settings.threads)
        assert " ".join(map(str, found)) == layout.format(cores)
        assert settings.beam_size == 3
