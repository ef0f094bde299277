# SPDX-License-Identifier: Apache-2.0
"""LibreTranslate's routes, fields and errors, on the demo model; a good request ends each."""

from __future__ import annotations

import json
import re
from typing import Any

import aiohttp
import pytest

from ct2_triton.client import TranslationClient
from ct2_triton.gateway.admission import Limits
from ct2_triton.serve import TritonServer
from ct2_triton.terms import RankedTexts
from server.gateway.conftest import GERMAN, GOOD, MODEL, SENTENCE, MakeSite, Site

pytestmark = pytest.mark.server


async def test_a_string_gives_a_string_and_a_list_a_list(site: Site) -> None:
    await site.good()
    others = ["", "  \n", "12:45 !", "🎉"]  # without letters: there is nothing to translate
    status, answer = await site.post("/translate", {**GOOD, "q": [SENTENCE, *others, SENTENCE]})
    assert (status, answer) == (200, {"translatedText": [GERMAN, *others, GERMAN]})


async def test_letters_stand_as_they_are(site: Site) -> None:
    for fields, text in ((GOOD, GERMAN), ({**GOOD, "target": "ö"}, "ö is not supported")):
        async with site.session.post(f"{site.url}/translate", json=fields) as response:
            assert text in (await response.read()).decode()
    await site.good()


async def test_a_long_text_keeps_its_lines(site: Site) -> None:
    text = f"{SENTENCE}\n\n{SENTENCE} {SENTENCE}"
    _, answer = await site.post("/translate", {**GOOD, "q": text})
    assert answer == {"translatedText": f"{GERMAN}\n\n{GERMAN} {GERMAN}"}


async def test_alternatives_are_the_next_best(site: Site, demo_server: TritonServer) -> None:
    async with TranslationClient(demo_server.grpc_url, MODEL) as client:
        truth = await client.translate(
            SENTENCE, source="eng_Latn", targets="deu_Latn", num_hypotheses=3, beam_size=4
        )
    best, *others = [hypothesis.text for hypothesis in truth.hypotheses]
    _, answer = await site.post("/translate", {**GOOD, "alternatives": 2})
    assert answer == {"translatedText": best, "alternatives": others}
    assert len({best, *others}) == 3
    _, answer = await site.post("/translate", {**GOOD, "q": [SENTENCE], "alternatives": 2})
    assert answer == {"translatedText": [best], "alternatives": [others]}


async def test_auto_says_what_it_found(site: Site) -> None:
    status, answer = await site.post("/translate", {**GOOD, "source": "auto"})
    assert status == 200
    assert answer["translatedText"] == GERMAN
    assert answer["detectedLanguage"]["language"] == "en"
    assert 50 < answer["detectedLanguage"]["confidence"] <= 100
    asked = {**GOOD, "q": [SENTENCE * 2, GERMAN * 2], "source": "auto"}
    _, answer = await site.post("/translate", asked)
    assert [one["language"] for one in answer["detectedLanguage"]] == ["en", "de"]
    assert answer["translatedText"][1] == GERMAN * 2  # it is German already


async def test_detect_ranks_languages(site: Site) -> None:
    status, found = await site.post("/detect", {"q": GERMAN})
    assert status == 200
    assert found[0]["language"] == "de"
    confidences = [one["confidence"] for one in found]
    assert confidences == sorted(confidences, reverse=True)
    status, found = await site.post("/detect", {"q": "12:45 !"})
    assert (status, found) == (200, [{"language": "en", "confidence": 0.0}])


async def test_languages_by_the_codes_of_libretranslate(site: Site) -> None:
    status, found = await site.get("/languages")
    assert status == 200
    codes = ["de", "en", "es", "fr", "it", "nl", "pt"]
    assert [one["code"] for one in found] == codes
    assert found[0] == {"code": "de", "name": "German", "targets": codes}
    # Any other name of the model's table is as good.
    for name in ("deu_Latn", "DE", "de-DE", "deu"):
        assert (await site.post("/translate", {**GOOD, "target": name}))[1] == {
            "translatedText": GERMAN
        }


async def test_the_most_characters_are_those_of_each_text(make_site: MakeSite) -> None:
    site = await make_site(max_chars=len(SENTENCE))
    status, answer = await site.post("/translate", {**GOOD, "q": [SENTENCE] * 3})
    assert (status, answer) == (200, {"translatedText": [GERMAN] * 3})
    status, answer = await site.post("/translate", {**GOOD, "q": [SENTENCE, f"{SENTENCE} "]})
    limit = len(SENTENCE)
    said = f"Invalid request: request ({limit + 1}) exceeds text limit ({limit})"
    assert (status, answer) == (400, {"error": said})


async def test_forms_of_every_kind(site: Site) -> None:
    for data in (GOOD, aiohttp.FormData(GOOD, default_to_multipart=True)):
        assert await site.post("/translate", None, data=data) == (200, {"translatedText": GERMAN})
    assert await site.post("/translate", None, params=GOOD) == (200, {"translatedText": GERMAN})
    form = {**GOOD, "q": f"{SENTENCE}\r\n{SENTENCE}", "alternatives": "-1"}
    _, answer = await site.post("/translate", None, data=form)
    assert answer == {"translatedText": f"{GERMAN}\n{GERMAN}"}


async def test_settings_and_health(site: Site) -> None:
    status, settings = await site.get("/frontend/settings")
    assert status == 200
    assert settings["charLimit"] == 100_000
    assert (settings["keyRequired"], settings["suggestions"]) == (False, False)
    assert settings["language"]["source"] == {"code": "auto", "name": "Auto Detect"}
    assert await site.get("/health") == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("path", "fields", "status", "error"),
    [
        ("/translate", {**GOOD, "q": None}, 400, "Invalid request: missing q parameter"),
        ("/translate", {**GOOD, "q": []}, 400, "Invalid request: missing q parameter"),
        ("/translate", {**GOOD, "q": [1]}, 400, "q must be a string or a list of strings"),
        ("/translate", {**GOOD, "q": "\ud800"}, 400, "half of a surrogate pair"),
        ("/translate", {**GOOD, "source": ""}, 400, "Invalid request: missing source parameter"),
        ("/translate", {**GOOD, "target": ["de"]}, 400, "target must be one string"),
        ("/translate", {**GOOD, "target": "xx"}, 400, "xx is not supported"),
        ("/translate", {**GOOD, "source": "xx"}, 400, "xx is not supported"),
        ("/translate", {**GOOD, "format": "pdf"}, 400, "pdf format is not supported"),
        ("/translate", {**GOOD, "alternatives": 6}, 400, "alternatives parameter must be <= 5"),
        ("/translate", {**GOOD, "alternatives": "1.5"}, 400, "alternatives parameter is not a"),
        ("/translate", {**GOOD, "alternatives": True}, 400, "alternatives parameter is not a"),
        ("/translate", {**GOOD, "alternatives": "9" * 81}, 400, "alternatives parameter is not a"),
        (
            "/translate",
            {**GOOD, "q": ["a"] * 1001},
            400,
            "request (1001) exceeds text limit (1000)",
        ),
        ("/translate", {**GOOD, "q": "a" * 100_001}, 400, "request (100001) exceeds text limit"),
        ("/translate", [GOOD], 400, "Invalid JSON format: the body must be an object"),
        ("/detect", {}, 400, "Invalid request: missing q parameter"),
        ("/detect", {"q": ["a", "b"]}, 400, "q must be one string"),
        ("/suggest", {}, 403, "Suggestions are disabled"),
        ("/languages", {}, 405, "Method Not Allowed: POST /languages"),
        ("/nowhere", {}, 404, "Not Found: POST /nowhere"),
    ],
)
async def test_what_is_refused_says_why(
    site: Site, path: str, fields: Any, status: int, error: str
) -> None:
    found, answer = await site.post(path, fields)
    assert found == status
    assert list(answer) == ["error"]
    assert error in answer["error"]
    await site.good()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"q": "\xff"}',
        b"\xff\xfe",
        b'{"q": "a", "alternatives": 1e999}',
    ],
)
async def test_broken_bodies_are_refused(site: Site, body: bytes) -> None:
    for content_type in ("application/json", "application/x-www-form-urlencoded", "text/plain"):
        headers = {"Content-Type": content_type}
        status, answer = await site.post("/translate", None, data=body, headers=headers)
        assert status == 400
        assert list(answer) == ["error"]
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    assert (await site.post("/translate", None, data=b"--x\r\n" + body, headers=headers))[0] == 400
    headers = {"Content-Type": "application/x-www-form-urlencoded; charset=nonsense"}
    assert (await site.post("/translate", None, data=b"q=a", headers=headers))[0] == 400
    await site.good()


async def test_json_that_comes_as_a_form_is_told_its_header(site: Site) -> None:
    """As `curl -d '{...}'` sends it."""
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    status, answer = await site.post("/translate", None, data=json.dumps(GOOD), headers=headers)
    error = "Invalid request: a body of JSON needs the header Content-Type: application/json"
    assert (status, answer) == (400, {"error": error})
    await site.good()


async def test_a_body_that_is_too_large_is_not_read(make_site: MakeSite) -> None:
    site = await make_site(max_chars=100)
    status, answer = await site.post("/translate", {**GOOD, "api_key": "k" * 70_000})
    assert status == 413
    most = f"{Limits(max_chars=100).max_bytes:,} bytes (100 characters)"
    assert answer == {"error": f"Invalid request: a body may have up to {most}"}
    await site.good()


async def test_keys_let_in(make_site: MakeSite) -> None:
    site = await make_site(keys=["secret", "other"])
    status, answer = await site.post("/translate", GOOD)
    assert (status, answer) == (
        400,
        {"error": "Please contact the server operator to get an API key"},
    )
    for wrong in ("wrong", "ключ"):
        status, answer = await site.post("/detect", {"q": "a", "api_key": wrong})
        assert (status, answer) == (403, {"error": "Invalid API key"})
    for key in ("secret", "other"):
        status, _ = await site.post("/translate", {**GOOD, "api_key": key})
        assert status == 200
        status, _ = await site.post("/translate", None, data={**GOOD, "api_key": key})
        assert status == 200
    status, _ = await site.post("/translate", GOOD, headers={"Authorization": "Bearer other"})
    assert status == 200
    assert (await site.get("/frontend/settings"))[1]["keyRequired"] is True
    assert (await site.get("/languages"))[0] == 200


async def test_alternatives_cost_html_no_quality(site: Site) -> None:
    """With alternatives, tags were not placed by alignments, and each text stood alone."""
    text = "The train leaves at 6:30."
    html = GOOD | {"q": "<p>The <a href=x>train</a> leaves at 6:30.</p>", "format": "html"}
    for alternatives in (0, 2):
        _, plain = await site.post("/translate", GOOD | {"q": text, "alternatives": alternatives})
        _, found = await site.post("/translate", html | {"alternatives": alternatives})
        assert re.sub("<[^>]*>", "", found["translatedText"]) == plain["translatedText"]
        assert found["translatedText"].count("<a href=x>") == 1


async def test_html_keeps_its_tags(site: Site) -> None:
    page = (
        '<!DOCTYPE html><h1 title="5:45 &amp; more">Penalty for <b>Castelmar</b>!</h1>'
        f"<ul><li><a href=x><i>{SENTENCE}</i></a></li></ul><script>a < b</script><!-- c -->"
    )
    status, answer = await site.post("/translate", {**GOOD, "q": page, "format": "html"})
    assert status == 200
    assert answer["translatedText"] == (
        '<!DOCTYPE html><h1 title="5:45 &amp; more">Elfmeter für <b>Castelmar</b>!</h1>'
        f"<ul><li><a href=x><i>{GERMAN}</i></a></li></ul><script>a < b</script><!-- c -->"
    )


async def test_html_has_alternatives_with_its_tags(site: Site) -> None:
    asked = {**GOOD, "alternatives": 2}
    _, plain = await site.post("/translate", asked)
    texts = [plain["translatedText"], *plain["alternatives"]]
    assert len(set(texts)) == 3
    page = f"<p>{SENTENCE}<p><a href=x>{SENTENCE}</a>"
    _, found = await site.post("/translate", {**asked, "q": [page, "<", ""], "format": "html"})
    wanted = [f"<p>{text}<p><a href=x>{text}</a>" for text in texts]
    assert found == {
        "translatedText": [wanted[0], "<", ""],
        "alternatives": [wanted[1:], [], []],
    }


async def test_the_language_of_html_is_that_of_its_text(site: Site) -> None:
    button = '<button type="submit" class="btn btn-primary">Abbrechen</button>'
    fields = {"q": button, "source": "auto", "target": "de", "format": "html"}
    status, answer = await site.post("/translate", fields)
    assert status == 200
    assert answer["detectedLanguage"]["language"] == "de"
    assert answer["translatedText"] == button
    await site.good()


async def test_a_format_that_is_not_there_is_refused(site: Site, make_site: MakeSite) -> None:
    status, answer = await site.post("/translate", {**GOOD, "format": "pdf"})
    assert status == 400
    assert answer == {"error": "pdf format is not supported; there is text, html"}
    await site.good()

    async def bold(client: TranslationClient, text: str, route: Any, *_: object) -> RankedTexts:
        found = await client.translate(text[3:-4], source=route.source, targets=route.target)
        return RankedTexts([f"<b>{found.text}</b>"], [found])

    other = await make_site(formats={"bold": bold})
    _, answer = await other.post(
        "/translate", {**GOOD, "q": f"<b>{SENTENCE}</b>", "format": "bold"}
    )
    assert answer == {"translatedText": f"<b>{GERMAN}</b>"}


@pytest.mark.parametrize(
    ("allowed", "origin", "answered"),
    [
        ([], "https://a.example", None),
        (["*"], "https://a.example", "*"),
        (["*"], None, "*"),
        (["https://a.example", "https://b.example"], "https://b.example", "https://b.example"),
        (["https://a.example"], "https://b.example", None),
        (["https://a.example"], None, None),
    ],
)
async def test_pages_of_other_origins_read_answers_if_allowed(
    make_site: MakeSite, allowed: list[str], origin: str | None, answered: str | None
) -> None:
    site = await make_site(allow_origins=allowed)
    headers = {"Origin": origin} if origin else {}
    for fields, status in ((GOOD, 200), ({}, 400)):
        url = f"{site.url}/translate"
        async with site.session.post(url, json=fields, headers=headers) as response:
            assert response.status == status
            assert response.headers.get("Access-Control-Allow-Origin") == answered
    async with site.session.options(f"{site.url}/translate", headers=headers) as response:
        assert response.status == (204 if answered else 405)
        assert response.headers.get("Access-Control-Allow-Origin") == answered
        if answered:
            assert "Content-Type" in response.headers["Access-Control-Allow-Headers"]


async def test_names_that_a_site_could_give_are_refused(make_site: MakeSite) -> None:
    """With DNS rebinding, a page of evil.example reaches the gateway under that name."""
    site = await make_site(hosts=["translate.example.com"])
    for host, status in (
        ("evil.example", 403),
        ("evil.example:5000", 403),
        ("localhost.evil.example", 403),
        ("localhost:5000", 200),
        ("localhost.:5000", 200),
        ("translate.example.com.", 200),
        ("gateway", 200),
        ("[::1]:5000", 200),
        ("192.168.1.7:5000", 200),
        ("translate.EXAMPLE.com", 200),
    ):
        found, answer = await site.post("/translate", GOOD, headers={"Host": host})
        assert found == status, host
        if status == 403:
            assert f"Host is '{host}', which is not a name of this server" in answer["error"]
    await site.good()
    anybody = await make_site(hosts=None)
    assert (await anybody.post("/translate", GOOD, headers={"Host": "any.example"}))[0] == 200


async def test_the_document_is_openapi(site: Site) -> None:
    status, spec = await site.get("/spec")
    assert status == 200
    fields = spec["paths"]["/translate"]["post"]["requestBody"]["content"]["application/json"]
    assert "de" in fields["schema"]["properties"]["target"]["enum"]
    assert fields["schema"]["properties"]["format"]["enum"] == ["text", "html", ""]
