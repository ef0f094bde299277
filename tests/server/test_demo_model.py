# SPDX-License-Identifier: Apache-2.0
"""The shipped demo model, served: translations that a person can read, in order, in one batch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ct2_triton.client import SyncTranslationClient, Tokenizer, TranslationClient
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepared_model import PreparedModel
from ct2_triton.serve import TritonServer
from server.helpers import Connection, Reference
from support import emulated_gpu
from support.metrics import fresh
from support.servers import ServerStack

pytestmark = pytest.mark.server

ROOT = Path(__file__).resolve().parents[2]
COMMENTARY = (ROOT / "tools" / "commentary.txt").read_text(encoding="utf-8").splitlines()
TARGETS = ["deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn", "por_Latn", "nld_Latn"]

# Lines of the commentary, which training never saw; the model gets about 97 of 100 right.
GERMAN = {
    "Can the Panthers still equalise against Northgate United?": (
        "Können die Panther gegen Northgate United noch ausgleichen?"
    ),
    "Next week in Stockholm: fog.": ("Nächste Woche in Stockholm: Nebel."),
    "Can Walsh still win this stage, David?": ("Kann Walsh diese Etappe noch gewinnen, David?"),
    "Gate C19 closes in 6 minutes!": ("Gate C19 schließt in 6 Minuten!"),
    "Our factories in Poland now use 20% less aluminium.": (
        "Unsere Werke in Polen verbrauchen jetzt 20 % weniger Aluminium."
    ),
    "See you in Madrid on Thursday!": ("Wir sehen uns am Donnerstag in Madrid!"),
    "On the A21, a bus has broken down and is blocking one lane.": (
        "Auf der A21 blockiert ein Bus mit Panne eine Spur."
    ),
    "Warm greetings to our 59,500 customers in Italy!": (
        "Herzliche Grüße an unsere 59.500 Kunden in Italien!"
    ),
    "After a long check, the goal by Dlamini stands, and it is now 3-3 in Bruges.": (
        "Nach langer Prüfung zählt das Tor von Dlamini, und in Brügge steht es jetzt 3:3."
    ),
    (
        "At the press conference on Tuesday, Carvalho said: the first goal changed "
        "everything, and against the Bulls we will give everything."
    ): (
        "Auf der Pressekonferenz am Dienstag sagte Carvalho: Das erste Tor hat alles "
        "verändert, und gegen die Bullen werden wir alles geben."
    ),
}

ENGLISH = "What will the weather be like in Czechia this evening?"
IN_SIX_LANGUAGES = [
    "Wie wird das Wetter heute Abend in Tschechien?",
    "Quel temps fera-t-il en Tchéquie ce soir ?",
    "¿Qué tiempo hará en Chequia esta noche?",
    "Che tempo farà in Cechia stasera?",
    "Como vai estar o tempo na Chéquia esta noite?",
    "Hoe wordt het weer vanavond in Tsjechië?",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> PreparedModel:
    """Computed in float32: int8 gives other last bits on other processors."""
    repository = tmp_path_factory.mktemp("repository")
    return prepare(PrepareOptions("demo", repository, settings={"compute_type": "float32"}))


@pytest.fixture(scope="module")
def server(model: PreparedModel) -> Iterator[TritonServer]:
    with ServerStack() as stack:
        yield stack.start(model.directory.parent)


def test_ten_sentences_in_german(server: TritonServer, model: PreparedModel) -> None:
    assert set(GERMAN) <= set(COMMENTARY)
    repository = model.directory.parent
    with SyncTranslationClient(server.grpc_url, "demo", repository=repository) as client:
        answers = client.translate(list(GERMAN), source="eng_Latn", targets="deu_Latn")
    assert [answer.text for answer in answers] == list(GERMAN.values())


def test_one_sentence_into_six_languages_as_six_calls_and_as_six_rows_of_one(
    server: TritonServer, model: PreparedModel
) -> None:
    repository = model.directory.parent
    with SyncTranslationClient(server.grpc_url, "demo", repository=repository) as client:
        targets = ["de", "fr", "es", "it", "pt", "nl"]
        answers = client.translate(ENGLISH, source="en", targets=targets)
    assert [answer.text for answer in answers] == IN_SIX_LANGUAGES

    tokenizer, rules = Tokenizer(model.directory), model.rules
    row = rules.input_ids(tokenizer.encode(ENGLISH).ids, rules.source_language("en"), None)
    prefixes = [rules.target_prefix(rules.target_language(target)) for target in TARGETS]
    connection = Connection(server.grpc_url)
    ids = connection.infer("demo", [row] * len(TARGETS), prefixes)["OUTPUT_IDS"]
    connection.close()
    assert [tokenizer.decode(row[1:].tolist()) for row in ids] == IN_SIX_LANGUAGES


async def test_a_stream_of_200_keeps_its_order_in_every_language(
    server: TritonServer, model: PreparedModel
) -> None:
    lines = COMMENTARY[:200]

    async def arriving() -> AsyncIterator[str]:
        for line in lines:
            yield line

    repository = model.directory.parent
    came: dict[str | None, list[tuple[int, str]]] = {target: [] for target in TARGETS}
    async with TranslationClient(server.grpc_url, "demo", repository=repository) as client:
        async for item in client.stream(arriving(), source="eng_Latn", targets=TARGETS):
            came[item.target].append((item.position, item.translation.text))
        alone = await client.translate(lines[::20], source="eng_Latn", targets=TARGETS)
    for number, target in enumerate(TARGETS):
        assert [position for position, _ in came[target]] == list(range(len(lines)))
        texts = [text for _, text in came[target]]
        assert texts[::20] == [row[number].text for row in alone]
        assert len(set(texts)) > 0.95 * len(lines)  # no answer stands in for another


def test_an_emulated_gpu_gives_ctranslate2s_answers(model: PreparedModel) -> None:
    """Sentences of several lengths, greedy and with beams, share the steps of a loop."""
    tokenizer, rules = Tokenizer(model.directory), model.rules
    source, prefix = rules.source_language("en"), rules.target_prefix(rules.target_language("de"))
    rows = [rules.input_ids(tokenizer.encode(line).ids, source, None) for line in GERMAN]
    asked = [(row, {"beam_size": beams}) for beams in (1, 4) for row in rows]
    with ServerStack() as stack:
        environment = emulated_gpu.server_environment()
        server = stack.start(model.directory.parent, environment=environment)
        connection = Connection(server.grpc_url)
        pending = [connection.start("demo", [row], [prefix], **options) for row, options in asked]
        answers = [one.get_result().as_numpy("OUTPUT_IDS")[0].tolist() for one in pending]
        connection.close()
        done = fresh(server, "demo")

    reference = Reference(model.directory / "1" / "model")
    assert answers == [reference.translate(row, prefix, **options) for row, options in asked]
    texts = [tokenizer.decode(answer[1:]) for answer in answers[: len(GERMAN)]]
    assert texts == list(GERMAN.values())
    assert done["ct2_gpu_passes_total"] > 0
    assert done.by("ct2_run_rows_total") == {"loop": len(asked)}
