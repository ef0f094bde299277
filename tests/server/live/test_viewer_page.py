# SPDX-License-Identifier: Apache-2.0
"""The page for viewers in Chromium, on a desk and on a phone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import segno

from server.live.caption_site import TITLE, Site, lines, open_page
from support.browser import needs_browser, run, until

pytestmark = needs_browser
DESK, PHONE = (1280, 800), (390, 844)
STATUS = "document.getElementById('status').textContent"
LONG = " ".join(["Ein ziemlich langer Satz, der auf jedem Bildschirm umbricht"] * 3)


@pytest.fixture(params=[DESK, PHONE], ids=["desk", "phone"])
async def screen(request: pytest.FixtureRequest, browser: Any) -> AsyncIterator[tuple[int, int]]:
    width, height = request.param
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    await asyncio.to_thread(browser.execute_cdp_cmd, "Emulation.setDeviceMetricsOverride", metrics)
    yield request.param
    await asyncio.to_thread(browser.execute_cdp_cmd, "Emulation.clearDeviceMetricsOverride", {})


def top(segment: str) -> str:
    """Where a line stands on the screen."""
    line = f"document.querySelector('[data-segment=\"{segment}\"]')"
    return f"Math.round({line}.getBoundingClientRect().top)"


async def click(browser: Any, selector: str) -> None:
    await run(browser, f"document.querySelector('{selector}').click()")


@pytest.mark.usefixtures("screen")
async def test_what_is_read_does_not_move_when_a_final_comes(browser: Any, site: Site) -> None:
    """Neither if another speaker ends first, nor if the final is shorter than what was shown."""
    site.put("old", "deu_Latn", "Guten Tag.", final=True)
    await open_page(browser, site, "?to=de")
    for segment in ("anna", "ben"):
        site.put(segment, "deu_Latn", "Das ist", f" {LONG}")
    await until(browser, f"{lines('deu_Latn', 'open')}.length", 2)
    before = [await run(browser, top(one)) for one in ("old", "anna", "ben")]
    assert before == sorted(before)
    site.put("ben", "deu_Latn", "Das ist alles.", final=True, revision=2)
    await until(browser, lines("deu_Latn", "settled"), ["Guten Tag.", "Das ist alles."])
    assert [await run(browser, top(one)) for one in ("old", "anna", "ben")] == before
    site.put("anna", "deu_Latn", f"Das ist {LONG}", final=True, revision=2)
    await until(browser, f"{lines('deu_Latn', 'settled')}.length", 3)
    assert [await run(browser, top(one)) for one in ("old", "anna", "ben")] == before
    # What comes next takes the room that is left.
    site.put("next", "deu_Latn", "Weiter.", final=True)
    await until(browser, f"{lines('deu_Latn', 'settled')}.length", 4)
    assert [await run(browser, top(one)) for one in ("old", "anna", "ben")] == before


@pytest.mark.usefixtures("screen")
async def test_one_who_reads_earlier_lines_stays_there_and_comes_back(
    browser: Any, site: Site
) -> None:
    await open_page(browser, site, "?to=de")
    for number in range(198):
        site.put(str(number), "deu_Latn", f"Satz {number}", final=True)
    await until(browser, f"{lines('deu_Latn', 'settled')}.length", 198)
    button = "document.querySelector('.newest')"
    assert await run(browser, f"{button}.hidden")
    box = "document.querySelector('.captions')"
    await run(browser, f"{box}.scrollTop = {box}.scrollHeight / 2")
    await until(browser, f"{button}.hidden", wanted=False)
    before = await run(browser, top("99"))
    for number in range(198, 210):  # more than the page keeps in sight of one who follows
        site.put(str(number), "deu_Latn", f"Satz {number}", final=True)
    newest = "[...document.querySelectorAll('.settled p')].at(-1).textContent"
    await until(browser, newest, "Satz 209")
    assert await run(browser, top("99")) == before
    await click(browser, ".newest")
    below = f"{box}.scrollHeight - {box}.scrollTop - {box}.clientHeight < 2"
    await until(browser, below, wanted=True)
    await until(browser, f"{button}.hidden", wanted=True)
    site.put("210", "deu_Latn", LONG, final=True)
    await until(browser, newest, LONG)
    await until(browser, below, wanted=True)
    assert len(await run(browser, lines("deu_Latn", "settled"))) == 200
    # Larger text leaves the newest line in sight.
    await run(browser, "document.getElementById('larger').click()")
    await until(browser, below, wanted=True)


async def test_the_menu_leaves_the_screen_to_the_captions(
    browser: Any, site: Site, screen: tuple[int, int]
) -> None:
    await open_page(browser, site, "?to=de")
    height = "document.querySelector('header').offsetHeight"
    menu = "document.getElementById('menu').open"
    assert await run(browser, menu) == (screen == DESK)  # there is room for it
    if screen == PHONE:
        await click(browser, "summary")
    small = (
        "[...document.querySelectorAll('label, button, summary, a')]"
        ".filter((one) => one.checkVisibility())"
        ".filter((one) => Math.min(one.offsetWidth, one.offsetHeight) < 24)"
        ".map((one) => one.outerHTML)"
    )
    assert await run(browser, small) == []
    opened = await run(browser, height)
    await click(browser, "summary")
    await until(browser, menu, wanted=False)
    assert await run(browser, height) < min(opened, 0.11 * screen[1])
    assert await run(browser, small) == []
    wide = "document.documentElement.scrollWidth"
    assert await run(browser, wide) <= screen[0]


async def test_the_page_has_the_title_of_the_event(browser: Any, site: Site) -> None:
    for path in ("?to=de", "demo"):
        await open_page(browser, site, path)
        assert await run(browser, "document.title") == TITLE
        assert await run(browser, "document.querySelector('h1').textContent") == TITLE


@pytest.mark.usefixtures("screen")
async def test_a_qr_code_leads_others_to_the_page(browser: Any, site: Site) -> None:
    """It has the key, and leaves language and size to those who scan it."""
    await open_page(browser, site, "?to=de&size=3")
    read = "performance.getEntriesByType('resource').map((one) => one.name)"
    await click(browser, "#share")
    picture = "document.querySelector('dialog img')"
    await until(browser, f"{picture}.naturalWidth > 100", wanted=True)
    asked = [name for name in await run(browser, read) if "qr.svg" in name]
    address = f"{site.url}/?key=k%261"
    assert await run(browser, "document.querySelector('dialog a').href") == address
    async with aiohttp.ClientSession() as web, web.get(asked[0]) as response:
        assert response.status == 200
        assert str(response.url.query["url"]) == address
    seen = f"(() => {{ const box = {picture}.getBoundingClientRect();"
    seen += "return box.top >= 0 && box.bottom <= innerHeight && box.right <= innerWidth; })()"
    assert await run(browser, seen)
    await click(browser, "dialog button")
    await until(browser, "document.querySelector('dialog').open", wanted=False)


@pytest.mark.parametrize("url", ["", "javascript:alert(1)", f"http://a/{'x' * 1000}"])
async def test_a_qr_code_is_of_an_address(site: Site, url: str) -> None:
    good = {"url": "http://a/", "key": "k&1"}
    async with aiohttp.ClientSession() as web:
        async with web.get(f"{site.url}/qr.svg", params=good | {"url": url}) as response:
            assert response.status == 400
            assert "it must be an address with http or https" in await response.text()
        async with web.get(f"{site.url}/qr.svg", params={"url": "http://a/"}) as response:
            assert response.status == 401
        async with web.get(f"{site.url}/qr.svg", params=good) as response:
            assert response.content_type == "image/svg+xml"
            assert "<svg" in await response.text()


async def test_others_are_answered_while_a_qr_code_is_made(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def held(*_: Any) -> Any:
        begun.set()
        assert may_end.wait(20), "the loop stood still"
        return segno.make("1")

    monkeypatch.setattr(segno, "make_qr", held)
    good = {"url": "http://a/", "key": "k&1"}
    async with aiohttp.ClientSession() as web:
        asked = asyncio.create_task(web.get(f"{site.url}/qr.svg", params=good))
        await asyncio.to_thread(begun.wait, 20)
        async with web.get(f"{site.url}/health") as response:
            assert response.status == 200
        assert not asked.done()
        may_end.set()
        async with await asked as response:
            assert "<svg" in await response.text()


async def saved_in(folder: Path) -> Path:
    """Waits for a text that the browser has saved."""
    for _ in range(2000):
        if found := await asyncio.to_thread(lambda: list(folder.glob("*.txt"))):
            break
        await asyncio.sleep(0.05)
    return found[0]


async def test_the_transcript_is_there_when_the_server_has_gone(
    browser: Any, site: Site, tmp_path: Path
) -> None:
    folder = {"behavior": "allow", "downloadPath": str(tmp_path)}
    await asyncio.to_thread(browser.execute_cdp_cmd, "Browser.setDownloadBehavior", folder)
    await open_page(browser, site, "?to=de,ar")
    said = [f"Satz {number} <b>&amp;" for number in range(230)]  # more lines than the page shows
    for number, text in enumerate(said):
        site.put(str(number), "deu_Latn", text, final=True)
    site.put("open", "deu_Latn", "Noch nicht", " fertig")
    await until(browser, f"{lines('deu_Latn', 'settled')}.length", 200)
    site.hub.end()
    await until(browser, STATUS, "The event is over")
    await site.stop()
    await click(browser, "[data-language=deu_Latn] .save")
    file = await saved_in(tmp_path)
    assert file.name.startswith("Wolves & ")
    assert file.name.endswith(", German.txt")
    assert file.read_text() == "\n".join([TITLE, "German", "", *said, ""])


async def test_the_screen_stays_on_while_captions_come(browser: Any, site: Site) -> None:
    await open_page(browser, site, "?to=de")
    held = "page.screen.lock?.released === false"
    await until(browser, held, wanted=True)
    await click(browser, "input:checked")  # no language is left
    await until(browser, held, wanted=False)
    await click(browser, "input")
    await until(browser, held, wanted=True)
    site.hub.end()
    await until(browser, STATUS, "The event is over")
    await until(browser, held, wanted=False)


async def test_a_screen_reader_hears_what_is_settled(browser: Any, site: Site) -> None:
    """The log of settled lines is in the tree that screen readers get, with its lines."""
    await open_page(browser, site, "?to=de")
    site.put("1", "deu_Latn", "Guten Tag.", final=True)
    await until(browser, lines("deu_Latn", "settled"), ["Guten Tag."])
    tree = await asyncio.to_thread(browser.execute_cdp_cmd, "Accessibility.getFullAXTree", {})
    nodes = {node["nodeId"]: node for node in tree["nodes"] if not node["ignored"]}
    [log] = [node for node in nodes.values() if node["role"]["value"] == "log"]
    assert {one["name"]: one["value"]["value"] for one in log["properties"]}["live"] == "polite"
    assert nodes[log["childIds"][0]]["role"]["value"] == "paragraph"
