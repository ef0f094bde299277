# SPDX-License-Identifier: Apache-2.0
"""Terms through the demo's text model, which copies names and loses all symbols."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ct2_triton.client import TranslationClient
from ct2_triton.errors import InvalidCallError
from ct2_triton.prepared_model import read_json
from ct2_triton.serve import TritonServer
from ct2_triton.terms import TermTranslation, translate_html, translate_terms
from server.gateway.conftest import GERMAN, MODEL, SENTENCE

pytestmark = pytest.mark.server

TEXT = "Penalty for <dnt>Quixolab</dnt>!"
TEAMS = ("Castelmar", "Valmora")


@pytest.fixture
async def client(demo_server: TritonServer) -> AsyncIterator[TranslationClient]:
    async with TranslationClient(demo_server.grpc_url, MODEL) as client:
        yield client


async def test_a_term_comes_back_by_the_kind_that_the_model_copies(
    client: TranslationClient,
) -> None:
    found = await translate_terms(
        client, TEXT, source="en", targets=["de", "fr"], placeholders=["X{}", TEAMS]
    )
    assert [one.text for one in found] == ["Elfmeter für Quixolab!", "Penalty pour Quixolab !"]
    assert [(one.failed, one.placeholder) for one in found] == [(False, TEAMS)] * 2


async def test_the_kind_that_ct2_prepare_found_is_tried(
    demo_server: TritonServer, repository: Path
) -> None:
    async with TranslationClient(demo_server.grpc_url, MODEL, repository=repository) as client:
        found = await translate_terms(client, TEXT, source="en", targets=["de", "fr"])
    kinds = read_json(repository / "demo" / "tokenizer" / "languages.json")["placeholders"]
    assert [one.text for one in found] == ["Elfmeter für Quixolab!", "Penalty pour Quixolab !"]
    assert [one.placeholder for one in found] == [tuple(kinds[0])] * 2
    async with TranslationClient(demo_server.grpc_url, "demo", repository=repository) as client:
        german = await translate_terms(client, TEXT, source="en", targets="de")
    assert german == found[0]


async def test_a_glossary_says_what_terms_become(client: TranslationClient) -> None:
    german = await translate_terms(
        client,
        "Penalty for Quixolab!",
        source="en",
        targets="de",
        glossary={"Quixolab": "die Quixwerke"},
        placeholders=[TEAMS],
    )
    assert german.text == "Elfmeter für die Quixwerke!"


async def test_what_the_model_keeps_by_itself_needs_no_placeholder(
    client: TranslationClient,
) -> None:
    found = await translate_terms(
        client, SENTENCE, source="en", targets=["de"], patterns=["numbers"], placeholders=[TEAMS]
    )
    assert found == [TermTranslation(GERMAN, "de")]


async def test_a_term_that_is_lost_is_told_and_the_translation_is_plain(
    client: TranslationClient,
) -> None:
    german = await translate_terms(client, TEXT, source="en", targets="de")
    [plain] = await client.translate(["Penalty for Quixolab!"], source="en", targets="de")
    assert german == TermTranslation(plain.text, "de", ("Quixolab",))
    assert german.failed


async def test_a_wrong_mark_is_refused_and_the_client_goes_on(client: TranslationClient) -> None:
    with pytest.raises(InvalidCallError, match="has no </dnt>"):
        await translate_terms(client, "Penalty for <dnt>Quixolab!", source="en", targets="de")
    german = await translate_terms(client, SENTENCE, source="en", targets="de")
    assert german.text == GERMAN


@pytest.mark.parametrize(
    ("document", "translation"),
    [
        ("<p>Gate C27 <b>closes</b> in 26 minutes!", "<p>Gate C27 <b>schließt</b> in 26 Minuten!"),
        (
            "Train 916 now leaves from <a href=x>platform <b>21</b></a>.",
            "Zug 916 fährt jetzt <a href=x>von Gleis <b>21</b></a> ab.",
        ),
    ],
)
async def test_tags_go_by_what_tokens_look_at(
    demo_server: TritonServer, repository: Path, document: str, translation: str
) -> None:
    languages = {"source": "en", "target": "de"}
    for model in ("demo", MODEL):
        async with TranslationClient(demo_server.grpc_url, model, repository=repository) as client:
            assert await translate_html(client, document, **languages) == translation
