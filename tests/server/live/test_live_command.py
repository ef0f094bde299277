# SPDX-License-Identifier: Apache-2.0
"""ct2-live: speakers and viewers on the web, JSON lines on stdin and stdout."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ct2_triton.client import TranslationClient
from server.live.conftest import Start, finals
from support import forked
from support.commands import piped, run
from support.ports import free_port
from support.web_metrics import web_metrics

pytestmark = pytest.mark.server

SENTENCE = "Next week in Stockholm: fog."


async def say(socket: aiohttp.ClientWebSocketResponse, **update: Any) -> dict[str, Any]:
    await socket.send_json(update)
    return dict(await socket.receive_json())


async def test_speakers_speak_and_viewers_follow_come_late_and_come_back(
    start: Start, web: aiohttp.ClientSession, client: TranslationClient, tmp_path: Path
) -> None:
    live = start("--subtitles", str(tmp_path))
    answers = await client.translate(SENTENCE, source="en", targets=["de", "fr"])
    texts = {answer.target: answer.text for answer in answers}
    async with (
        web.ws_connect(f"{live.url}/speak?speaker=anna") as speaker,
        web.ws_connect(f"{live.url}/captions?to=de,fr,source") as viewer,
    ):
        taken = await say(speaker, segment=1, text="next week in", time=0.5)
        assert taken == {"type": "taken", "segment": "1", "final": False}
        await say(speaker, segment=1, text=SENTENCE, final=True, time=2.5)
        seen = await finals(viewer, {*texts, "source"})
        assert {target: m["transcript"] for target, m in seen.items()} == {
            **texts,
            "source": SENTENCE,
        }
        assert seen["deu_Latn"]["segment"] == "anna/1"

        # One who comes late gets the settled text; one who comes back, what is new.
        async with web.ws_connect(f"{live.url}/captions?to=de") as late:
            [message] = (await finals(late, {"deu_Latn"})).values()
        await say(speaker, segment=2, text=SENTENCE, final=True, time=4)
        headers = {"Last-Event-ID": message["id"]}
        async with web.get(f"{live.url}/events?to=de", headers=headers) as events:
            lines = [await events.content.readline() for _ in range(2)]
        again = json.loads(lines[1].removeprefix(b"data: "))
        assert lines[0] == f"id: {again['id']}\n".encode()
        assert (again["segment"], again["transcript"]) == ("anna/2", texts["deu_Latn"])

        async with web.get(f"{live.url}/subtitles.vtt?to=de") as response:
            vtt = await response.text()
        assert "00:00:00.500 --> 00:00:02.500" in vtt
        assert live.stop() == 0
        while (message := await viewer.receive_json())["type"] != "end":
            pass
    assert (tmp_path / "deu_Latn.vtt").read_text() == vtt
    assert texts["fra_Latn"] in (tmp_path / "fra_Latn.srt").read_text().replace("\n", " ")


async def test_running_text_comes_in_pieces_also_as_it_was_said(
    start: Start, web: aiohttp.ClientSession
) -> None:
    live = start("--max-words", "3")
    async with (
        web.ws_connect(f"{live.url}/speak?speaker=anna") as speaker,
        web.ws_connect(f"{live.url}/captions?to=source") as viewer,
    ):
        said = "It rains. Fog and more fog and snow"
        assert (await say(speaker, segment=1, text=said, final=True))["type"] == "taken"
        found = [await finals(viewer, {"source"}) for _ in range(3)]
    assert [one["source"]["transcript"] for one in found] == [
        "It rains.", "Fog and more", "fog and snow",
    ]  # fmt: skip
    assert [one["source"]["segment"] for one in found] == ["anna/1", "anna/1~2", "anna/1~3"]


async def test_running_text_may_be_longer_than_a_usual_message(
    start: Start, web: aiohttp.ClientSession
) -> None:
    """After about 70 minutes of speech, each update was refused, and the rest was lost."""
    live = start("--max-words", "60")
    words = ["extraordinarily"] * 4500
    async with web.ws_connect(f"{live.url}/speak?speaker=anna") as speaker:
        for count in range(50, len(words) + 1, 50):
            update = {"segment": 1, "text": " ".join(words[:count])}
            reply = await say(speaker, **update, final=count == len(words))
            assert reply["type"] == "taken", reply
    async with web.get(f"{live.url}/subtitles.srt?to=source") as response:
        assert (await response.text()).split().count("extraordinarily") == len(words)


async def test_bad_updates_get_an_answer_and_good_ones_go_on(
    start: Start, web: aiohttp.ClientSession
) -> None:
    live = start("--max-speakers", "1")
    async with (
        web.ws_connect(f"{live.url}/speak?speaker=anna") as speaker,
        web.ws_connect(f"{live.url}/captions?to=de") as viewer,
    ):
        refused = await say(speaker, segment=1)
        assert refused == {"type": "refused", "error": "the update has no 'text'"}
        await speaker.send_bytes(b'{"segment": "1", "text": "\xff"}')
        assert "not UTF-8" in (await speaker.receive_json())["error"]
        await say(speaker, segment=1, text=SENTENCE, final=True)
        refused = await say(speaker, segment=1, text="Again.", final=True)
        assert "segment 'anna/1' is final already" in refused["error"]
        await speaker.send_str("x" * 10_000_000)
        refused = dict(await speaker.receive_json())
        assert refused["error"] == "the update has a length of 10000000; 1048576 is allowed"
        async with web.get(f"{live.url}/speak?speaker=ben") as response:
            assert response.status == 503
            assert "cannot connect: 1 are connected" in await response.text()
        async with web.get(f"{live.url}/captions?to=xx") as response:
            assert response.status == 400
            assert "it must name some of deu_Latn, fra_Latn, source" in await response.text()
        await say(speaker, segment=2, text=SENTENCE, final=True)
        both = [await finals(viewer, {"deu_Latn"}) for _ in range(2)]
    assert [one["deu_Latn"]["segment"] for one in both] == ["anna/1", "anna/2"]


async def test_a_speaker_who_leaves_makes_room_and_ends_what_was_open(
    start: Start, web: aiohttp.ClientSession
) -> None:
    live = start("--max-speakers", "1")
    async with web.ws_connect(f"{live.url}/captions?to=de,source") as viewer:
        for number in range(3):  # more than there are places, one after the other
            async with web.ws_connect(f"{live.url}/speak?speaker=s{number}") as speaker:
                taken = await say(speaker, segment=1, text=SENTENCE, time=2)
                assert taken["type"] == "taken"
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    await web.ws_connect(f"{live.url}/speak?speaker=late")
                assert refused.value.status == 503
        async with web.ws_connect(f"{live.url}/speak?speaker=last"):
            seen = [await finals(viewer, {"deu_Latn", "source"}) for _ in range(3)]
    found = [(one["source"]["segment"], one["source"]["transcript"]) for one in seen]
    assert found == [(f"s{number}/1", SENTENCE) for number in range(3)]
    assert all(one["deu_Latn"]["transcript"] for one in seen)
    assert live.stop() == 0


async def test_a_speaker_who_comes_back_in_time_goes_on_and_later_begins_anew(
    start: Start, web: aiohttp.ClientSession
) -> None:
    live = start("--max-speakers", "2", "--speaker-grace", "60")
    speak = f"{live.url}/speak?speaker=anna"
    async with web.ws_connect(f"{live.url}/captions?to=source") as viewer:
        async with web.ws_connect(speak) as speaker:
            await say(speaker, segment=1, text="It rains.", final=True)
            await say(speaker, segment=2, text="Fog")
        async with web.ws_connect(speak) as speaker:
            refused = await say(speaker, segment=1, text="Again.", final=True)
            assert "segment 'anna/1' is final already" in refused["error"]
            await say(speaker, segment=2, text="Fog and snow.", final=True)
        for other in ("ben", "cleo", "dora"):  # the places are needed: anna's time is over
            async with web.ws_connect(f"{live.url}/speak?speaker={other}"):
                pass
        async with web.ws_connect(speak) as speaker:
            taken = await say(speaker, segment=1, text="Sun.", final=True)
            assert taken["type"] == "taken"
        found = [(await finals(viewer, {"source"}))["source"] for _ in range(3)]
    assert [(one["segment"], one["transcript"]) for one in found] == [
        ("anna/1", "It rains."), ("anna/2", "Fog and snow."), ("anna~2/1", "Sun."),
    ]  # fmt: skip
    with pytest.raises(aiohttp.WSServerHandshakeError) as wrong:
        await web.ws_connect(f"{live.url}/speak?speaker=anna~2")
    assert wrong.value.status == 400
    assert live.stop() == 0


async def test_the_grace_ends_what_a_speaker_left_open(
    start: Start, web: aiohttp.ClientSession
) -> None:
    live = start("--speaker-grace", "0.1")
    async with web.ws_connect(f"{live.url}/captions?to=de,source") as viewer:
        async with (
            web.ws_connect(f"{live.url}/speak?speaker=anna") as first,
            web.ws_connect(f"{live.url}/speak?speaker=anna"),
        ):
            await say(first, segment=1, text=SENTENCE)
        found = await finals(viewer, {"deu_Latn", "source"})
    assert found["source"]["transcript"] == SENTENCE
    assert live.stop() == 0


BAD_UPDATES: dict[str, list[str | bytes]] = {
    "text that shrinks": ['{"segment": "a", "text": "On the A21, a bus"}',
                          '{"segment": "a", "text": "On"}'],
    "segments out of order": ['{"segment": "c", "text": "Fog"}', '{"segment": "b", "text": "Rain"}',
                              '{"segment": "c", "text": "Fog.", "final": true}',
                              '{"segment": "b", "text": "Rain.", "final": true}'],
    "a second final": ['{"segment": "c", "text": "Snow.", "final": true}'],
    "broken UTF-8": [b'{"segment": "d", "text": "\xff\xfe"}'],
    "half a surrogate pair": ['{"segment": "d", "text": "\\ud800"}'],
    "10 MB": [json.dumps({"segment": "d", "text": "x" * 10_000_000})],
    "a thousand segments": [json.dumps({"segment": f"m{i}", "text": "It"}) for i in range(1000)],
}  # fmt: skip
REFUSED = {
    "text that shrinks": 0,
    "segments out of order": 0,
    "a thousand segments": 1000 - 63,  # 64 may be open, and "a" is
}


async def test_bad_updates_harm_no_neighbour(
    start: Start, web: aiohttp.ClientSession, client: TranslationClient
) -> None:
    live = start()
    answer = await client.translate(SENTENCE, source="en", targets="de")
    refused: dict[str, int] = {}
    async with (
        web.ws_connect(f"{live.url}/speak?speaker=anna") as anna,
        web.ws_connect(f"{live.url}/speak?speaker=ben") as ben,
    ):
        await say(ben, segment=1, text="Next week in")
        for case, updates in BAD_UPDATES.items():
            refused[case] = 0
            for update in updates:
                await (anna.send_str if isinstance(update, str) else anna.send_bytes)(update)
                told = await anna.receive_json()
                assert told["type"] == "taken" or len(told["error"]) > 20
                refused[case] += told["type"] == "refused"
        assert refused == {case: REFUSED.get(case, 1) for case in BAD_UPDATES}
        for socket, segment in ((ben, "1"), (anna, "a")):
            said = await say(socket, segment=segment, text=SENTENCE, final=True)
            assert said["type"] == "taken"
        found = {}
        async with web.ws_connect(f"{live.url}/captions?to=de") as viewer:
            while not {"anna/a", "ben/1"} <= set(found):
                message = (await finals(viewer, {"deu_Latn"}))["deu_Latn"]
                found[message["segment"]] = message["transcript"]
    assert found["ben/1"] == found["anna/a"] == answer.text


async def test_keys_and_the_number_of_viewers(
    start: Start, web: aiohttp.ClientSession, tmp_path: Path
) -> None:
    for who, password in (("speaker", "s3"), ("viewer", "v3")):
        (tmp_path / who).write_text(f"{password}\n")
    speakers = ("--speaker-password-file", str(tmp_path / "speaker"))
    viewers = ("--viewer-password-file", str(tmp_path / "viewer"))
    live = start(
        *speakers, *viewers, "--max-viewers", "1", "--title", "Talk <1>"
    )  # fmt: skip
    for path in (
        "speak?speaker=a&key=v3",
        "captions?to=de",
        "events?to=de&key=s3",
        "event",
        "qr.svg",
    ):
        async with web.get(f"{live.url}/{path}") as response:
            assert response.status == 401, path
    headers = {"Authorization": "Bearer s3"}
    async with (
        web.ws_connect(f"{live.url}/speak?speaker=a", headers=headers) as speaker,
        web.ws_connect(f"{live.url}/captions?to=de&key=v3") as viewer,
    ):
        async with web.get(f"{live.url}/events?to=de&key=v3") as response:
            assert response.status == 503
        await say(speaker, segment=1, text=SENTENCE, final=True)
        assert await finals(viewer, {"deu_Latn"})
    async with web.get(f"{live.url}/event?key=v3") as response:
        languages = {
            "deu_Latn": ["de", "deu_Latn"],
            "fra_Latn": ["fr", "fra_Latn"],
            "source": ["source"],
        }
        assert await response.json() == {"title": "Talk <1>", "languages": languages}
    async with web.get(f"{live.url}/health") as response:
        assert await response.text() == "ok"


def test_json_lines(command: list[str], tmp_path: Path) -> None:
    updates = [
        '\ufeff{"segment": 1, "text": "next week in", "time": 1}',  # as PowerShell begins a file
        '{"segment": 1}',
        json.dumps({"segment": 1, "text": SENTENCE, "final": True, "time": 3}),
    ]
    line = [*command, "--stdio", "--newest", "--subtitles", tmp_path]
    done = run(*line, code=1, text="\n".join(updates))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line for line in lines if "refused" in line] == [
        {"line": 2, "refused": "the update has no 'text'"}
    ]
    final = {line["target"]: line["transcript"] for line in lines if line.get("final")}
    assert final["deu_Latn"] == "Nächste Woche in Stockholm: Nebel."
    assert sorted(path.name for path in tmp_path.glob("[!.]*")) == [
        "deu_Latn.srt", "deu_Latn.vtt", "fra_Latn.srt", "fra_Latn.vtt",
    ]  # fmt: skip


def test_an_interrupt_says_where_finals_are_kept(command: list[str], tmp_path: Path) -> None:
    line = [*command, "--stdio", "--subtitles", str(tmp_path)]
    with piped(*line) as process:
        process.stdin.write(json.dumps({"segment": "1", "text": SENTENCE, "final": True}) + "\n")
        process.stdin.flush()
        caption = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        error = process.communicate()[1]
    assert process.returncode == 130
    kept = f"the next run with {tmp_path} writes the subtitles of the finals so far"
    assert error == f"ct2-live: interrupted: {kept}\n"
    run(*line, text="")
    written = (tmp_path / f"{caption['target']}.srt").read_text()
    assert caption["transcript"] in written.replace("\n", " ")


@pytest.mark.parametrize("text", [SENTENCE, ""], ids=["captions", "a refusal alone"])
def test_a_reader_that_has_had_enough_ends_it_quietly(command: list[str], text: str) -> None:
    """Also while the input goes on, whose end it would wait for."""
    read, write = os.pipe()
    os.close(read)
    update = json.dumps({"segment": "1", "text": text, "final": True} if text else {})
    with forked.Popen(
        [*command, "--stdio"], stdin=subprocess.PIPE, stdout=write, stderr=subprocess.PIPE
    ) as process:
        os.close(write)
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(f"{update}\n".encode())
        process.stdin.flush()
        assert process.wait(120) == 1
        assert process.stderr.read() == b""


def test_a_full_disk_and_text_in_another_encoding_are_said(command: list[str]) -> None:
    latin = '{"segment": 1, "text": "Caf\u00e9."}\n'.encode("latin-1")
    good = json.dumps({"segment": 1, "text": SENTENCE, "final": True}).encode()
    stdio = [*command, "--stdio"]
    done = forked.run(stdio, input=latin + good, capture_output=True, check=False, timeout=600)
    refused, *captions = map(json.loads, done.stdout.splitlines())
    assert refused == {"line": 1, "refused": "the update is not UTF-8 at byte 27"}
    assert {one["target"] for one in captions if one["final"]} == {"deu_Latn", "fra_Latn"}
    with Path("/dev/full").open("wb") as full:
        done = forked.run(
            stdio, input=good, stdout=full, stderr=subprocess.PIPE, check=False, timeout=600
        )
    assert (done.returncode, done.stderr) == (1, b"ct2-live: No space left on device\n")


async def test_bytes_that_are_no_request_leave_no_traceback(
    start: Start, web: aiohttp.ClientSession
) -> None:
    live = start(stderr=subprocess.PIPE)
    head = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    for sent in (
        head + b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
        head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\r\n\r\n",
    ):
        reader, writer = await asyncio.open_connection(*live.url.removeprefix("http://").split(":"))
        writer.write(sent)
        assert (await reader.read()).startswith(b"HTTP/1.")
        writer.close()
    async with web.get(f"{live.url}/health") as response:
        assert await response.text() == "ok"
    assert live.stop() == 0
    assert live.process.stderr is not None
    assert live.process.stderr.read() == ""


def test_what_cannot_start_says_why(start: Start, command: list[str]) -> None:
    live = start()
    port = live.url.rpartition(":")[2]
    patient = ["--retry-for", "60"]
    text = [*patient, "--model", "demo-text"]
    for arguments, message in (
        (["--port", port], f"cannot listen at 127.0.0.1, port {port}: Address already in use; "),
        (["--to", "xx"], "xx"),
        (
            [*patient, "--option", "beam_sise=2"],
            'nothing can be translated: unknown parameter "beam_sise"',
        ),
        ([*text, "--to", "de,frr"], "nothing can be translated: "),
        ([*text, "--to", "frr", "--stdio"], "nothing can be translated: "),
        (["--subtitles", __file__], f"cannot write subtitles into {__file__}: File exists"),
        (["--url", "localhost:1", "--retry-for", "0.1"], "ct2-live: "),
    ):
        assert message in run(*command, *arguments, code=1).stderr
    assert live.stop() == 0


async def test_metrics_tell_of_captions_and_of_who_is_there(
    start: Start, web: aiohttp.ClientSession
) -> None:
    port = free_port()
    live = start("--metrics-port", str(port))
    async with (
        web.ws_connect(f"{live.url}/speak?speaker=anna") as speaker,
        web.ws_connect(f"{live.url}/captions?to=de") as viewer,
    ):
        await say(speaker, segment=1, text=SENTENCE, final=True, time=2.5)
        await finals(viewer, {"deu_Latn"})
        await web.get(f"{live.url}/captions?to=xx")
        found = await asyncio.to_thread(web_metrics, port)
        assert found["ct2_live_captions_total final deu_Latn"] == 1
        assert found["ct2_live_captions_total final source"] == 1
        assert found["ct2_live_requests_in_progress /speak"] == 1
        assert found["ct2_live_requests_in_progress /captions"] == 1
        assert found["ct2_live_requests_total /captions 400"] == 1
        assert "ct2_live_request_seconds_count /captions" not in found
