# SPDX-License-Identifier: Apache-2.0
"""`quality` in the gateway's requests: an extension of LibreTranslate's API."""

from __future__ import annotations

from typing import Any

import pytest

from ct2_triton.client import TranslationClient
from ct2_triton.serve import TritonServer
from server.gateway.conftest import GERMAN, GOOD, MODEL, SENTENCE, Site, StartGateway
from support.metrics import fresh

pytestmark = pytest.mark.server

ODD = "Goal goal goal goal goal goal 77 goal!"
JUDGED = GOOD | {"quality": True}


async def test_a_text_gets_what_the_server_says_of_it(
    site: Site, demo_server: TritonServer
) -> None:
    async with TranslationClient(demo_server.grpc_url, MODEL) as client:
        found = await client.translate([SENTENCE, ODD], source="en", targets="de", quality=True)
    truth = [one.verdict for one in found if one.verdict is not None]
    _, answer = await site.post("/translate", JUDGED | {"q": [SENTENCE, "12", ODD]})
    assert answer["translatedText"] == [GERMAN, "12", found[1].text]
    assert answer["quality"] == pytest.approx([truth[0].quality, 1.0, truth[1].quality], abs=1e-3)
    assert answer["qualityFlags"] == [[], [], [*truth[1].flags]]
    assert answer["qualityFlags"][2]
    assert answer["qualityNotComputed"][0] == [*truth[0].not_computed]
    _, answer = await site.post("/translate", JUDGED)
    assert answer["quality"] > 0.5
    assert answer["qualityFlags"] == []


async def test_html_is_judged_as_a_whole(site: Site) -> None:
    html = {"q": f"<p>{SENTENCE}</p><p>{ODD}</p>", "format": "html"}
    _, answer = await site.post("/translate", JUDGED | html)
    assert answer["translatedText"].startswith(f"<p>{GERMAN}</p><p>")
    assert answer["quality"] < 0.5
    assert answer["qualityFlags"]


async def test_only_what_is_in_the_answer_is_judged(site: Site) -> None:
    """An element's text is translated alone, too, to find it; the verdict on that counted."""
    html = {"q": "<p>See <b>you</b> in Madrid on Thursday!</p>", "format": "html"}
    _, plain = await site.post("/translate", JUDGED | {"q": "See you in Madrid on Thursday!"})
    _, answer = await site.post("/translate", JUDGED | html)
    assert answer["translatedText"] == "<p>Wir sehen <b>uns am</b> Donnerstag in Madrid!</p>"
    assert (answer["quality"], answer["qualityFlags"]) == (plain["quality"], [])


@pytest.mark.parametrize("value", [True, "true", "True"])
async def test_forms_and_json_ask_for_it(site: Site, value: Any) -> None:
    sent: dict[str, Any] = {"data": GOOD | {"quality": value}} if value is not True else {}
    _, answer = await site.post("/translate", None if sent else JUDGED, **sent)
    assert answer["quality"] > 0.5
    for nothing in ("", "false", False):
        fields = GOOD | {"quality": nothing}
        assert (await site.post("/translate", fields))[1] == {"translatedText": GERMAN}


@pytest.mark.parametrize("value", ["yes", "TRUE", 1, ["true"], {}])
async def test_another_value_is_refused(site: Site, value: Any) -> None:
    status, answer = await site.post("/translate", GOOD | {"quality": value})
    assert status == 400
    assert "quality is " in answer["error"]
    assert answer["error"].endswith("it must be true or false")
    await site.good()


async def test_an_option_of_the_gateway_has_flagged_texts_decoded_again(
    start_gateway: StartGateway, demo_server: TritonServer, site: Site
) -> None:
    name = "ct2_retried_rows_total"
    command = start_gateway("--option", "on_doubt=retry", "--option", "beam_size=1")
    before = fresh(demo_server, MODEL)[name]  # the gateway has tried the options with a word
    other = Site(command.url, site.session)
    _, answer = await other.post("/translate", JUDGED | {"q": ["Yes.", SENTENCE]})
    assert answer["translatedText"][1] == GERMAN
    assert fresh(demo_server, MODEL)[name] - before == 1
    async with TranslationClient(demo_server.grpc_url, MODEL) as client:
        second = {"beam_size": 2, "no_repeat_ngram_size": 4}
        found = await client.translate("Yes.", source="en", targets="de", quality=True, **second)
    assert answer["translatedText"][0] == found.text
