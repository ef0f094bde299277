# SPDX-License-Identifier: Apache-2.0
"""The caption pages in a real Chromium without a screen."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.bench.workload import SENTENCES
from ct2_triton.live import SegmentUpdate
from ct2_triton.live.hub import SOURCE, Hub
from recognizer_simulator import RecognizerSimulator
from server.live.caption_site import LANGUAGES, Site, lines, open_page
from support.browser import needs_browser, run, set_languages, until

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

pytestmark = needs_browser


async def test_text_appears_changes_and_settles(browser: Any, site: Site) -> None:
    await open_page(browser, site, "?to=de,ar")
    site.put("1", "deu_Latn", "Guten", " Tag")
    site.put("1", "fra_Latn", "nobody asked for it")
    await until(browser, lines("deu_Latn", "open"), ["Guten Tag"])
    assert await run(browser, "document.querySelector('.tail').textContent") == " Tag"
    site.put("1", "deu_Latn", "Guten Morgen", " zu", revision=2)
    await until(browser, lines("deu_Latn", "open"), ["Guten Morgen zu"])
    site.put("1", "deu_Latn", "Guten Morgen <b>&amp; Hallo</b>!", final=True, revision=3)
    site.put("1", "arb_Arab", "صباح الخير!", final=True)
    # Markup in a caption is text.
    await until(browser, lines("deu_Latn", "settled"), ["Guten Morgen <b>&amp; Hallo</b>!"])
    assert await run(browser, lines("deu_Latn", "open")) == []
    await until(browser, lines("arb_Arab", "settled"), ["صباح الخير!"])
    line = "getComputedStyle(document.querySelector('[data-language=%s] .settled p')).direction"
    assert await run(browser, line % "arb_Arab") == "rtl"
    assert await run(browser, line % "deu_Latn") == "ltr"
    settled = "document.querySelector('[data-language=arb_Arab] .settled')"
    assert await run(browser, f"{settled}.getAttribute('aria-live')") == "polite"
    assert await run(browser, f"{settled}.closest('[lang]').lang") == "arb-Arab"
    # What still changes is not read out.
    live = "document.querySelector('.open').getAttribute('aria-live')"
    assert await run(browser, live) == "off"
    origins = "performance.getEntriesByType('resource').map((e) => new URL(e.name).origin)"
    assert set(await run(browser, origins)) == {site.url}


async def test_the_page_comes_back_where_it_was(browser: Any, site: Site) -> None:
    site.put("1", "deu_Latn", "Eins", final=True)
    await open_page(browser, site, "?to=de")
    await until(browser, lines("deu_Latn", "settled"), ["Eins"])
    status = "document.getElementById('status').textContent"
    await site.stop()
    await until(browser, status, "Connecting again …")
    site.put("2", "deu_Latn", "Zwei", final=True)
    await site.start()
    await until(browser, lines("deu_Latn", "settled"), ["Eins", "Zwei"])
    # Another process at the same place: what was settled stays, what was open has no end.
    site.put("3", "deu_Latn", "Dr")
    await until(browser, lines("deu_Latn", "open"), ["Dr"])
    await site.stop()
    site.hub = Hub()
    site.put("1", "deu_Latn", "Neu", final=True)
    await site.start()
    await until(browser, lines("deu_Latn", "settled"), ["Eins", "Zwei", "Neu"])
    assert await run(browser, lines("deu_Latn", "open")) == []
    # A server that stays away may have ended with its event; it is asked now and then.
    await site.stop()
    await until(browser, status, "Connecting again …")
    await run(browser, "page.follower.failures = 10")
    await until(browser, status, "The event may be over")
    await until(browser, "page.screen.wanted", wanted=False)
    await site.start()
    await run(browser, "(clearTimeout(page.follower.timer), page.follower.connect())")
    await until(browser, status, "Live")
    await until(browser, "page.screen.wanted", wanted=True)
    # The end is the end: the page does not ask again.
    site.hub.end()
    await until(browser, status, "The event is over")
    await run(browser, "window.WebSocket = function () { window.asked = true; }")
    await asyncio.sleep(0.7)  # the first pause of a page that comes back has 0.5 s
    assert not await run(browser, "window.asked")
    assert await run(browser, status) == "The event is over"


async def test_the_address_may_ask_for_what_is_not_there(browser: Any, site: Site) -> None:
    chosen = "[...document.querySelectorAll('input:checked')].map((box) => box.value)"
    await open_page(browser, site, "?to=xx,ar&size=abc")
    assert await run(browser, chosen) == ["arb_Arab"]
    size = "parseFloat(getComputedStyle(document.querySelector('.captions')).fontSize)"
    assert await run(browser, size) == pytest.approx(2.2 * 16)
    waiting = "getComputedStyle(document.querySelector('.captions'), '::before').content"
    assert await run(browser, waiting) == '"Waiting for the first words …"'
    site.put("1", "arb_Arab", "مرحبا", final=True)
    await until(browser, waiting, "none")
    small = (
        "[...document.querySelectorAll('header label, header button')].filter((one) => "
        "Math.min(one.offsetWidth, one.offsetHeight) < 24).length"
    )
    assert await run(browser, small) == 0
    # Without a language that is there: the browser's own, wherever it stands in the list.
    await set_languages(browser, "ar-EG,en")
    await open_page(browser, site, "?to=xx")
    assert await run(browser, chosen) == ["arb_Arab"]
    await set_languages(browser, "en-US")
    await open_page(browser, site, "")
    assert await run(browser, chosen) == ["deu_Latn"]


async def test_an_overlay_has_two_lines_and_a_style_of_its_program(
    browser: Any, site: Site
) -> None:
    await open_page(browser, site, "?to=de&overlay=1")
    for number in range(9):
        site.put(str(number), "deu_Latn", f"Satz {number}", final=True)
    await until(browser, f"{lines('deu_Latn', 'settled')}.length", 9)
    style = "getComputedStyle(document.%s).%s"
    for where in ("documentElement", "body", "querySelector('.captions')"):
        assert await run(browser, style % (where, "backgroundColor")) == "rgba(0, 0, 0, 0)"
    assert await run(browser, style % ("querySelector('header')", "display")) == "none"
    seen = (
        "(() => { const box = document.querySelector('.captions').getBoundingClientRect();"
        "return [...document.querySelectorAll('.settled p')].filter((line) => {"
        "const at = line.getBoundingClientRect();"
        "return at.top >= box.top - 1 && at.bottom <= box.bottom + 1; })"
        ".map((line) => line.textContent); })()"
    )
    await until(browser, seen, ["Satz 7", "Satz 8"])
    # As OBS adds the CSS of its user.
    added = (
        "(() => { const style = document.createElement('style');"
        "style.textContent = 'body { color: rgb(1, 2, 3) !important; }';"
        "document.head.append(style); })()"
    )
    await run(browser, added)
    assert await run(browser, style % ("body", "color")) == "rgb(1, 2, 3)"


async def test_languages_and_letters_by_keyboard(browser: Any, site: Site) -> None:
    site.put("1", "arb_Arab", "مرحبا", final=True)
    await open_page(browser, site, "?to=de")
    keys = webdriver.Keys

    def press(*given: str) -> None:
        actions = webdriver.ActionChains(browser)
        actions.send_keys(*given).perform()

    order = "[...document.querySelectorAll('input')].map((box) => [box.value, box.checked])"
    assert await run(browser, order) == [
        ["deu_Latn", True], ["arb_Arab", False], ["source", False],
    ]  # fmt: skip
    await asyncio.to_thread(press, keys.TAB, keys.TAB, keys.TAB, keys.SPACE)  # menu, de, ar
    await until(browser, lines("arb_Arab", "settled"), ["مرحبا"])
    assert "to=deu_Latn%2Carb_Arab" in await run(browser, "location.search")
    size = "parseFloat(getComputedStyle(document.querySelector('.captions')).fontSize)"
    before = await run(browser, size)
    await asyncio.to_thread(press, keys.TAB, keys.TAB, keys.TAB, keys.ENTER)
    assert await run(browser, size) == pytest.approx(1.25 * before, rel=0.01)


async def test_the_page_is_filled_and_languages_have_their_names(browser: Any, site: Site) -> None:
    for languages in ("de", "de,ar,source"):
        await open_page(browser, site, f"?to={languages}")
        ends = "[...document.querySelectorAll('section')].map((box) => Math.round(%s.bottom))"
        bottoms = await run(browser, ends % "box.getBoundingClientRect()")
        assert len(bottoms) == len(languages.split(","))
        assert abs(max(bottoms) - await run(browser, "innerHeight")) <= 1
    assert await run(browser, "['arb_Arab', 'deu_Latn', 'xx'].map(nameOf)") == [
        "Arabic", "German", "xx",
    ]  # fmt: skip
    assert await run(browser, "nameOf('zho_Hant') !== nameOf('zho_Hans')")


@pytest.mark.parametrize(
    ("direction", "codes"),
    [
        (
            "rtl",
            "arb_Arab ar ar_AR ara fa fas fa_IR he_IL heb heb_Hebr ur_PK urd ckb ps_AF pa_PK yi",
        ),
        ("ltr", "deu_Latn de de_DE deu en_XX zho_Hant zh_CN kas_Deva tat_Cyrl pa zh_Hant_TW"),
        ("auto", "source text xx"),  # also of a model without codes: each line has its own
    ],
)
async def test_codes_of_every_family_have_their_direction(
    browser: Any, site: Site, direction: str, codes: str
) -> None:
    await open_page(browser, site, "?to=de")
    found = await run(
        browser, f"Object.fromEntries('{codes}'.split(' ').map((c) => [c, directionOf(c)]))"
    )
    assert found == dict.fromkeys(codes.split(), direction)


async def test_many_captions_keep_the_page_small(browser: Any, site: Site) -> None:
    """Two hours of talk, at once; the newest lines are in sight."""
    await open_page(browser, site, "?to=de")
    nodes: list[int] = []
    number = 0
    for _ in range(3):
        for _ in range(800):
            number += 1
            site.put(str(number), "deu_Latn", "Das ist ein", " Satz")
            if number % 20 == 0:
                await asyncio.sleep(0.001)
            site.put(str(number), "deu_Latn", f"Satz {number}", final=True, revision=2)
        last = "document.querySelector('.settled').lastChild?.textContent"
        await until(browser, last, f"Satz {number}")
        nodes.append(await run(browser, "document.querySelectorAll('*').length"))
    assert nodes[0] == nodes[1] == nodes[2] < 300
    box = "document.querySelector('.captions')"
    below = f"{box}.scrollHeight - {box}.scrollTop - {box}.clientHeight < 80"
    await until(browser, below, True)


SPEAKERS, MINUTES = 16, 2


def moments() -> Iterator[list[SegmentUpdate]]:
    """Two minutes of speech: at each moment the next update of each speaker."""
    sentences = SENTENCES.read_text(encoding="utf-8").splitlines()
    speeches = [
        RecognizerSimulator(f"speaker{number}", 1).updates(sentences[number:], 60 * MINUTES)
        for number in range(SPEAKERS)
    ]
    for moment in zip_longest(*speeches):
        yield [update for update in moment if update is not None]


async def test_two_minutes_of_updates_keep_memory_flat(browser: Any, site: Site) -> None:
    """As many as 16 speakers give, as fast as the page takes them: it is given each one.

    First each language is filled, so that what the page keeps on purpose is there.
    """
    await open_page(browser, site, "demo")
    for number in range(250):
        for language in (*LANGUAGES.values(), SOURCE):
            site.put(f"old-{number}", language, "This has been said before.", final=True)
    await page_has(browser, site)
    held, updates = [], 0
    for number, moment in enumerate(moments()):
        for update in moment:
            words = update.text.split()
            settled = " ".join(words) if update.final else " ".join(words[: len(words) // 2])
            for language in (*LANGUAGES.values(), SOURCE):
                site.put(update.segment, language, settled, "" if update.final else " …",
                         final=update.final, revision=number + 1)  # fmt: skip
        updates += len(moment)
        await page_has(browser, site)
        if number % 100 == 99:
            held.append(await held_by_page(browser))
    assert updates > 4000
    assert len(held) >= 3
    for what, bound in (("nodes", 1.5), ("jsEventListeners", 1.5), ("usedSize", 1.5)):
        series = [one[what] for one in held]
        assert max(series[1:]) < bound * series[0], (what, series)


async def page_has(browser: Any, site: Site) -> None:
    """Waits until the page has taken the newest caption."""
    script = """
        const [id, done] = arguments;
        (function look() { page.follower.last === id ? done() : setTimeout(look); })();
    """
    browser.set_script_timeout(120)
    await asyncio.to_thread(browser.execute_async_script, script, site.newest)


async def held_by_page(browser: Any) -> dict[str, float]:
    """Counts what a page holds, also outside its document, after a collection."""
    held: dict[str, float] = {}
    for command in ("HeapProfiler.collectGarbage", "Memory.getDOMCounters", "Runtime.getHeapUsage"):
        held |= await asyncio.to_thread(browser.execute_cdp_cmd, command, {})
    return held


async def test_the_demo_page_shows_delay_and_erasure(browser: Any, site: Site) -> None:
    await open_page(browser, site, "demo")
    site.put("1", SOURCE, "good day")
    await until(browser, lines("source", "open"), ["good day"])
    site.put("1", "deu_Latn", "Gute Nacht")
    await until(browser, lines("deu_Latn", "open"), ["Gute Nacht"])
    site.put("1", "deu_Latn", "Guten Tag", final=True, revision=2)
    await until(browser, lines("deu_Latn", "settled"), ["Guten Tag"])
    title = await run(browser, "document.querySelector('[data-language=deu_Latn] h2').textContent")
    assert title.startswith("German")
    assert "ms" in title
    assert title.endswith("erasure 1.00")


async def test_without_the_key_the_page_says_so(browser: Any, site: Site) -> None:
    await asyncio.to_thread(browser.get, site.url)
    status = "document.getElementById('status').textContent"
    await until(browser, status, "a key is needed: ?key=, or Authorization: Bearer")
    await open_page(browser, site, "?to=de")


def test_every_file_of_the_pages_has_its_licence() -> None:
    folder = Path(__file__).parents[3] / "python" / "ct2_triton" / "live" / "pages"
    found = sorted(folder.iterdir())
    assert len(found) >= 6
    assert all("SPDX-License-Identifier" in file.read_text()[:200] for file in found)
