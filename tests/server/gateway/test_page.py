# SPDX-License-Identifier: Apache-2.0
"""The gateway's pages in a real Chromium without a screen."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.gateway.conftest import GERMAN, SENTENCE, MakeSite, Site
from support.browser import chromium, needs_browser, run, until

pytestmark = [pytest.mark.server, needs_browser]

STATUS = "document.getElementById('status').textContent"
ANSWER = "document.getElementById('answer')"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


async def open_page(browser: Any, site: Site) -> None:
    await asyncio.to_thread(browser.get, site.url)
    await until(browser, STATUS, "Ready")


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


async def test_a_text_is_translated_and_its_language_found(browser: Any, site: Site) -> None:
    await open_page(browser, site)
    await choose(browser, "target", "de")
    await type_into(browser, "text", SENTENCE)
    await press(browser, "button[type=submit]")
    await until(browser, f"{ANSWER}.textContent", GERMAN)
    assert await run(browser, STATUS) == "Detected: English"
    assert await run(browser, f"{ANSWER}.lang") == "de"
    assert await run(browser, f"{ANSWER}.getAttribute('aria-live')") == "polite"
    assert await run(browser, "document.querySelectorAll('#alternatives li').length") == 2
    origins = "performance.getEntriesByType('resource').map((e) => new URL(e.name).origin)"
    assert set(await run(browser, origins)) == {site.url}


async def test_the_languages_are_swapped(browser: Any, site: Site) -> None:
    await open_page(browser, site)
    await choose(browser, "source", "de")
    await choose(browser, "target", "en")
    await press(browser, "#swap")
    values = "['source', 'target'].map((id) => document.getElementById(id).value)"
    assert await run(browser, values) == ["en", "de"]


async def test_markup_is_text_and_every_control_has_a_name(browser: Any, site: Site) -> None:
    await open_page(browser, site)
    await choose(browser, "source", "en")
    await choose(browser, "target", "de")
    await type_into(browser, "text", "<img src=x onerror=alert(1)>")
    await press(browser, "button[type=submit]")
    await until(browser, STATUS, "Done")
    assert await run(browser, f"{ANSWER}.children.length") == 0
    unnamed = (
        "[...document.querySelectorAll('select, textarea, input, button')].filter((one) => "
        "!(one.labels?.length || one.textContent.trim() || one.ariaLabel)).length"
    )
    assert await run(browser, unnamed) == 0


async def test_a_missing_key_is_said_and_a_right_one_helps(
    browser: Any, make_site: MakeSite
) -> None:
    site = await make_site(keys=["secret"])
    await open_page(browser, site)
    await choose(browser, "target", "de")
    await type_into(browser, "text", SENTENCE)
    await press(browser, "button[type=submit]")
    await until(browser, STATUS, "Please contact the server operator to get an API key")
    await type_into(browser, "key", "secret")
    await press(browser, "button[type=submit]")
    await until(browser, f"{ANSWER}.textContent", GERMAN)


async def test_the_api_can_be_read(browser: Any, site: Site) -> None:
    await asyncio.to_thread(browser.get, f"{site.url}/docs")
    await until(browser, STATUS, "LibreTranslate's API in front of ct2-triton.")
    titles = await run(browser, "[...document.querySelectorAll('h2')].map((e) => e.textContent)")
    assert "POST /translate" in titles
    assert "target" in await run(browser, "document.getElementById('routes').textContent")


def test_every_file_of_the_pages_has_its_licence() -> None:
    folder = Path(__file__).parents[3] / "python" / "ct2_triton" / "gateway" / "pages"
    found = sorted(folder.iterdir())
    assert len(found) == 5
    assert all("SPDX-License-Identifier" in file.read_text()[:200] for file in found)
