# SPDX-License-Identifier: Apache-2.0
"""The web server: LibreTranslate's routes, and pages of its own.

POST /translate, /detect            texts in, translations or languages out
GET  /languages, /frontend/settings what there is
GET  /health                        whether the server behind answers
POST /translate_file, /suggest      refused: this gateway has neither
GET  /spec, /docs                   the API as OpenAPI has it; the same to read
GET  /                              a page to translate with
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web

from ct2_triton.client.tasks import in_time
from ct2_triton.errors import Ct2TritonError
from ct2_triton.gateway.bodies import read_fields
from ct2_triton.gateway.openapi import document
from ct2_triton.gateway.refusals import Refusal, refusal_of
from ct2_triton.gateway.translation import AUTO, Wanted
from ct2_triton.web import page, server_log
from ct2_triton.web_connections import BoundedRunner
from ct2_triton.web_origins import Hosts, Readers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from ct2_triton.gateway.bodies import Fields
    from ct2_triton.gateway.translation import Answer, Translator

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_PAGES = {
    "/": "translate.html",
    "/docs": "docs.html",
    **{f"/{name}": name for name in ("translate.js", "docs.js", "style.css")},
}
_LOG = logging.getLogger(__name__)
_BYTES_A_CHARACTER = 12  # of JSON that is escaped: two surrogates, six letters each
_OTHER_BYTES = 65_536
_HEALTH_S = 2.0


@dataclass(frozen=True)
class Limits:
    """What one gateway does, and for whom.

    Attributes:
        keys: Keys, one of which requests must carry; none: nothing is asked for.
        max_chars: Characters of all texts of a request.
        max_texts: Texts of a request.
        max_alternatives: What `alternatives` may be.
        max_requests: Requests that are translated at a time.
        max_connections: Connections at a time.
        idle_s: Seconds until the next request's header has come, from the start of a connection or
            its last answer.
        timeout_s: Seconds a request may take to come, and then to be translated.
        allow_origins: Pages of which other origins may read answers; `*` for all.
        hosts: Names that the server is called by in `Host`, beside its addresses and names that no
            site can take; None: every name.
    """

    keys: Sequence[str] = ()
    max_chars: int = 100_000
    max_texts: int = 1000
    max_alternatives: int = 5
    max_requests: int = 256
    max_connections: int = 500
    idle_s: float = 75.0
    timeout_s: float = 60.0
    allow_origins: Sequence[str] = ()
    hosts: Sequence[str] | None = None


class Gateway:
    """LibreTranslate's API in front of a translator."""

    def __init__(self, translator: Translator, limits: Limits) -> None:
        """Prepare the server.

        Args:
            translator: What translates.
            limits: What is allowed.
        """
        self._translator = translator
        self._limits = limits
        self._hosts = None if limits.hosts is None else Hosts(limits.hosts)
        self._busy = 0
        self._health: asyncio.Task[tuple[float, Refusal | None]] | None = None

    def runner(self, shutdown_s: float) -> BoundedRunner:
        """Make the runner. It ends a request when whoever asked has gone.

        Args:
            shutdown_s: Seconds that requests have at its end.
        """
        return BoundedRunner(
            self._application(),
            self._limits.max_connections,
            keepalive_timeout=self._limits.idle_s,
            shutdown_timeout=shutdown_s,
            access_log=None,
            logger=server_log(),
            handler_cancellation=True,
        )

    def _application(self) -> web.Application:
        most = _BYTES_A_CHARACTER * self._limits.max_chars + _OTHER_BYTES
        middlewares = [self._answer_errors, self._check_host]
        app = web.Application(middlewares=middlewares, client_max_size=most)
        Readers(self._limits.allow_origins).let_in(app)
        for path, name in _PAGES.items():
            app.router.add_get(path, page(__package__, name, frame_ancestors="'none'"))
        app.router.add_get("/languages", self._languages)
        app.router.add_get("/frontend/settings", self._settings)
        app.router.add_get("/health", self._get_health)
        app.router.add_get("/spec", self._spec)
        app.router.add_post("/translate", self._translate)
        app.router.add_post("/detect", self._detect)
        app.router.add_post("/translate_file", _refuse("Files translation is disabled here."))
        app.router.add_post("/suggest", _refuse("Suggestions are disabled on this server."))
        return app

    @web.middleware
    async def _answer_errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer every error as LibreTranslate does."""
        try:
            return await handler(request)
        except Ct2TritonError as error:
            refusal = refusal_of(error)
            return _error(refusal.status, str(refusal), refusal.headers)
        except web.HTTPException as error:
            allow = error.headers.get("Allow")
            text = f"{error.reason}: {request.method} {request.path[:80]}"
            return _error(error.status, text, {"Allow": allow} if allow else {})
        except Exception:
            _LOG.exception("%s %s failed", request.method, request.path[:80])
            return _error(500, "The gateway has failed; its log says why", {})

    @web.middleware
    async def _check_host(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse names that a site may have given to this machine's address (DNS rebinding)."""
        host = request.headers.get("Host", "")
        if self._hosts is not None and host and not self._hosts.has(host):
            said = f"Host is {host[:80]!r}, which is no name of this server"
            raise Refusal(403, f"{said}; its operator can allow it with --allowed-host")
        return await handler(request)

    async def _translate(self, request: web.Request) -> web.Response:
        fields = await self._fields(request)
        q = fields.texts("q")
        texts = [q] if isinstance(q, str) else q
        wanted = Wanted(
            texts,
            fields.text("source"),
            fields.text("target"),
            fields.choice("format", "text"),
            fields.count("alternatives", self._limits.max_alternatives),
        )
        self._check_size(texts)
        with self._slot():
            answers = await self._in_time(self._translator.translate(wanted))
        return web.json_response(_translated(wanted, answers, is_list=isinstance(q, list)))

    async def _detect(self, request: web.Request) -> web.Response:
        fields = await self._fields(request)
        text = fields.text("q")
        self._check_size([text])
        found = self._translator.detector.detect(text)
        return web.json_response([asdict(one) for one in found])

    async def _languages(self, _: web.Request) -> web.Response:
        spoken = self._translator.catalog.languages
        return web.json_response(
            [
                {"code": code, "name": spoken[code].name, "targets": spoken[code].targets}
                for code in sorted(spoken)
            ]
        )

    async def _settings(self, _: web.Request) -> web.Response:
        catalog = self._translator.catalog
        target = next(iter(catalog.languages[catalog.sources[0]].roads))
        return web.json_response(
            {
                "charLimit": self._limits.max_chars,
                "frontendTimeout": 500,  # ms that a page waits for the next letter
                "apiKeys": bool(self._limits.keys),
                "keyRequired": bool(self._limits.keys),
                "suggestions": False,
                "filesTranslation": False,
                "supportedFilesFormat": [],
                "language": {
                    "source": {"code": AUTO, "name": "Auto Detect"},
                    "target": {"code": target, "name": catalog.languages[target].name},
                },
            }
        )

    async def _get_health(self, _: web.Request) -> web.Response:
        """Ask the server behind, once in a second at most; all who wait share the answer."""
        known = self._health
        if known is None or (known.done() and time.monotonic() - known.result()[0] >= 1.0):
            self._health = known = asyncio.create_task(self._ask_health())
        refusal = (await asyncio.shield(known))[1]  # who goes away does not end it for the others
        if refusal is not None:
            raise Refusal(refusal.status, str(refusal))
        return web.json_response({"status": "ok"})

    async def _ask_health(self) -> tuple[float, Refusal | None]:
        """Ask; give the time of the answer, and what is wrong."""
        refusal = None
        try:
            for client in self._translator.clients.values():
                await client.wait_until_ready(_HEALTH_S)
        except Ct2TritonError as error:
            refusal = Refusal(503, f"the server behind does not answer: {error}")
        return time.monotonic(), refusal

    async def _spec(self, _: web.Request) -> web.Response:
        translator = self._translator
        return web.json_response(document(translator.catalog, self._limits, translator.formats))

    async def _fields(self, request: web.Request) -> Fields:
        """Read a request's fields, and let it in."""
        fields = await read_fields(request, self._limits.timeout_s)
        keys = self._limits.keys
        if not keys:
            return fields
        header = request.headers.get("Authorization", "").removeprefix("Bearer ")
        given = (fields.key() or header).encode(errors="replace")
        if not given:
            raise Refusal(403, "Please contact the server operator to get an API key")
        if not any([hmac.compare_digest(given, key.encode()) for key in keys]):  # noqa: C419
            raise Refusal(403, "Invalid API key")
        return fields

    def _check_size(self, texts: Sequence[str]) -> None:
        for size, limit in (
            (len(texts), self._limits.max_texts),
            (sum(map(len, texts)), self._limits.max_chars),
        ):
            if size > limit:
                raise Refusal(
                    400, f"Invalid request: request ({size}) exceeds text limit ({limit})"
                )

    async def _in_time(self, work: Awaitable[Sequence[Answer]]) -> Sequence[Answer]:
        """Wait for the translations of a request, all of them together as long as allowed."""
        limit = self._limits.timeout_s
        try:
            return await in_time(work, limit)
        except asyncio.TimeoutError as error:
            raise Refusal(504, f"Cannot translate text: it took more than {limit:g} s") from error

    @contextmanager
    def _slot(self) -> Iterator[None]:
        """Count a request while it is translated."""
        if self._busy >= self._limits.max_requests:
            raise Refusal(429, f"Slowdown: {self._busy} requests are under way, which is the most")
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1


def _translated(wanted: Wanted, answers: Sequence[Answer], *, is_list: bool) -> dict[str, Any]:
    """Write an answer: lists where a list was asked for."""
    members: dict[str, list[Any]] = {"translatedText": [one.text for one in answers]}
    if wanted.source == AUTO:
        detected = [one.detected for one in answers]
        members["detectedLanguage"] = [asdict(one) for one in detected if one is not None]
    if wanted.alternatives:
        members["alternatives"] = [list(one.alternatives) for one in answers]
    return {name: values if is_list else values[0] for name, values in members.items()}


def _refuse(text: str) -> Handler:
    async def refuse(_: web.Request) -> web.Response:
        raise Refusal(403, text)

    return refuse


def _error(status: int, text: str, headers: Mapping[str, str]) -> web.Response:
    return web.json_response({"error": text}, status=status, headers=headers)
