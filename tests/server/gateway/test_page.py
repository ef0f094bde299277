# SPDX-License-Identifier: Apache-2.0
"""The gateway's pages in a real Chromium without a screen."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.terms import Terms
from server.gateway.conftest import GERMAN, SENTENCE, MakeSite, Site
from server.gateway.test_files import FILES
from support.browser import chromium, needs_browser, run, set_languages, show_as, until

pytestmark = [pytest.mark.server, needs_browser]

STATUS = "document.getElementById('status').textContent"
TAB = "\ue004"  # as WebDriver names the key
ANSWER = "document.getElementById('answer')"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


async def open_page(browser: Any, site: Site, query: str = "") -> None:
    await asyncio.to_thread(browser.get, f"{site.url}/{query}")
    await until(browser, f"{STATUS} !== 'Loading …'", True)


async def type_into(browser: Any, name: str, text: str) -> None:
    field = await asyncio.to_thread(browser.find_element, "id", name)
    await asyncio.to_thread(field.send_keys, text)


async def choose(browser: Any, name: str, code: str) -> None:
    """Chooses a language, as a click does."""
    option = await asyncio.to_thread(
        browser.find_element, "css selector", f"#{name} option[value={code}]"
    )
    await asyncio.to_thread(option.click)


async def press(browser: Any, selector: str) -> None:
    button = await asyncio.to_thread(browser.find_element, "css selector", selector)
    await asyncio.to_thread(button.click)


async def languages(browser: Any) -> list[str]:
    """Gives the languages that are chosen: source and target."""
    values = "['source', 'target'].map((id) => document.getElementById(id).value)"
    return list(await run(browser, values))


async def test_a_text_is_translated_while_it_is_typed(browser: Any, site: Site) -> None:
    await open_page(browser, site)
    await choose(browser, "target", "de")
    await type_into(browser, "text", SENTENCE)
    await until(browser, f"{ANSWER}.textContent", GERMAN)
    assert await run(browser, STATUS) == "Detected: English"
    assert await run(browser, f"{ANSWER}.lang") == "de"
    assert await run(browser, f"{ANSWER}.getAttribute('aria-live')") == "polite"
    counter = await run(browser, "document.getElementById('counter').textContent")
    assert counter == f"{len(SENTENCE)} / 100,000"
    assert GERMAN in await run(browser, "document.getElementById('response').textContent")
    assert SENTENCE in await run(browser, "document.getElementById('request').textContent")
    origins = "performance.getEntriesByType('resource').map((e) => new URL(e.name).origin)"
    assert set(await run(browser, origins)) == {site.url}
    await press(browser, "#clear")
    await until(browser, f"{ANSWER}.textContent", "")
    assert await run(browser, "location.search") == ""


async def test_another_translation_can_be_chosen_and_copied(browser: Any, site: Site) -> None:
    await open_page(browser, site, f"?source=en&target=de&q={SENTENCE}")
    await until(browser, f"{ANSWER}.textContent", GERMAN)
    choice = await run(browser, "document.querySelector('#alternatives button').textContent")
    await press(browser, "#alternatives button")
    assert await run(browser, f"{ANSWER}.textContent") == choice != GERMAN
    granted = {"origin": site.url, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    await asyncio.to_thread(browser.execute_cdp_cmd, "Browser.grantPermissions", granted)
    await press(browser, "#copy")
    await until(browser, STATUS, "Translation copied")
    assert await run(browser, "navigator.clipboard.readText()") == choice


async def test_languages_are_swapped_also_from_a_detected_one(browser: Any, site: Site) -> None:
    await open_page(browser, site)
    assert (await languages(browser))[0] == "auto"
    await choose(browser, "target", "de")
    await type_into(browser, "text", SENTENCE)
    await until(browser, f"{ANSWER}.textContent", GERMAN)
    await press(browser, "#swap")
    assert await languages(browser) == ["de", "en"]
    assert await run(browser, "document.getElementById('text').value") == GERMAN
    await until(browser, STATUS, "Done")
    await press(browser, "#swap")
    assert await languages(browser) == ["en", "de"]


@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        ("", ["auto", "en"]),  # the browser's language
        ("?source=en", ["en", "de"]),  # which is not the source
        ("?source=fr&target=it", ["fr", "it"]),
        ("?source=xx&target=yy", ["auto", "en"]),
    ],
)
async def test_the_languages_of_a_link(
    browser: Any, site: Site, query: str, chosen: list[str]
) -> None:
    await open_page(browser, site, query)
    assert await languages(browser) == chosen
    await site.good()


async def test_languages_have_their_names_in_the_language_of_the_browser(
    browser: Any, site: Site
) -> None:
    await set_languages(browser, "fr")
    try:
        await open_page(browser, site)
        assert await languages(browser) == ["auto", "fr"]
        names = "['de', 'fr'].map((code) => document.querySelector(`#target [value=${code}]`).text)"
        assert await run(browser, names) == ["allemand", "français"]
    finally:
        await set_languages(browser, "en-US")


async def test_a_link_shows_a_text_and_is_made_of_one(browser: Any, site: Site) -> None:
    await open_page(browser, site, "?source=en&target=de")
    await type_into(browser, "text", SENTENCE)
    await until(browser, f"{ANSWER}.textContent", GERMAN)
    link = await run(browser, "location.href")
    assert "source=en&target=de&q=The+ticket" in link
    await open_page(browser, site, link.rpartition("/")[2])
    await until(browser, f"{ANSWER}.textContent", GERMAN)
    assert await languages(browser) == ["en", "de"]


@pytest.mark.parametrize("name", FILES)
async def test_a_file_is_translated_and_offered(
    browser: Any, site: Site, tmp_path: Path, name: str
) -> None:
    await open_page(browser, site, "?source=en&target=de")
    file = tmp_path / name
    content, wanted = FILES[name]
    await asyncio.to_thread(file.write_bytes, content.encode())
    await type_into(browser, "file", str(file))
    await until(browser, STATUS, "Done")
    assert await run(browser, "document.getElementById('progress').value") == 1
    link = "document.getElementById('download')"
    stem, _, suffix = name.replace(" ", "_").partition(".")
    assert await run(browser, f"{link}.textContent") == f"Download {stem}_de.{suffix}"
    async with site.session.get(await run(browser, f"{link}.href")) as response:
        assert (await response.read()).decode() == wanted


async def test_a_file_that_is_not_translated_is_told(
    browser: Any, site: Site, tmp_path: Path
) -> None:
    await open_page(browser, site, "?source=en&target=de")
    file = tmp_path / "film.srt"
    await asyncio.to_thread(file.write_bytes, b"\xff" * 20)
    await type_into(browser, "file", str(file))
    await until(browser, f"{STATUS}.includes(\"'film.srt' is not UTF-8\")", True)
    ends_early = """void (window.fetch = async () => new Response('{"done": 1, "of": 2}\\n'))"""
    await run(browser, ends_early)
    await type_into(browser, "file", str(file))
    await until(browser, STATUS, "The gateway does not answer; try again later")
    assert await run(browser, "document.getElementById('file-line').hidden") is True
    await site.good()


async def test_a_glossary_can_be_chosen(
    browser: Any, make_site: MakeSite, site: Site, tmp_path: Path
) -> None:
    await open_page(browser, site)
    line = "document.getElementById('glossary-line')"
    assert await run(browser, f"{line}.hidden") is True  # there is none
    with_works = await make_site(glossaries={"works": Terms(glossary={"Quixolab": "Quix AG"})})
    await open_page(browser, with_works, "?source=en&target=de&q=Penalty for Quixolab!")
    await until(browser, "document.getElementById('copy').disabled", False)
    assert "Quix" not in await run(browser, f"{ANSWER}.textContent")
    await choose(browser, "glossary", "works")
    await until(browser, f"{ANSWER}.textContent.includes('Quix AG')", True)
    file = tmp_path / "a.txt"
    await asyncio.to_thread(file.write_text, "Penalty for Quixolab!")
    await type_into(browser, "file", str(file))
    await until(browser, "document.getElementById('download').hidden", False)
    address = await run(browser, "document.getElementById('download').href")
    async with site.session.get(address) as response:
        assert await response.text() == "Elfmeter für Quix AG!"


async def test_a_language_that_is_not_certain_is_not_called_detected(
    browser: Any, site: Site
) -> None:
    await open_page(browser, site, "?source=auto&target=de&q=12:45")
    said = "The language is not certain, perhaps English: choose it under From"
    await until(browser, STATUS, said)


async def test_dropped_text_is_left_to_the_browser(browser: Any, site: Site) -> None:
    """A file is the page's."""
    await open_page(browser, site)
    drop = """(() => {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(%s);
        const event = new DragEvent("dragover", {dataTransfer, bubbles: true, cancelable: true});
        return document.getElementById("text").dispatchEvent(event);
    })()"""
    assert await run(browser, drop % "'a text', 'text/plain'") is True
    assert await run(browser, drop % "new File(['a'], 'a.txt')") is False


async def test_markup_is_text_and_every_control_has_a_name(browser: Any, site: Site) -> None:
    await open_page(browser, site, "?source=en&target=de")
    await type_into(browser, "text", "<img src=x onerror=alert(1)>")
    await until(browser, STATUS, "Done")
    assert await run(browser, f"{ANSWER}.children.length") == 0
    unnamed = (
        "[...document.querySelectorAll('select, textarea, input, button')].filter((one) => "
        "!(one.labels?.length || one.textContent.trim() || one.ariaLabel)).length"
    )
    assert await run(browser, unnamed) == 0


async def test_all_can_be_done_with_the_keyboard(browser: Any, site: Site) -> None:
    """Tab reaches every control that is shown, in the order of the page."""
    await open_page(browser, site, f"?source=en&target=de&q={SENTENCE}")
    await until(browser, f"{ANSWER}.textContent", GERMAN)
    wanted = await run(
        browser,
        "[...document.querySelectorAll('a, select, button, textarea, summary')]"
        ".filter((one) => one.checkVisibility() && !one.disabled).map((one) => one.outerHTML)",
    )
    found = []
    for _ in range(len(wanted) + 1):  # at the end, the focus goes to the browser's own controls
        active = await asyncio.to_thread(lambda: browser.switch_to.active_element)
        await asyncio.to_thread(active.send_keys, TAB)
        found.append(await run(browser, "document.activeElement.outerHTML"))
    assert set(wanted) <= set(found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
async def test_nothing_is_torn_at_any_width(
    browser: Any, site: Site, width: int, height: int, scheme: str
) -> None:
    await asyncio.to_thread(show_as, browser, width, height, scheme)
    try:
        await open_page(browser, site, f"?source=en&target=de&q={SENTENCE}")
        await until(browser, f"{ANSWER}.textContent", GERMAN)
        assert await run(browser, "document.documentElement.scrollWidth") == width
        torn = (
            "[...document.querySelectorAll('.tools *, label, h1, nav')].filter((one) => "
            "one.checkVisibility() && one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0)"
            ".map((one) => one.outerHTML)"
        )
        assert await run(browser, torn) == []
        ground = await run(browser, "getComputedStyle(document.documentElement).backgroundColor")
        assert ground == {"light": "rgb(244, 246, 248)", "dark": "rgb(20, 24, 29)"}[scheme]
        columns = await run(
            browser,
            "new Set([...document.querySelectorAll('.box')].map((b) => b.offsetLeft)).size",
        )
        assert columns == (2 if width > 1000 else 1)
    finally:
        await asyncio.to_thread(show_as, browser, 1280, 800, "light")


async def test_a_missing_key_is_said_and_a_right_one_helps(
    browser: Any, make_site: MakeSite
) -> None:
    site = await make_site(keys=["secret"])
    await open_page(browser, site, "?source=en&target=de")
    await type_into(browser, "text", SENTENCE)
    await until(browser, STATUS, "Please contact the server operator to get an API key")
    await type_into(browser, "key", "secret\n")
    await until(browser, f"{ANSWER}.textContent", GERMAN)
    assert "secret" not in await run(browser, "document.getElementById('request').textContent")


async def test_an_outage_is_one_sentence(browser: Any, make_site: MakeSite, site: Site) -> None:
    gone = await make_site(url="localhost:1")
    await open_page(browser, gone, f"?source=en&target=de&q={SENTENCE}")
    await until(
        browser,
        STATUS,
        "Cannot translate text: the translation server does not answer at the moment; try again "
        "later",
    )
    await open_page(browser, site, f"?source=en&target=de&q={SENTENCE}")
    await until(browser, f"{ANSWER}.textContent", GERMAN)


async def test_a_newer_question_and_clear_end_what_is_under_way(
    browser: Any, site: Site, tmp_path: Path
) -> None:
    await open_page(browser, site, "?source=en&target=de")
    signals = """(() => {
        window.signals = [];
        window.fetch = (path, {signal}) => new Promise((_, fail) => {
            signals.push(signal);
            signal.addEventListener("abort", () => fail(signal.reason));
        });
    })()"""
    await run(browser, signals)
    ended = "window.signals.map((one) => one.aborted)"
    file = tmp_path / "a.txt"
    await asyncio.to_thread(file.write_text, SENTENCE)
    for _ in range(2):
        await type_into(browser, "file", str(file))
    await until(browser, ended, [True, False])
    await type_into(browser, "text", "a")
    await until(browser, ended, [True, False, False])
    await press(browser, "#clear")
    await until(browser, ended, [True, True, True])
    assert await run(browser, "document.getElementById('file-line').hidden") is True
    await open_page(browser, site, f"?source=en&target=de&q={SENTENCE}")
    await until(browser, f"{ANSWER}.textContent", GERMAN)


@pytest.mark.parametrize(
    "answer", ["Promise.reject(new TypeError())", "new Response('<p>', {status: 502})"]
)
async def test_a_gateway_that_does_not_answer_is_one_sentence(
    browser: Any, site: Site, answer: str
) -> None:
    """The link stays, to try it again."""
    await open_page(browser, site, "?source=en&target=de&q=a")
    await until(browser, "document.getElementById('link').disabled", False)
    await run(browser, f"void (window.asks = fetch, window.fetch = async () => {answer})")
    await run(browser, "document.getElementById('text').value = ''")
    await type_into(browser, "text", SENTENCE)
    await until(browser, STATUS, "The gateway does not answer; try again later")
    assert "q=a" in await run(browser, "location.search")
    await run(browser, "void (window.fetch = asks)")
    await run(browser, "document.getElementById('form').requestSubmit()")
    await until(browser, f"{ANSWER}.textContent", GERMAN)
    await until(browser, "document.getElementById('link').disabled", False)


async def test_a_text_that_is_too_long_is_said_and_not_cut(
    browser: Any, make_site: MakeSite
) -> None:
    """Characters count, as for the gateway: letters beyond the first plane are one."""
    short = await make_site(max_chars=40, files=None)
    await open_page(browser, short, "?source=en&target=de")
    assert await run(browser, "document.getElementById('text').placeholder") == (
        "Type or paste a text"
    )
    long = SENTENCE + " " + "😀" * 8  # 41 characters
    field = "document.getElementById('text')"
    typed = f"({field}.value = {long!r}, {field}.dispatchEvent(new Event('input')))"
    await run(browser, typed)
    await until(browser, STATUS, "A text may have up to 40 characters")
    assert await run(browser, "document.getElementById('counter').textContent") == "41 / 40"
    await run(browser, typed.replace(long, long[:-1]))
    await until(browser, STATUS, "Done")


async def test_a_file_that_is_too_large_names_the_limit(
    browser: Any, make_site: MakeSite, tmp_path: Path
) -> None:
    small = await make_site(max_chars=100)
    await open_page(browser, small, "?source=en&target=de")
    file = tmp_path / "a.txt"
    await asyncio.to_thread(file.write_text, "a" * 200_000)
    await type_into(browser, "file", str(file))
    said = "Invalid request: a body may have up to "
    await until(browser, f"{STATUS}.startsWith({said!r})", True)
    assert (await run(browser, STATUS)).endswith(" bytes (100 characters)")
    await asyncio.to_thread(file.write_text, SENTENCE)
    await type_into(browser, "file", str(file))
    await until(browser, STATUS, "Done")


async def test_the_api_can_be_read(browser: Any, site: Site) -> None:
    await asyncio.to_thread(browser.get, f"{site.url}/docs")
    await until(browser, STATUS, "LibreTranslate's API, served by ct2-triton.")
    titles = await run(browser, "[...document.querySelectorAll('h2')].map((e) => e.textContent)")
    assert "POST /translate" in titles
    assert "target" in await run(browser, "document.getElementById('routes').textContent")
    await asyncio.to_thread(show_as, browser, 390, 844, "light")
    try:
        assert await run(browser, "document.documentElement.scrollWidth") == 390
        names = (
            "[...document.querySelectorAll('td:first-child')].filter((one) => {"
            " const range = document.createRange(); range.selectNodeContents(one);"
            " return range.getClientRects().length > 1; }).map((one) => one.textContent)"
        )
        assert await run(browser, names) == []  # none is torn
    finally:
        await asyncio.to_thread(show_as, browser, 1280, 800, "light")


def test_every_file_of_the_pages_has_its_licence() -> None:
    folder = Path(__file__).parents[3] / "python" / "ct2_triton" / "gateway" / "pages"
    found = sorted(folder.iterdir())
    assert len(found) == 5
    assert all("SPDX-License-Identifier" in file.read_text()[:200] for file in found)
