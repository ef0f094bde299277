# SPDX-License-Identifier: Apache-2.0
"""What a gateway answers while something is slow, full or gone, and that it answers again."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from ct2_triton.client import TranslationClient
from ct2_triton.gateway.catalog import Route
from ct2_triton.gateway.server import Gateway
from ct2_triton.gateway.translation import translate_plain
from ct2_triton.terms import RankedTexts
from server.gateway.conftest import GERMAN, GOOD, MakeSite
from support.servers import ServerStack

pytestmark = pytest.mark.server


async def test_a_body_that_does_not_come_is_not_waited_for(make_site: MakeSite) -> None:
    site = await make_site(timeout_s=0.2)
    host, port = site.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = "POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: 100\r\n\r\n{{".encode())
    assert b" 408 " in await reader.readline()
    writer.close()
    await (await make_site()).good()


async def test_a_translation_that_takes_too_long_is_given_up(make_site: MakeSite) -> None:
    async def at_once(
        client: TranslationClient, text: str, route: Route, *_: object
    ) -> RankedTexts:
        asked = {"source": route.source, "targets": route.target}
        found = await client.translate(text, timeout_s=1e-9, **asked)
        return RankedTexts([found.text], [found])

    site = await make_site(formats={"text": translate_plain, "at-once": at_once})
    await site.good()  # it is connected
    status, answer = await site.post("/translate", {**GOOD, "format": "at-once"})
    assert status == 504
    assert answer["error"].startswith("Cannot translate text: ")
    await site.good()


async def test_a_request_has_a_deadline_and_frees_its_slot_then(make_site: MakeSite) -> None:
    async def never(*_: object) -> RankedTexts:
        await asyncio.Event().wait()
        return RankedTexts([], [])

    formats = {"text": translate_plain, "never": never}
    site = await make_site(formats=formats, timeout_s=0.2, max_requests=1)
    for _ in range(2):
        asked = {**GOOD, "format": "never"}
        status, answer = await site.post("/translate", None, params=asked)
        assert status == 504
        assert answer == {"error": "Cannot translate text: it took more than 0.2 s"}
    await (await make_site()).good()


async def test_who_goes_away_frees_the_slot(
    make_site: MakeSite, caplog: pytest.LogCaptureFixture
) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def never(*_: object) -> RankedTexts:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return RankedTexts([], [])

    site = await make_site(formats={"text": translate_plain, "never": never}, max_requests=1)
    asking = asyncio.create_task(site.post("/translate", {**GOOD, "format": "never"}))
    await started.wait()
    asking.cancel()
    await ended.wait()
    while (await site.post("/translate", GOOD))[0] == 429:
        pass  # the slot is freed soon after
    await site.good()
    ours = [one for one in caplog.records if one.name.startswith(("aiohttp", "ct2_triton"))]
    assert [one for one in ours if one.levelname == "ERROR"] == []


async def test_a_failure_of_the_gateway_is_500_and_no_secret(make_site: MakeSite) -> None:
    async def fail(*_: object) -> RankedTexts:
        raise ZeroDivisionError("a secret")

    site = await make_site(formats={"text": translate_plain, "failing": fail})
    status, answer = await site.post("/translate", {**GOOD, "format": "failing"})
    assert (status, answer) == (500, {"error": "The gateway has failed; its log says why"})
    await site.good()


async def test_more_requests_than_allowed_are_told_to_come_again(make_site: MakeSite) -> None:
    started, gate = asyncio.Event(), asyncio.Event()

    async def wait_first(*given: Any) -> RankedTexts:
        started.set()
        await gate.wait()
        return await translate_plain(*given)

    site = await make_site(formats={"text": wait_first}, max_requests=1)
    first = asyncio.create_task(site.post("/translate", GOOD))
    await started.wait()
    async with site.session.post(f"{site.url}/translate", json=GOOD) as response:
        assert response.status == 429
        assert response.headers["Retry-After"] == "1"
        assert (await response.json())["error"].startswith("Slowdown: ")
    assert (await site.get("/languages"))[0] == 200
    gate.set()
    assert await first == (200, {"translatedText": GERMAN})
    await site.good()


async def test_a_text_that_the_server_refuses_is_the_callers(make_site: MakeSite) -> None:
    site = await make_site(max_chars=2_000_000)
    status, answer = await site.post("/translate", {**GOOD, "q": "a " * 600_000})
    assert status == 400
    assert "max_text_bytes" in answer["error"]
    await site.good()


async def test_the_server_behind_may_be_killed_and_come_back(
    repository: Path, make_site: MakeSite, caplog: pytest.LogCaptureFixture
) -> None:
    with ServerStack() as stack:
        server = stack.start(repository)
        site = await make_site(url=server.grpc_url)
        await _until(200, lambda: site.post("/translate", GOOD))
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        status, answer = await site.post("/translate", GOOD)
        assert status == 503
        assert answer["error"].startswith("Cannot translate text: ")
        error = (await _until(503, lambda: site.get("/health")))["error"]
        assert "the translation server does not answer" in error
        assert (await site.get("/languages"))[0] == 200
        stack.start(repository, ports=server.ports)
        # Who asks while the connection is made again is told to come again.
        await _until(200, lambda: site.post("/translate", GOOD))
        await _until(200, lambda: site.get("/health"))
        await site.good()
    said = [one.message for one in caplog.records if "the server answers again" in one.message]
    assert said
    assert "Connection refused" not in answer["error"] + error


async def _until(wanted: int, ask: Callable[[], Awaitable[tuple[int, Any]]]) -> Any:
    """Asks until the status is the wanted one, for a minute at most; 200 and 503 there are."""
    for _ in range(600):
        status, answer = await ask()
        if status == wanted:
            return answer
        assert status in {200, 503}
        await asyncio.sleep(0.1)
    raise AssertionError(f"never {wanted}")


async def test_questions_for_health_that_come_together_are_one_to_the_server(
    make_site: MakeSite,
) -> None:
    """Also when the one who came first goes away. The question lasts until all have come."""
    arrived = questions = 0
    asked, all_there = asyncio.Event(), asyncio.Event()
    get_health, wait_until_ready = Gateway._get_health, TranslationClient.wait_until_ready

    async def arrive(gateway: Gateway, visitor: web.Request) -> web.Response:
        nonlocal arrived
        arrived += 1
        if arrived == 21:
            all_there.set()
        return await get_health(gateway, visitor)

    async def count(client: TranslationClient, timeout_s: float) -> None:
        nonlocal questions
        questions += 1
        asked.set()
        await all_there.wait()
        await wait_until_ready(client, timeout_s)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gateway, "_get_health", arrive)
        patch.setattr(TranslationClient, "wait_until_ready", count)
        site = await make_site(url="localhost:1")
        first = asyncio.create_task(site.get("/health"))
        await asked.wait()
        others = [asyncio.create_task(site.get("/health")) for _ in range(20)]
        first.cancel()
        answers = await asyncio.gather(*others)
    assert {status for status, _ in answers} == {503}
    assert questions == 1
    good = await make_site()
    assert await good.get("/health") == (200, {"status": "ok"})
    await good.good()


async def test_a_server_that_is_not_there_is_a_sentence_for_visitors_and_a_log_line(
    make_site: MakeSite, caplog: pytest.LogCaptureFixture
) -> None:
    site = await make_site(url="localhost:1")
    sentence = "Cannot translate text: the translation server does not answer at the moment; try"
    for _ in range(3):
        async with site.session.post(f"{site.url}/translate", json=GOOD) as response:
            assert response.status == 503
            assert response.headers["Retry-After"] == "1"
            assert await response.json() == {"error": f"{sentence} again later"}
    assert await site.get("/health") == (503, {"error": f"{sentence} again later"})
    [line] = [one.message for one in caplog.records if one.name.startswith("ct2_triton.gateway")]
    assert line.startswith("a request failed: ServerUnreachableError: ")
    assert "localhost:1" in line
    for unasked in ({**GOOD, "q": "5:45"}, {**GOOD, "target": "en"}):
        assert (await site.post("/translate", unasked))[0] == 200
    logged = [one.message for one in caplog.records if one.name.startswith("ct2_triton.gateway")]
    assert logged == [line]  # the server has not answered
    await (await make_site()).good()
