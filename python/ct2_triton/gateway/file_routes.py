# SPDX-License-Identifier: Apache-2.0
"""The routes POST /translate_file and GET /download_file."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from aiohttp import web

from ct2_triton.client.tasks import aside
from ct2_triton.errors import Ct2TritonError
from ct2_triton.gateway.files import read_file
from ct2_triton.gateway.refusals import FAILED, Refusal
from ct2_triton.gateway.translation import AUTO, Wanted
from ct2_triton.translate.formats import write_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ct2_triton.gateway.admission import Admission
    from ct2_triton.gateway.files import Shelf, TextFile
    from ct2_triton.gateway.refusals import Refusals
    from ct2_triton.gateway.translation import Translator

LINES = "application/x-ndjson"
_PATH = "/download_file/{name}"
_TEXTS_A_STEP = 64
_LOG = logging.getLogger(__name__)
# Browsers do not show a file as a page of the gateway, and caches do not keep it.
_PLAIN = {
    "Cache-Control": "private, no-store",
    "Content-Type": "text/plain; charset=utf-8",
    "X-Content-Type-Options": "nosniff",
}


class FileRoutes:
    """Translates files, and serves the translated files."""

    def __init__(
        self, translator: Translator, admission: Admission, refusals: Refusals, shelf: Shelf
    ) -> None:
        """Keep the parts of the gateway that the routes use."""
        self._translator = translator
        self._admission = admission
        self._refusals = refusals
        self._shelf = shelf

    def add_to(self, app: web.Application) -> None:
        """Add the routes to an application."""
        app.router.add_post("/translate_file", self._translate)
        app.router.add_get(_PATH, self._download)

    async def _translate(self, request: web.Request) -> web.StreamResponse:
        fields = await self._admission.fields(request)
        name, content = fields.file("file")
        glossary = fields.choice("glossary", "")
        wanted = Wanted([], fields.text("source"), fields.text("target"), glossary=glossary)
        last: dict[str, Any] = {}
        with self._admission.slot():
            file = await aside(len(content), read_file, name, content)
            self._admission.check_file(file.texts)
            wanted = replace(wanted, texts=file.texts, format=file.format)
            steps = self._steps(request, file, await self._with_source(wanted))
            if LINES in request.headers.get("Accept", ""):
                return await self._send_lines(request, steps)
            async for step in steps:
                last = step
        return web.json_response(last)

    async def _with_source(self, wanted: Wanted) -> Wanted:
        """Detect the language of the whole file if it is not named."""
        if wanted.source != AUTO:
            return wanted
        sources = self._translator.catalog.sources
        text = "\n".join(await wanted.read_texts())
        found = await aside(len(text), self._translator.detector.source_of, text, sources)
        return replace(wanted, source=found.language)

    async def _steps(
        self, request: web.Request, file: TextFile, wanted: Wanted
    ) -> AsyncIterator[dict[str, Any]]:
        """Translate some texts at a time; yield progress, and at the end the file's address."""
        texts: list[str] = []
        lost: dict[str, None] = {}
        for start in range(0, len(wanted.texts), _TEXTS_A_STEP):
            some = replace(wanted, texts=wanted.texts[start : start + _TEXTS_A_STEP])
            answers = await self._admission.in_time(self._translator.translate(some))
            texts += [one.text for one in answers]
            lost.update(dict.fromkeys(term for one in answers for term in one.lost))
            yield {"done": len(texts), "of": len(wanted.texts)}
        target = self._translator.code_of(wanted.target)
        composed = await aside(sum(map(len, texts)), file.compose, texts)
        kept = await self._shelf.put(file.name_in(target), composed)
        address = self._admission.limits.address or _origin(request)
        path = quote(_PATH.format(name=kept))
        end: dict[str, Any] = {"translatedFileUrl": f"{address}{path}"}
        yield {**end, "lostTerms": list(lost)} if lost else end

    async def _download(self, request: web.Request) -> web.StreamResponse:
        found = self._shelf.find(request.match_info["name"])
        if found is None:
            raise Refusal(404, "There is no such file, or not any more")
        path, name = found
        disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
        headers = {"Content-Disposition": disposition, **_PLAIN}
        return web.FileResponse(path, headers=headers)

    async def _send_lines(
        self, request: web.Request, steps: AsyncIterator[dict[str, Any]]
    ) -> web.StreamResponse:
        """Send each step as a line of JSON; an error ends the response."""
        response = web.StreamResponse(headers={"Content-Type": LINES})
        with suppress(ConnectionError):  # the client has disconnected
            await response.prepare(request)
            async for step in self._with_error(steps):
                await response.write(f"{write_json(step)}\n".encode())
        return response

    async def _with_error(
        self, steps: AsyncIterator[dict[str, Any]]
    ) -> AsyncIterator[dict[str, Any]]:
        try:
            async for step in steps:
                yield step
        except Ct2TritonError as error:
            yield {"error": str(self._refusals.of(error))}
        except Exception:
            _LOG.exception("a file's translation failed")
            yield {"error": FAILED}


def _origin(request: web.Request) -> str:
    """Return the server's address as the client named it; one that named none gets the socket's."""
    host = request.headers.get("Host")
    if not host and request.transport is not None:
        name, port = request.transport.get_extra_info("sockname")[:2]
        host = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    return f"{request.scheme}://{host}"
