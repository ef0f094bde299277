# SPDX-License-Identifier: Apache-2.0
"""A ct2-live that is killed and started again: subtitles and viewers lose nothing."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import aiohttp
import pysubs2
import pytest

from ct2_triton.serve import TritonServer
from server.live.conftest import Start, finals
from support.commands import run
from support.servers import suspended
from support.web_command import WebCommand

pytestmark = pytest.mark.server

FIRST, SECOND = "Next week in Stockholm: fog.", "Next week in London: rain."


async def say(web: aiohttp.ClientSession, live: WebCommand, text: str, time: float) -> Any:
    """Says a final under one name and waits for its translation; gives the newest message."""
    async with (
        web.ws_connect(f"{live.url}/captions?to=de,source") as viewer,
        web.ws_connect(f"{live.url}/speak?speaker=anna") as speaker,
    ):
        await speaker.send_json({"segment": "1", "text": text, "final": True, "time": time})
        assert (await speaker.receive_json())["type"] == "taken"
        seen: dict[str, dict[str, Any]] = {}
        while set(seen) != {"deu_Latn", "source"}:
            message = await viewer.receive_json()
            if message["final"] and text in (message["source"], message["transcript"]):
                seen[message["target"]] = message
        return seen["deu_Latn"]


def kill(live: WebCommand) -> str:
    """Kills it, and gives its port."""
    live.process.kill()
    live.process.wait()
    return live.url.rpartition(":")[2]


async def test_an_event_goes_on_after_a_crash_and_overwrites_nothing(
    start: Start, web: aiohttp.ClientSession, tmp_path: Path
) -> None:
    (tmp_path / "source.vtt").write_text("of an earlier event")
    live = start("--subtitles", str(tmp_path))
    newest = await say(web, live, FIRST, 1)
    port = kill(live)
    with (tmp_path / ".ct2-live.jsonl").open("a") as journal:
        journal.write('{"number": 7, "capt')  # the crash cut a line off
    again = start("--subtitles", str(tmp_path), "--port", port, stderr=subprocess.PIPE)
    # One who comes back gets what is new; one who is new gets all.
    async with web.ws_connect(f"{again.url}/captions?to=source&last={newest['id']}") as viewer:
        async with web.ws_connect(f"{again.url}/speak?speaker=anna") as speaker:
            await speaker.send_json({"segment": "1", "text": SECOND, "final": True, "time": 5})
            await speaker.receive_json()
        message = (await finals(viewer, {"source"}))["source"]
        if message["transcript"] == FIRST:  # it came after the caption whose id is given
            message = (await finals(viewer, {"source"}))["source"]
    assert (message["segment"], message["transcript"]) == ("anna~2/1", SECOND)
    assert message["event"] == newest["event"]
    async with web.ws_connect(f"{again.url}/captions?to=source") as viewer:
        both = [(await finals(viewer, {"source"}))["source"]["segment"] for _ in range(2)]
    assert both == ["anna/1", "anna~2/1"]
    assert again.stop() == 0
    assert again.process.stderr is not None
    assert "the event in" in again.process.stderr.read()
    assert (tmp_path / "source.vtt").read_text() == "of an earlier event"
    subtitles = (tmp_path / "source-2.vtt").read_text()
    assert FIRST in subtitles
    assert SECOND in subtitles
    # That event has ended: the next start begins another, with files of its own.
    third = start("--subtitles", str(tmp_path))
    await say(web, third, SECOND, 1)
    assert third.stop() == 0
    assert FIRST not in (tmp_path / "source-3.vtt").read_text()
    assert (tmp_path / "source-2.vtt").read_text() == subtitles


async def test_a_segment_that_grows_for_hours_goes_on_after_a_crash(
    start: Start, web: aiohttp.ClientSession, tmp_path: Path
) -> None:
    """Each sentence has one subtitle, though the text is longer than an update may be."""
    sentences = [f"The bus leaves at {number}." for number in range(200)]
    assert len(" ".join(sentences)) > 4000

    async def speak(live: WebCommand, first: int, last: int, *, is_end: bool) -> None:
        async with web.ws_connect(f"{live.url}/speak?speaker=anna") as speaker:
            for end in range(first, last + 1, 20):
                said = {"segment": "talk", "text": " ".join(sentences[:end])}
                await speaker.send_json({**said, "final": is_end and end == last})
                assert (await speaker.receive_json())["type"] == "taken"

    live = start("--subtitles", str(tmp_path), "--mode", "final")
    await speak(live, 20, 180, is_end=False)
    kill(live)
    again = start("--subtitles", str(tmp_path), "--mode", "final")
    await speak(again, 180, 200, is_end=True)
    while again.stop() != 0:  # not all is translated in time
        again = start("--subtitles", str(tmp_path), "--mode", "final")
    cues = pysubs2.load(str(tmp_path / "source.srt"))
    assert " ".join(cue.plaintext.replace("\n", " ") for cue in cues) == " ".join(sentences)


async def test_a_final_that_was_taken_is_translated_after_a_crash(
    start: Start, web: aiohttp.ClientSession, demo_server: TritonServer, tmp_path: Path
) -> None:
    """Also a part of a longer one; what was translated before comes once."""
    live = start("--subtitles", str(tmp_path))
    await say(web, live, SECOND, 1)
    with suspended(demo_server):
        async with web.ws_connect(f"{live.url}/speak?speaker=ben") as speaker:
            said = {"segment": "1", "text": f"{FIRST} {SECOND}", "final": True, "time": 3}
            await speaker.send_json(said)
            assert (await speaker.receive_json())["type"] == "taken"
        kill(live)
    again = start("--subtitles", str(tmp_path))
    found = {}
    async with web.ws_connect(f"{again.url}/captions?to=de") as viewer:
        for _ in range(3):
            message = (await finals(viewer, {"deu_Latn"}))["deu_Latn"]
            found[message["segment"]] = message["transcript"]
    rain = "Nächste Woche in London: Regen."
    fog = "Nächste Woche in Stockholm: Nebel."
    assert found == {"anna/1": rain, "ben/1": fog, "ben/1~2": rain}
    await say(web, again, FIRST, 9)
    assert again.stop() == 0
    subtitles = " ".join((tmp_path / "deu_Latn.srt").read_text().split())
    assert (subtitles.count(rain), subtitles.count(fog)) == (2, 2)


async def test_a_final_that_an_end_leaves_untranslated_is_said_and_comes_with_the_next_start(
    start: Start, web: aiohttp.ClientSession, demo_server: TritonServer, tmp_path: Path
) -> None:
    live = start("--subtitles", str(tmp_path), stderr=subprocess.PIPE)
    async with (
        web.ws_connect(f"{live.url}/captions?to=de,fr") as viewer,
        web.ws_connect(f"{live.url}/speak?speaker=ben") as speaker,
    ):
        final = {"segment": "1", "text": SECOND, "final": True, "time": 1}
        await speaker.send_json(final)
        await finals(viewer, {"deu_Latn", "fra_Latn"})
        with suspended(demo_server):
            await speaker.send_json({**final, "segment": "2", "text": FIRST, "time": 3})
            assert [(await speaker.receive_json())["type"] for _ in "12"] == ["taken"] * 2
            status = await asyncio.to_thread(live.stop)
        told = await finals(viewer, {"deu_Latn", "fra_Latn"})
        end = await viewer.receive_json()
    reason = "the event ended before the server answered"
    assert [(one["segment"], one["error"]) for one in told.values()] == [("ben/2", reason)] * 2
    assert end["type"] == "end"
    assert live.process.stderr is not None
    *said, last = live.process.stderr.read().splitlines()
    assert status == 1
    assert last == (
        "ct2-live: 2 translations are missing, which the lines above name; the next start with "
        f"--subtitles {tmp_path} translates them"
    )
    for language in ("deu_Latn", "fra_Latn"):
        assert any(line.endswith(f"segment ben/2, {language}: {reason}") for line in said)
    assert not any("Traceback" in line for line in said), "\n".join(said)

    again = start("--subtitles", str(tmp_path))
    async with web.ws_connect(f"{again.url}/captions?to=de&last={end['id']}") as viewer:
        message = (await finals(viewer, {"deu_Latn"}))["deu_Latn"]
    assert (message["segment"], message["transcript"]) == (
        "ben/2", "Nächste Woche in Stockholm: Nebel.",
    )  # fmt: skip
    assert again.stop() == 0
    for language in ("source", "deu_Latn", "fra_Latn"):
        assert (tmp_path / f"{language}.srt").read_text().count("-->") == 2


async def test_a_new_event_writes_what_a_crash_left(
    start: Start, web: aiohttp.ClientSession, tmp_path: Path
) -> None:
    live = start("--subtitles", str(tmp_path))
    await say(web, live, FIRST, 1)
    kill(live)
    again = start("--subtitles", str(tmp_path), "--new-event")
    assert FIRST in (tmp_path / "source.vtt").read_text()
    await say(web, again, SECOND, 1)
    assert again.stop() == 0
    assert FIRST not in (tmp_path / "source-2.srt").read_text()


def test_two_events_do_not_share_a_folder(start: Start, command: list[str], tmp_path: Path) -> None:
    live = start("--subtitles", str(tmp_path))
    second = run(*command, "--port", "0", "--subtitles", tmp_path, code=1)
    assert f"another ct2-live writes its subtitles into {tmp_path}" in second.stderr
    assert live.stop() == 0
