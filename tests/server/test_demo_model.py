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
from server.helpers import Connection
from support.servers import ServerStack

pytestmark = pytest.mark.server

ROOT = Path(__file__).resolve().parents[2]
COMMENTARY = (ROOT / "tools" / "commentary.txt").read_text(encoding="utf-8").splitlines()
TARGETS = ["deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn", "por_Latn", "nld_Latn"]

# Lines of the commentary, which training never saw; the model gets about 96 of 100 right.
GERMAN = {
    "Thank you, Weber! Thank you, London!": "Danke, Weber! Danke, London!",
    "The Bralix 2 weighs only 510 grams.": "Das Bralix 2 wiegt nur 510 Gramm.",
    "Great save by Johnson from Tanaka!": "Tolle Parade von Johnson gegen Tanaka!",
    "The ticket office opens at 5:45.": "Der Fahrkartenschalter öffnet um 5:45 Uhr.",
    "Half-time in Helsinki: it is 3-0.": "Halbzeit in Helsinki: Es steht 3:0.",
    "Kamara is out for 8 weeks with a foot injury.": (
        "Kamara fällt mit einer Fußverletzung 8 Wochen aus."
    ),
    "On the A21 towards Rotterdam there is a jam of 16 kilometres.": (
        "Auf der A21 in Richtung Rotterdam gibt es 16 Kilometer Stau."
    ),
    "More than 39 million people in 82 countries trust us.": (
        "Mehr als 39 Millionen Menschen in 82 Ländern vertrauen uns."
    ),
    "With 50 points, Valdora are now in ninth place, 7 points behind the Dragons.": (
        "Mit 50 Punkten steht Valdora jetzt auf dem neunten Platz, 7 Punkte hinter den Drachen."
    ),
    "At the second time check, Girard is 42 seconds ahead of Novotny.": (
        "Bei der zweiten Zwischenzeit liegt Girard 42 Sekunden vor Novotny."
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
    return prepare(PrepareOptions("demo", tmp_path_factory.mktemp("repository")))


@pytest.fixture(scope="module")
def server(model: PreparedModel) -> Iterator[TritonServer]:
    with ServerStack() as stack:
        yield stack.start(model.directory.parent)


def test_ten_sentences_in_german(server: TritonServer, model: PreparedModel) -> None:
    assert set(GERMAN) <= set(COMMENTARY)
    repository = model.directory.parent
    with SyncTranslationClient(server.grpc_url, "demo", repository=repository) as client:
        answers = client.translate(list(GERMAN), source="eng_Latn", targets="deu_Latn")
    assert [row[0].text for row in answers] == list(GERMAN.values())


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
