# SPDX-License-Identifier: Apache-2.0
"""The web server of an event: speakers push updates, viewers follow captions.

GET /speak?speaker=NAME        WebSocket: updates in, a reply to each out
GET /captions?to=de,fr         WebSocket: captions out; `last=ID` resumes after a message
GET /events?to=de,fr           captions as Server-Sent Events; Last-Event-ID resumes
GET /subtitles.vtt?to=de       finals up to now, as .vtt or .srt
GET /event                     its title and the names of its languages by code, as JSON
GET /qr.svg?url=ADDRESS        a QR code
GET /health                    "ok"
GET /  and  /demo              the pages
"""

from __future__ import annotations

import asyncio
import hmac
import json
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING
from weakref import WeakSet

from aiohttp import WSCloseCode, WSMsgType, web

from ct2_triton.client.tasks import aside, cancel_all
from ct2_triton.live.archive import SubtitleFiles
from ct2_triton.live.cues import CueLimits
from ct2_triton.live.hub import SOURCE
from ct2_triton.live.speakers import EventFullError
from ct2_triton.live.updates import LiveInputError, SegmentUpdate
from ct2_triton.web import page, server_log
from ct2_triton.web_connections import BoundedRunner
from ct2_triton.web_metrics import WebMetrics
from ct2_triton.web_origins import Origins

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from ct2_triton.live.hub import Hub
    from ct2_triton.live.speakers import Speaker, Speakers

# Characters or bytes: running text of 18 hours. Longer updates are refused with a reason.
_MAX_UPDATE = 1 << 20
_MAX_MESSAGE = 65_536  # of a viewer, who has nothing to send
_MAX_MESSAGE_BYTES = 16 * 2**20  # beyond it the connection is closed, with WebSocket's code 1009
_MAX_QR_BYTES = 1000  # a larger code is too fine for a projector
_HEARTBEAT_S = 20.0
_KEY_HEADER = "Authorization"
_SCRIPTS_AND_STYLE = ("captions.js", "viewer.js", "demo.js", "style.css")
_PAGES = {
    "/": "viewer.html",
    "/demo": "demo.html",
    **{f"/{name}": name for name in _SCRIPTS_AND_STYLE},
}
_EVENTS_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}


@dataclass(frozen=True)
class Access:
    """Access rights and limits.

    Attributes:
        speaker_key: Key that speakers must send; None: none.
        viewer_key: Key that viewers must send; None: none.
        max_viewers: Most viewers that are connected at a time.
        max_connections: Most connections at a time, including those of speakers and viewers.
        idle_s: Seconds within which the next request's header must arrive, from the start of a
            connection or its last response.
        allow_origins: Other origins whose pages may speak and read; `*` for all.
        host: Address that the server listens on.
        cue_limits: Limits of subtitle cues.
    """

    speaker_key: str | None = None
    viewer_key: str | None = None
    max_viewers: int = 1000
    max_connections: int = 1200
    idle_s: float = 75.0
    allow_origins: Sequence[str] = ()
    host: str = ""
    cue_limits: CueLimits = field(default_factory=CueLimits)


class CaptionServer:
    """One event on the web."""

    def __init__(
        self,
        hub: Hub,
        speakers: Speakers,
        languages: Mapping[str, str],
        access: Access,
        title: str = "",
    ) -> None:
        """Prepare the server; `languages` has the code for each name that viewers may use."""
        self._hub = hub
        self._title = title
        self._speakers = speakers
        codes = [*languages.values(), SOURCE]
        self._languages = {**languages, **{code: code for code in codes}}
        self._access = access
        self._subtitle_files = SubtitleFiles(hub, access.cue_limits)
        self._viewers = 0
        self._sockets: WeakSet[web.WebSocketResponse] = WeakSet()

    def runner(self, shutdown_s: float, metrics: WebMetrics | None = None) -> BoundedRunner:
        """Make the runner."""
        return BoundedRunner(
            self._application(),
            self._access.max_connections,
            metrics or WebMetrics("ct2_live"),
            keepalive_timeout=self._access.idle_s,
            shutdown_timeout=shutdown_s,
            logger=server_log(),
        )

    def _application(self) -> web.Application:
        app = web.Application()
        Origins(self._access.allow_origins, self._access.host).guard(app)
        app.on_shutdown.append(self._close_speakers)
        get = app.router.add_get
        for path, name in _PAGES.items():
            get(path, page(__package__, name, frame_ancestors="*", own_style=True))
        get("/health", _health)
        get("/event", self._event)
        get("/qr.svg", self._qr_code)
        get("/speak", self._speak)
        get("/captions", self._follow)
        get("/events", self._follow_events)
        get("/subtitles.{kind:vtt|srt}", self._subtitles)
        return app

    async def _close_speakers(self, _: web.Application) -> None:
        for socket in list(self._sockets):
            await socket.close(code=WSCloseCode.GOING_AWAY)

    async def _event(self, request: web.Request) -> web.Response:
        self._admit(request, self._access.viewer_key)
        names: dict[str, list[str]] = {}
        for name, code in self._languages.items():
            names.setdefault(code, []).append(name)
        return web.json_response({"title": self._title, "languages": names})

    async def _qr_code(self, request: web.Request) -> web.Response:
        self._admit(request, self._access.viewer_key)
        url = request.query.get("url", "")
        size = len(url.encode(errors="replace"))
        if not url.startswith(("http://", "https://")) or size > _MAX_QR_BYTES:
            raise web.HTTPBadRequest(
                text=f"url is {url[:80]!r} with {size} bytes; it must be an address with http or "
                f"https and at most {_MAX_QR_BYTES} bytes"
            )
        picture = await aside(_MAX_QR_BYTES, _qr_picture, url)  # a long one takes 0.1 s
        return web.Response(body=picture, content_type="image/svg+xml")

    async def _speak(self, request: web.Request) -> web.WebSocketResponse:
        self._admit(request, self._access.speaker_key)
        try:
            async with self._speakers.joined(request.query.get("speaker", "")) as speaker:
                return await self._listen(request, speaker)
        except LiveInputError as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        except EventFullError as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error

    async def _listen(self, request: web.Request, speaker: Speaker) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(heartbeat=_HEARTBEAT_S, max_msg_size=_MAX_MESSAGE_BYTES)
        await socket.prepare(request)
        self._sockets.add(socket)
        async for message in socket:
            if message.type in {WSMsgType.TEXT, WSMsgType.BINARY}:
                await socket.send_str(await _say(speaker, message.data))
        return socket

    async def _follow(self, request: web.Request) -> web.WebSocketResponse:
        languages = self._wanted(request)
        socket = web.WebSocketResponse(heartbeat=_HEARTBEAT_S, max_msg_size=_MAX_MESSAGE)
        with self._viewer():
            await socket.prepare(request)
            sending = asyncio.create_task(
                self._send_all(request.query.get("last"), languages, _if_any(socket.send_str))
            )
            sending.add_done_callback(lambda _: asyncio.ensure_future(socket.close()))
            async for _ in socket:  # viewers send nothing: wait until they disconnect
                pass
            await cancel_all([sending])
        return socket

    async def _follow_events(self, request: web.Request) -> web.StreamResponse:
        languages = self._wanted(request)
        last = request.headers.get("Last-Event-ID") or request.query.get("last")
        response = web.StreamResponse(headers=_EVENTS_HEADERS)

        async def send(message: str) -> None:
            event = f"id: {json.loads(message)['id']}\ndata: {message}\n\n" if message else ":\n\n"
            await response.write(event.encode())

        with self._viewer(), suppress(ConnectionError):  # the viewer has left
            await response.prepare(request)
            await self._send_all(last, languages, send)
        return response

    async def _send_all(
        self, last: str | None, languages: list[str], send: Callable[[str], Awaitable[None]]
    ) -> None:
        """Send messages one by one, so that a slow viewer delays only itself."""
        async with aclosing(self._hub.follow(last, languages, _HEARTBEAT_S)) as messages:
            async for message in messages:
                await send(message)

    @contextmanager
    def _viewer(self) -> Iterator[None]:
        """Count a viewer while it is connected; refuse it at the limit."""
        if self._viewers >= self._access.max_viewers:
            raise web.HTTPServiceUnavailable(
                text=f"{self._access.max_viewers} viewers are connected, which is the limit"
            )
        self._viewers += 1
        try:
            yield
        finally:
            self._viewers -= 1

    async def _subtitles(self, request: web.Request) -> web.Response:
        [language, *others] = self._wanted(request)
        if others:
            raise web.HTTPBadRequest(text="to names several languages; a file has one")
        kind = "vtt" if request.match_info["kind"] == "vtt" else "srt"
        text = await self._subtitle_files.text(language, kind)  # type: ignore[arg-type]
        content_type = "text/vtt" if kind == "vtt" else "application/x-subrip"
        return web.Response(text=text, content_type=content_type)

    def _wanted(self, request: web.Request) -> list[str]:
        """Read the languages that a viewer asks for."""
        self._admit(request, self._access.viewer_key)
        names = [name for name in request.query.get("to", "").split(",") if name]
        unknown = [name for name in names if name not in self._languages]
        if unknown or not names:
            raise web.HTTPBadRequest(
                text=f"to is {request.query.get('to', '')[:80]!r}; it must name some of "
                f"{', '.join(sorted({*self._languages.values()}))}"
            )
        return [self._languages[name] for name in names]

    def _admit(self, request: web.Request, key: str | None) -> None:
        """Refuse a request without the key: `Authorization: Bearer KEY` or `key=KEY`."""
        if key is None:
            return
        header = request.headers.get(_KEY_HEADER, "").removeprefix("Bearer ")
        given = header or request.query.get("key", "")
        if not hmac.compare_digest(given.encode(errors="replace"), key.encode()):
            raise web.HTTPUnauthorized(text="a key is needed: ?key=, or Authorization: Bearer")


def _qr_picture(url: str) -> bytes:
    import segno

    picture = BytesIO()
    segno.make_qr(url).save(picture, kind="svg", scale=8, light="white")
    return picture.getvalue()


async def _health(_: web.Request) -> web.Response:
    return web.Response(text="ok")


async def _say(speaker: Speaker, data: str | bytes) -> str:
    """Pass an update to a speaker, and return the reply."""
    if len(data) > _MAX_UPDATE:
        return _refused(f"the update has a length of {len(data)}; {_MAX_UPDATE} is allowed")
    try:
        update = SegmentUpdate.from_json(data)
        await speaker.say(update)
    except LiveInputError as error:
        return _refused(str(error))
    return json.dumps({"type": "taken", "segment": update.segment, "final": update.final})


def _refused(error: str) -> str:
    return json.dumps({"type": "refused", "error": error})


def _if_any(send: Callable[[str], Awaitable[None]]) -> Callable[[str], Awaitable[None]]:
    """Skip empty messages, because a WebSocket has its own pings."""

    async def send_some(message: str) -> None:
        if message:
            await send(message)

    return send_some
