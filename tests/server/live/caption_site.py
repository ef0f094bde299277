# SPDX-License-Identifier: Apache-2.0
"""A caption server whose captions a test writes, and its pages in a browser."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from ct2_triton.live import Caption
from ct2_triton.live.hub import Hub
from ct2_triton.live.server import Access, CaptionServer
from support.browser import until

LANGUAGES = {"de": "deu_Latn", "ar": "arb_Arab"}
TITLE = "Wolves & <Bears>"


class Site:
    """A caption server whose captions the test writes."""

    def __init__(self) -> None:
        self.hub = Hub()
        self.port = 0
        self.puts = 0
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        access = Access(viewer_key="k&1")
        server = CaptionServer(self.hub, None, LANGUAGES, access, TITLE)  # type: ignore[arg-type]
        self._runner = server.runner(0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    def put(self, segment: str, target: str, text: str, tail: str = "", **more: Any) -> None:
        final = bool(more.get("final"))
        caption = Caption(segment, target, text, tail, final, more.get("revision", 1), time=1.0)
        self.hub.put(caption, 1.0)
        self.puts += 1

    @property
    def newest(self) -> str:
        """The id of the newest message."""
        return f"{self.hub.name}-{self.puts}"


def lines(language: str, part: str) -> str:
    where = f"[data-language={language}] .{part} p"
    return f"[...document.querySelectorAll('{where}')].map((line) => line.textContent)"


async def open_page(browser: Any, site: Site, path: str) -> None:
    mark = "&" if "?" in path else "?"
    await asyncio.to_thread(browser.get, f"{site.url}/{path}{mark}key=k%261")
    await until(browser, "document.getElementById('status').textContent", "Live")
