# SPDX-License-Identifier: Apache-2.0
"""The web server: LibreTranslate's routes, and the gateway's own pages.

POST /translate, /detect            texts in, translations or languages out
GET  /languages, /frontend/settings languages and settings
GET  /health                        whether the Triton server answers
POST /translate_file                a file in, the address of its translation out
POST /suggest                       refused: this gateway takes no suggestions
GET  /spec, /docs                   the API as OpenAPI, and as a page
GET  /                              a page to translate with
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web

from ct2_triton.client.tasks import aside
from ct2_triton.errors import Ct2TritonError, ServerUnreachableError
from ct2_triton.gateway.admission import Admission
from ct2_triton.gateway.file_routes import FileRoutes
from ct2_triton.gateway.files import SUFFIXES, Shelf
from ct2_triton.gateway.openapi import document
from ct2_triton.gateway.refusals import FAILED, Refusal, Refusals
from ct2_triton.gateway.translation import AUTO, Wanted
from ct2_triton.translate.formats import write_json
from ct2_triton.web import page, server_log
from ct2_triton.web_connections import BoundedRunner
from ct2_triton.web_metrics import WebMetrics
from ct2_triton.web_origins import Hosts, Readers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from ct2_triton.gateway.admission import Limits
    from ct2_triton.gateway.translation import Answer, Translator

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_PAGES = {
    "/": "translate.html",
    "/docs": "docs.html",
    **{f"/{name}": name for name in ("translate.js", "docs.js", "style.css")},
}
_LOG = logging.getLogger(__name__)
_HEALTH_S = 2.0
# Characters are not escaped, as in LibreTranslate.
_json = partial(web.json_response, dumps=write_json)


class Gateway:
    """LibreTranslate's API, answered by a translator."""

    def __init__(self, translator: Translator, limits: Limits, files: Path | None = None) -> None:
        """Prepare the server; without the folder `files`, files are not translated."""
        self._limits = limits
        self._admission = Admission(limits)
        self._refusals = Refusals()
        self._translator = replace(translator, answered=self._refusals.end)
        self._shelf = Shelf(files) if files else None
        self._hosts = None if limits.hosts is None else Hosts(limits.hosts)
        self._health: asyncio.Task[tuple[float, Refusal | None]] | None = None

    def runner(self, shutdown_s: float, metrics: WebMetrics | None = None) -> BoundedRunner:
        """Make the runner. It ends a request when the client disconnects."""
        return BoundedRunner(
            self._application(),
            self._limits.max_connections,
            metrics or WebMetrics("ct2_gateway"),
            keepalive_timeout=self._limits.idle_s,
            shutdown_timeout=shutdown_s,
            logger=server_log(),
            handler_cancellation=True,
        )

    def _application(self) -> web.Application:
        middlewares = [self._answer_errors, self._check_host]
        app = web.Application(middlewares=middlewares, client_max_size=self._limits.max_bytes)
        Readers(self._limits.allow_origins).let_in(app)
        for path, name in _PAGES.items():
            app.router.add_get(path, page(__package__, name, frame_ancestors="'none'"))
        app.router.add_get("/languages", self._languages)
        app.router.add_get("/frontend/settings", self._settings)
        app.router.add_get("/health", self._get_health)
        app.router.add_get("/spec", self._spec)
        app.router.add_post("/translate", self._translate)
        app.router.add_post("/detect", self._detect)
        if self._shelf:
            FileRoutes(self._translator, self._admission, self._refusals, self._shelf).add_to(app)
        else:
            refuse = _refuse("Files translation are disabled on this server.")
            app.router.add_post("/translate_file", refuse)
        app.router.add_post("/suggest", _refuse("Suggestions are disabled on this server."))
        return app

    @web.middleware
    async def _answer_errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer every error as LibreTranslate does."""
        try:
            return await handler(request)
        except Ct2TritonError as error:
            refusal = self._refusals.of(error)
            return _error(refusal.status, str(refusal), refusal.headers)
        except web.HTTPRequestEntityTooLarge as error:
            most = f"{self._limits.max_bytes:,} bytes ({self._limits.max_chars:,} characters)"
            return _error(error.status, f"Invalid request: a body may have up to {most}", {})
        except web.HTTPException as error:
            allow = error.headers.get("Allow")
            text = f"{error.reason}: {request.method} {request.path[:80]}"
            return _error(error.status, text, {"Allow": allow} if allow else {})
        except Exception:
            _LOG.exception("%s %s failed", request.method, request.path[:80])
            return _error(500, FAILED, {})

    @web.middleware
    async def _check_host(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse host names that a site may have assigned to this machine (DNS rebinding)."""
        host = request.headers.get("Host", "")
        if self._hosts is not None and host and not self._hosts.has(host):
            said = f"Host is {host[:80]!r}, which is not a name of this server"
            raise Refusal(403, f"{said}; its operator can allow it with --allowed-host")
        return await handler(request)

    async def _translate(self, request: web.Request) -> web.Response:
        fields = await self._admission.fields(request)
        q = fields.texts("q")
        texts = [q] if isinstance(q, str) else q
        wanted = Wanted(
            texts,
            fields.text("source"),
            fields.text("target"),
            fields.choice("format", "text"),
            fields.count("alternatives", self._limits.max_alternatives),
            fields.choice("glossary", ""),
            fields.switch("quality"),
        )
        self._admission.check_texts(texts)
        with self._admission.slot():
            answers = await self._admission.in_time(self._translator.translate(wanted))
        return _json(_translated(wanted, answers, is_list=isinstance(q, list)))

    async def _detect(self, request: web.Request) -> web.Response:
        fields = await self._admission.fields(request)
        text = fields.text("q")
        self._admission.check_texts([text])
        found = await aside(len(text), self._translator.detector.detect, text)
        return _json([asdict(one) for one in found])

    async def _languages(self, _: web.Request) -> web.Response:
        spoken = self._translator.catalog.languages
        return _json(
            [
                {"code": code, "name": spoken[code].name, "targets": spoken[code].targets}
                for code in sorted(spoken)
            ]
        )

    async def _settings(self, _: web.Request) -> web.Response:
        catalog = self._translator.catalog
        target = next(iter(catalog.languages[catalog.sources[0]].routes))
        return _json(
            {
                "charLimit": self._limits.max_chars,
                "frontendTimeout": 500,  # ms that a page waits for the next keystroke
                "apiKeys": bool(self._limits.keys),
                "alternativesLimit": self._limits.max_alternatives,
                "keyRequired": bool(self._limits.keys),
                "suggestions": False,
                "filesTranslation": self._shelf is not None,
                "supportedFilesFormat": list(SUFFIXES) if self._shelf else [],
                "glossaries": list(self._translator.glossaries),
                "language": {
                    "source": {"code": AUTO, "name": "Auto Detect"},
                    "target": {"code": target, "name": catalog.languages[target].name},
                },
            }
        )

    async def _get_health(self, _: web.Request) -> web.Response:
        """Ask the Triton server, at most once per second; waiting requests share the answer."""
        known = self._health
        if known is None or (known.done() and time.monotonic() - known.result()[0] >= 1.0):
            self._health = known = asyncio.create_task(self._ask_health())
        refusal = (await asyncio.shield(known))[1]  # a disconnect must not cancel it
        if refusal is not None:
            raise Refusal(refusal.status, str(refusal))
        return _json({"status": "ok"})

    async def _ask_health(self) -> tuple[float, Refusal | None]:
        """Ask the Triton server; return the time of the answer, and the refusal if it fails."""
        try:
            for client in self._translator.clients.values():
                await client.wait_until_ready(_HEALTH_S)
        except Ct2TritonError as error:
            return time.monotonic(), self._refusals.of(ServerUnreachableError(str(error)))
        self._refusals.end()
        return time.monotonic(), None

    async def _spec(self, _: web.Request) -> web.Response:
        translator = self._translator
        has_files = self._shelf is not None
        return _json(
            document(
                translator.catalog,
                self._limits,
                translator.formats,
                translator.glossaries,
                has_files=has_files,
            )
        )


def _translated(wanted: Wanted, answers: Sequence[Answer], *, is_list: bool) -> dict[str, Any]:
    """Build the response: lists for a request with a list."""
    members: dict[str, list[Any]] = {"translatedText": [one.text for one in answers]}
    if wanted.source == AUTO:
        detected = [one.detected for one in answers]
        members["detectedLanguage"] = [asdict(one) for one in detected if one is not None]
    if wanted.alternatives:
        members["alternatives"] = [list(one.alternatives) for one in answers]
    if wanted.quality:
        verdicts = [one.verdict for one in answers]
        members["quality"] = [round(one.quality, 4) for one in verdicts]
        members["qualityFlags"] = [list(one.flags) for one in verdicts]
        members["qualityNotComputed"] = [list(one.not_computed) for one in verdicts]
    if any(one.lost for one in answers):
        members["lostTerms"] = [list(one.lost) for one in answers]
    return {name: values if is_list else values[0] for name, values in members.items()}


def _refuse(text: str) -> Handler:
    async def refuse(_: web.Request) -> web.Response:
        raise Refusal(403, text)

    return refuse


def _error(status: int, text: str, headers: Mapping[str, str]) -> web.Response:
    return _json({"error": text}, status=status, headers=headers)
