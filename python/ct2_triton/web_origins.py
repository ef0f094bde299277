# SPDX-License-Identifier: Apache-2.0
"""Which pages may use a server on this machine: its own, and those that its operator names.

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
    "Access-Control-Allow-Headers": "Authorization",
    "Access-Control-Allow-Methods": "GET",
    "Vary": "Origin",
}


class Origins:
    """Refuses requests of pages that are neither the server's own nor allowed."""

    def __init__(self, allowed: Collection[str] = (), host: str = "") -> None:
        """Remember what is allowed.

        Args:
            allowed: Origins of pages, as `origin` reads them. Their hosts are names of the server,
                too: behind a proxy its pages have the proxy's origin.
            host: What the server listens at; a name of the server, if it is one.
        """
        self._allowed = frozenset(allowed)
        hosts = {found[0] for one in self._allowed if (found := host_and_port(one))}
        self._names = {socket.gethostname().lower(), host.lower(), *hosts}
        self._logged: set[str] = set()

    def guard(self, app: web.Application) -> None:
        """Refuse such requests of an application; let allowed pages read the answers."""
        app.middlewares.append(self._check)
        app.on_response_prepare.append(self._answer)

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
        if request.method == "OPTIONS" and self._is_allowed(request):
            return web.Response(status=204)
        return await handler(request)

    async def _answer(self, request: web.Request, response: web.StreamResponse) -> None:
        if self._is_allowed(request):
            given = request.headers["Origin"]
            response.headers.update({"Access-Control-Allow-Origin": given} | _ANSWER_HEADERS)

    def _is_allowed(self, request: web.Request) -> bool:
        given = request.headers.get("Origin")
        return given is not None and (ANY_ORIGIN in self._allowed or given.lower() in self._allowed)

    def _refusal(self, request: web.Request) -> str | None:
        """Say why a request is refused; None if it is not."""
        headers = request.headers
        host, given = headers.get("Host", ""), headers.get("Origin")
        if ANY_ORIGIN in self._allowed:
            return None
        if host and not self._is_ours(host):
            return (
                f"Host is {host[:80]!r}, which is no name of this server; behind a proxy, name the "
                "address of its pages with --allow-origin"
            )
        if self._is_allowed(request):
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

    def _is_ours(self, host: str) -> bool:
        """Tell whether a name is one that no site can give to this machine."""
        found = host_and_port(f"http://{host}")
        if found is None:
            return False
        name = found[0]
        if "." not in name or name.endswith(".localhost") or name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _is_at(origin: str, host: str) -> bool:
    """Tell whether pages of an origin come from a server that is reached at a host."""
    found = host_and_port(origin)
    return found is not None and found == host_and_port(f"{origin.partition(':')[0]}://{host}")
