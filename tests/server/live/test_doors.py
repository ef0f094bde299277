# SPDX-License-Identifier: Apache-2.0
"""Who reaches a ct2-live: pages of other sites, names that are not its own, idle connections."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from server.live.conftest import Start, finals

pytestmark = pytest.mark.server

SENTENCE = "Next week in Stockholm: fog."
FOREIGN = {"Origin": "http://evil.example"}
READS = ("captions?to=de", "events?to=de", "subtitles.vtt?to=de", "languages")


async def speak_well(web: aiohttp.ClientSession, url: str, **headers: str) -> None:
    """A program, or a page that is allowed, speaks and reads."""
    async with (
        web.ws_connect(f"{url}/speak?speaker=good", headers=headers) as speaker,
        web.ws_connect(f"{url}/captions?to=de", headers=headers) as viewer,
    ):
        await speaker.send_json({"segment": "1", "text": SENTENCE, "final": True})
        assert (await speaker.receive_json())["type"] == "taken"
        assert (await finals(viewer, {"deu_Latn"}))["deu_Latn"]["transcript"]


async def refusal(web: aiohttp.ClientSession, url: str, headers: dict[str, str]) -> str:
    async with web.get(url, headers=headers) as response:
        assert response.status == 403, url
        return await response.text()


async def test_a_page_of_another_site_neither_speaks_nor_reads(
    start: Start, web: aiohttp.ClientSession
) -> None:
    live = start()
    for path in ("speak?speaker=eve", "captions?to=de"):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await web.ws_connect(f"{live.url}/{path}", headers=FOREIGN)
        assert refused.value.status == 403
    for path in READS:
        said = await refusal(web, f"{live.url}/{path}", FOREIGN)
        assert "http://evil.example" in said
        assert "--allow-origin" in said
    # A picture or a script of another page has no Origin, but a browser says where it belongs.
    for site in ("cross-site", "same-site"):
        headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
        await refusal(web, f"{live.url}/event", headers)
    # A link and a frame are the browser going there.
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    async with web.get(f"{live.url}/", headers=headers) as response:
        assert response.status == 200
    await speak_well(web, live.url, Origin=live.url)
    assert live.stop() == 0


async def test_a_name_that_somebody_else_gave_this_machine_is_refused(
    start: Start, web: aiohttp.ClientSession
) -> None:
    """DNS rebinding: the page's own origin, and the machine's address."""
    live = start()
    port = live.url.rpartition(":")[2]
    for path in ("", *READS):
        rebound = {"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"}
        said = await refusal(web, f"{live.url}/{path}", rebound)
        assert "evil.example" in said
        assert "--allow-origin" in said
        await refusal(web, f"{live.url}/{path}", {"Host": "evil.example"})
    for host in (f"localhost:{port}", f"[::1]:{port}", f"10.0.0.7:{port}", f"ct2-live:{port}"):
        async with web.get(f"{live.url}/event", headers={"Host": host}) as response:
            assert response.status == 200, host
    await speak_well(web, live.url)
    assert live.stop() == 0


async def test_a_page_that_is_allowed_speaks_and_reads_also_through_a_proxy(
    start: Start, web: aiohttp.ClientSession
) -> None:
    live = start("--allow-origin", "https://talks.example", "--allow-origin", "null")
    await speak_well(web, live.url, Origin="https://talks.example", Host="talks.example")
    await refusal(web, f"{live.url}/event", FOREIGN)
    for origin in ("https://talks.example", "null"):
        async with web.get(f"{live.url}/events?to=de", headers={"Origin": origin}) as response:
            assert response.status == 200
            assert response.headers["Access-Control-Allow-Origin"] == origin
            assert response.headers["Vary"] == "Origin"
        asks: dict[str, Any] = {"Origin": origin, "Access-Control-Request-Method": "GET"}
        async with web.options(f"{live.url}/event", headers=asks) as response:
            assert response.status == 204
            assert "Authorization" in response.headers["Access-Control-Allow-Headers"]
    assert live.stop() == 0


@pytest.mark.parametrize("value", ["talks.example", "https://talks.example/", "https://a:x", ""])
async def test_an_origin_that_no_browser_sends_is_refused(command: list[str], value: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, "--allow-origin", value, stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    assert process.returncode == 2
    assert f"--allow-origin: {value!r} is not an origin" in said.decode()


async def connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


async def test_a_header_that_does_not_come_ends_the_connection(start: Start) -> None:
    """Nor one that comes slowly: server/gateway/test_connections.py."""
    live = start("--idle-timeout", "0.2")
    reader, writer = await connect(live.url)
    writer.write(b"GET /health HTTP/1.1\r\nX-Slow: ")
    assert await reader.read() == b""
    writer.close()
    assert live.stop() == 0


async def test_who_reads_is_not_idle(start: Start, web: aiohttp.ClientSession) -> None:
    live = start("--idle-timeout", "3")
    async with web.ws_connect(f"{live.url}/captions?to=de") as viewer:
        await asyncio.sleep(4)
        await speak_well(web, live.url)
        assert (await finals(viewer, {"deu_Latn"}))["deu_Latn"]["transcript"]
    assert live.stop() == 0


async def test_connections_beyond_the_bound_are_told_to_come_again(start: Start) -> None:
    """What comes after them: server/gateway/test_connections.py."""
    live = start("--max-connections", "1")
    first, held = await connect(live.url)
    held.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await first.readline()).startswith(b"HTTP/1.1 200 ")
    second, refused = await connect(live.url)
    assert (await second.readline()).startswith(b"HTTP/1.1 503 ")
    for writer in (held, refused):
        writer.close()
    assert live.stop() == 0
