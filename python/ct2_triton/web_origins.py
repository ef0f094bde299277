# SPDX-License-Identifier: Apache-2.0
"""Which pages may use a server on this machine, and by which names it may be called.

A page of any site can open WebSockets to addresses that only the visitor's browser reaches, and
send requests there. The browser says which page asks (`Origin`, `Sec-Fetch-Site`). With DNS
rebinding, a site gives its own name the address of this machine, so that its page counts as the
server's: therefore the name in `Host` has to be one that no site can take.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
from typing import TYPE_CHECKING

from aiohttp import web

from ct2_triton.arguments import ANY_ORIGIN, host_and_port

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

_LOG = logging.getLogger(__name__)
_MOST_LOGGED = 20
_ANSWER_HEADERS = {
    "Access-Control-Allow-Headers": "Authorization, Content-Type",
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Max-Age": "86400",
}


class Hosts:
    """The names of a server: those that no site can take, and those that its operator gives it."""

    def __init__(self, names: Collection[str]) -> None:
        """Keep the operator's names."""
        self._names = {socket.gethostname().lower(), *map(str.lower, names)}

    def has(self, host: str) -> bool:
        """Return whether the `Host` of a request is a name of the server."""
        found = host_and_port(f"http://{host}")
        if found is None:
            return False
        name = found[0].rstrip(".")  # the dot of the root
        return "." not in name or name.endswith(".localhost") or name in self._names or _is_ip(name)


class Readers:
    """Lets pages of other origins read the answers (CORS)."""

    def __init__(self, allowed: Collection[str] = ()) -> None:
        """Remember the origins, as `origin` reads them; `*` is all of them."""
        self._allowed = frozenset(allowed)

    def let_in(self, app: web.Application) -> None:
        """Answer preflight requests of browsers, and add headers to an application's responses."""
        app.middlewares.append(self._answer_in_advance)
        app.on_response_prepare.append(self._mark)

    @property
    def is_anybody(self) -> bool:
        """Whether pages of every origin may read."""
        return ANY_ORIGIN in self._allowed

    def are_allowed(self, request: web.Request) -> bool:
        """Return whether the page that asks may read the answer."""
        return self.is_anybody or request.headers.get("Origin", "").lower() in self._allowed

    @web.middleware
    async def _answer_in_advance(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        if request.method == "OPTIONS" and self.are_allowed(request):
            return web.Response(status=204)
        return await handler(request)

    async def _mark(self, request: web.Request, response: web.StreamResponse) -> None:
        if self._allowed and not self.is_anybody:
            response.headers["Vary"] = "Origin"
        if self.are_allowed(request):
            given = "*" if self.is_anybody else request.headers["Origin"]
            response.headers.update({"Access-Control-Allow-Origin": given} | _ANSWER_HEADERS)


class Origins:
    """Refuses requests of pages that are neither the server's own nor allowed."""

    def __init__(self, allowed: Collection[str] = (), host: str = "") -> None:
        """Remember which origins of pages are allowed; their hosts are names of the server, too.

        Behind a proxy its pages have the proxy's origin. What the server listens at is a name of
        it, if it is one.
        """
        self._readers = Readers(allowed)
        self._hosts = Hosts([host, *(found[0] for one in allowed if (found := host_and_port(one)))])
        self._logged: set[str] = set()

    def guard(self, app: web.Application) -> None:
        """Refuse such requests of an application; let allowed pages read the answers."""
        app.middlewares.append(self._check)
        self._readers.let_in(app)

    @web.middleware
    async def _check(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        if reason := self._refusal(request):
            if reason not in self._logged and len(self._logged) < _MOST_LOGGED:
                self._logged.add(reason)
                _LOG.warning("refused: %s", reason)
            raise web.HTTPForbidden(text=reason)
        return await handler(request)

    def _refusal(self, request: web.Request) -> str | None:
        """Return why a request is refused; None if it is not."""
        headers = request.headers
        host, given = headers.get("Host", ""), headers.get("Origin")
        if self._readers.is_anybody:
            return None
        if host and not self._hosts.has(host):
            return (
                f"Host is {host[:80]!r}, which is not a name of this server; with a proxy, name "
                "the address of its pages with --allow-origin"
            )
        if self._readers.are_allowed(request):
            return None
        if given is not None and not _is_at(given, host):
            return (
                f"Origin is {given[:80]!r}, and this server is at {host[:80]!r}; name pages of "
                "other sites, or of a proxy, with --allow-origin"
            )
        is_from_page = headers.get("Sec-Fetch-Mode", "navigate") != "navigate"
        if given is None and is_from_page and headers.get("Sec-Fetch-Site", "").endswith("-site"):
            return "the request is from a page of another site"
        return None


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_at(origin: str, host: str) -> bool:
    """Return whether pages of an origin come from a server that is reached at a host."""
    found = host_and_port(origin)
    return found is not None and found == host_and_port(f"{origin.partition(':')[0]}://{host}")
