# SPDX-License-Identifier: Apache-2.0
"""What is computed of one client's long texts does not hold up the others."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import aiohttp
import pytest

from ct2_triton.gateway import file_routes
from ct2_triton.gateway.detection import Detector
from ct2_triton.terms import Terms, html_parts, html_translation, translation
from server.gateway.conftest import GOOD, SENTENCE, MakeSite, Site

pytestmark = pytest.mark.server

LONG = " ".join([SENTENCE] * 10)
HTML = {"q": f"<p>{LONG}</p><p>Hello <b>world</b></p>", "format": "html"}
FILE = {"file": f"<p>{LONG}</p>"}


async def _ask(site: Site, fields: dict[str, Any]) -> int:
    """Asks for a translation, or for that of a file; gives the status."""
    if "file" not in fields:
        return (await site.post("/translate", {**GOOD, **fields}))[0]
    form = aiohttp.FormData({"source": fields.get("source", "en"), "target": "de"})
    form.add_field("file", fields["file"].encode(), filename="page.html")
    return (await site.post("/translate_file", None, data=form))[0]


@pytest.mark.parametrize(
    ("place", "name", "fields"),
    [
        (html_translation, "read_parts", HTML),
        (html_translation, "_written", HTML),
        (html_translation, "_joined", HTML),
        (html_parts, "read_parts", {**HTML, "source": "auto"}),
        (Detector, "source_of", {"q": [LONG, SENTENCE], "source": "auto"}),
        (Terms, "find", {"q": LONG, "glossary": "club"}),
        (translation, "_judged", {"q": LONG, "glossary": "club"}),
        (file_routes, "read_file", FILE),
        (html_parts, "read_parts", {**FILE, "source": "auto"}),
        (Detector, "source_of", {**FILE, "source": "auto"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_others_are_answered_while_a_long_text_is_in_work(
    make_site: MakeSite,
    monkeypatch: pytest.MonkeyPatch,
    place: object,
    name: str,
    fields: dict[str, Any],
) -> None:
    site = await make_site(glossaries={"club": Terms(glossary={"world": "Erde"})})
    begun, may_end = threading.Event(), threading.Event()
    compute = getattr(place, name)

    def held(*arguments: Any) -> Any:
        begun.set()
        assert may_end.wait(20), "the loop stood still"
        return compute(*arguments)

    monkeypatch.setattr(place, name, held)
    asked = asyncio.create_task(_ask(site, fields))
    await asyncio.to_thread(begun.wait, 20)
    assert (await site.get("/languages"))[0] == 200
    assert not asked.done()
    may_end.set()
    assert await asked == 200
