# SPDX-License-Identifier: Apache-2.0
"""The classic ensemble of benchmarks/ensemble.py: Python, the backend, Python."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ct2_triton import _core
from ct2_triton.client import TranslationClient
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import TritonServer
from ensemble import write_ensemble
from server.helpers import Connection, tensor
from server.text_client import answer, refusal, strings, translated
from support.prepared import prepare_tiny
from support.servers import ServerStack
from tiny_corpus import sentences
from train_demo.corpus import held_out_sentences
from train_demo.grammar import read_grammar

pytestmark = pytest.mark.server

ENSEMBLE = "demo-ensemble"
# An ensemble asks its step for the outputs by name.
OUTPUTS = """
name: "outputs"
platform: "ensemble"
max_batch_size: 8
input { name: "text" data_type: TYPE_STRING dims: [1] }
input { name: "targets" data_type: TYPE_STRING dims: [-1] }
output { name: "all" data_type: TYPE_STRING dims: [-1, -1] }
output { name: "scores" data_type: TYPE_FP32 dims: [-1, -1] }
output { name: "aligned" data_type: TYPE_INT32 dims: [-1, -1, 4] }
ensemble_scheduling { step {
  model_name: "demo-text"
  model_version: -1
  input_map { key: "text_input" value: "text" }
  input_map { key: "target_languages" value: "targets" }
  output_map { key: "hypotheses" value: "all" }
  output_map { key: "hypothesis_scores" value: "scores" }
  output_map { key: "alignments" value: "aligned" }
} }
"""
SENTENCE = "The ticket office opens at 5:45."
GERMAN = "Der Fahrkartenschalter öffnet um 5:45 Uhr."


@pytest.fixture(scope="module")
def ensemble_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    """Computed in float32: the same answers whatever else is in the batch."""
    folder = tmp_path_factory.mktemp("ensemble")
    settings = {"compute_type": "float32"}
    model = prepare(PrepareOptions("demo", folder, settings=settings, io="both"))
    write_ensemble(model.directory)
    pair = prepare_tiny("marian-pair", folder, "pair", io="both")
    write_ensemble(pair.directory)
    (folder / "outputs" / "1").mkdir(parents=True)
    (folder / "outputs" / "config.pbtxt").write_text(OUTPUTS)
    with ServerStack() as stack:
        yield stack.start(folder)


@pytest.fixture
def ensemble(ensemble_server: TritonServer) -> Iterator[Connection]:
    opened = Connection(ensemble_server.grpc_url)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Held-out sentences of the demo model; the ensemble cuts nothing into sentences."""
    drawn = held_out_sentences(read_grammar(), 100, 0)
    lines = [sentence.texts["eng"] for sentence in drawn]
    return [line for line in lines if len(_core.segment(line.encode(), "en")) == 1]


@pytest.mark.parametrize("target", ["de", "fr"])
async def test_its_answers_are_those_of_the_text_model(
    ensemble_server: TritonServer, target: str, texts: list[str]
) -> None:
    assert len(texts) > 50
    answers = []
    for model in (ENSEMBLE, "demo-text"):
        async with TranslationClient(ensemble_server.grpc_url, model) as client:
            found = await client.translate(texts, source="en", targets=target)
            answers.append([one.text for one in found])
    assert answers[0] == answers[1]


def test_texts_of_several_lengths_and_languages_in_a_request(ensemble: Connection) -> None:
    texts = [SENTENCE, "", "Next week in Stockholm: fog.", "  "]
    answers = translated(ensemble, texts, ["de"], model=ENSEMBLE)
    assert answers == [[GERMAN], [""], ["Nächste Woche in Stockholm: Nebel."], [""]]


def test_a_model_of_one_pair_needs_no_languages(ensemble: Connection) -> None:
    """An ensemble's inputs are all there, and may be empty; a text model's may be left out."""
    texts = [*sentences(6, seed=5), ""]
    answers = translated(ensemble, texts, [""], "", model="pair-ensemble")
    assert answers == translated(ensemble, texts, None, None, model="pair-text")
    assert answers == translated(ensemble, texts, ["de"], "en", model="pair-text")
    assert all(answer for [answer] in answers[:-1])
    assert answers[-1] == [""]
    assert "xx" in refusal(ensemble, texts, ["xx"], None, model="pair-text")
    assert translated(ensemble, texts[0], None, None, model="pair-text") == answers[:1]


@pytest.mark.parametrize("text", [SENTENCE, ""])
def test_outputs_that_a_step_is_asked_for_come_though_no_option_asks(
    ensemble: Connection, text: str
) -> None:
    inputs = [tensor("text", strings([[text]])), tensor("targets", strings([["de", "fr"]]))]
    got = answer(ensemble.send("outputs", inputs))
    assert got["all"][0][0] == [GERMAN if text else ""]
    assert [len(scores) for scores in got["scores"][0]] == [1, 1]
    assert [len(pairs) > 3 for pairs in got["aligned"][0]] == [bool(text)] * 2


@pytest.mark.parametrize(
    ("text", "source", "target", "message"),
    [
        (SENTENCE, "en", "xx", "no target language 'xx'"),
        (SENTENCE, "xx", "de", "no source language 'xx'"),
        (b"\xff", "en", "de", "invalid start byte"),
        ("word " * 3000, "en", "de", "more than the 256"),
    ],
)
def test_what_is_wrong_is_refused_alone(
    ensemble: Connection, text: str | bytes, source: str, target: str, message: str
) -> None:
    assert message in refusal(ensemble, text, [target], source, model=ENSEMBLE)
    assert translated(ensemble, SENTENCE, ["de"], model=ENSEMBLE) == [[GERMAN]]
