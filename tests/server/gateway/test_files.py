# SPDX-License-Identifier: Apache-2.0
"""Files in, addresses of translated files out; a good request ends each error."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from server.gateway.conftest import GERMAN, SENTENCE, MakeSite, Site

pytestmark = pytest.mark.server

LONG = f"{'0' * 32}.{'a' * 1000}"
CUE = "1\n00:00:01,000 --> 00:00:02,500\n"
FILES = {
    "a b.txt": (f"{SENTENCE}\r\n\r\n  \n{SENTENCE}", f"{GERMAN}\r\n\r\n  \n{GERMAN}"),
    "page.html": (f"<h1 id=a>{SENTENCE}</h1>\n", f"<h1 id=a>{GERMAN}</h1>\n"),
    "film.srt": (f"{CUE}{SENTENCE}\n", f"{CUE}{GERMAN}\n"),
    "film.vtt": (
        f"WEBVTT\n\n00:01.000 --> 00:02.500\n{SENTENCE}\n",
        f"WEBVTT\n\n00:00:01.000 --> 00:00:02.500\n{GERMAN}\n",
    ),
}


def form(name: str, content: bytes, **fields: str) -> aiohttp.FormData:
    """A form with a file."""
    made = aiohttp.FormData({"source": "en", "target": "de", **fields}, quote_fields=False)
    made.add_field("file", content, filename=name)
    return made


async def fetch(site: Site, url: str) -> tuple[str, str]:
    """Gives the name and the content of a translated file."""
    async with site.session.get(url) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert response.headers["Cache-Control"] == "private, no-store"
        assert response.content_disposition is not None
        return str(response.content_disposition.filename), (await response.read()).decode()


async def good(site: Site) -> None:
    """A file that must be translated."""
    status, answer = await site.post("/translate_file", None, data=form("a.txt", SENTENCE.encode()))
    assert status == 200
    assert await fetch(site, answer["translatedFileUrl"]) == ("a_de.txt", GERMAN)


@pytest.mark.parametrize("head", ["HTTP/1.0\r\n", "HTTP/1.1\r\nHost:\r\n"])
async def test_a_client_that_names_no_host_gets_the_address_of_the_socket(
    site: Site, head: str
) -> None:
    part = '--x\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    fields = {"source": "en", "target": "de", 'file"; filename="a.txt': SENTENCE}
    body = ("".join(part.format(*field) for field in fields.items()) + "--x--\r\n").encode()
    reader, stream = await asyncio.open_connection(*site.url.removeprefix("http://").split(":"))
    kind = "Content-Type: multipart/form-data; boundary=x\r\nConnection: close\r\n"
    length = f"Content-Length: {len(body)}\r\n\r\n"
    stream.write(f"POST /translate_file {head}{kind}{length}".encode() + body)
    _, _, answer = (await reader.read()).partition(b"\r\n\r\n")
    stream.close()
    url = json.loads(answer)["translatedFileUrl"]
    assert url.startswith(f"{site.url}/")
    assert await fetch(site, url) == ("a_de.txt", GERMAN)


@pytest.mark.parametrize("source", ["en", "auto"])
@pytest.mark.parametrize("name", FILES)
async def test_a_file_keeps_all_but_its_texts(site: Site, name: str, source: str) -> None:
    content, wanted = FILES[name]
    data = form(name, b"\xef\xbb\xbf" + content.encode(), source=source)
    status, answer = await site.post("/translate_file", None, data=data)
    assert status == 200
    assert list(answer) == ["translatedFileUrl"]
    assert answer["translatedFileUrl"].startswith(f"{site.url}/download_file/")
    stem, _, suffix = name.replace(" ", "_").partition(".")
    assert await fetch(site, answer["translatedFileUrl"]) == (f"{stem}_de.{suffix}", wanted)


async def test_progress_comes_line_by_line(site: Site) -> None:
    data = form("a.txt", "\n".join([SENTENCE] * 150).encode())
    headers = {"Accept": "application/x-ndjson"}
    url = f"{site.url}/translate_file"
    async with site.session.post(url, data=data, headers=headers) as response:
        assert response.content_type == "application/x-ndjson"
        *steps, last = [json.loads(line) async for line in response.content]
    assert steps == [{"done": done, "of": 150} for done in (64, 128, 150)]
    assert (await fetch(site, last["translatedFileUrl"]))[1] == "\n".join([GERMAN] * 150)
    data = form("a.html", f"<p>{SENTENCE}</p>".encode() * 70)
    async with site.session.post(url, data=data, headers=headers) as response:
        *steps, _ = [json.loads(line) async for line in response.content]
    assert steps == [{"done": done, "of": 71} for done in (64, 71)]
    data = form("a.txt", b"a", target="xx")
    async with site.session.post(url, data=data, headers=headers) as response:
        assert [json.loads(line) async for line in response.content] == [
            {"error": "xx is not supported"}
        ]
    await good(site)


async def test_a_fault_is_the_last_line_of_the_progress(make_site: MakeSite) -> None:
    async def broken(*_: Any) -> list[str]:
        raise ValueError

    site = await make_site(formats={"text": broken})
    url, headers = f"{site.url}/translate_file", {"Accept": "application/x-ndjson"}
    data = form("a.txt", b"a")
    async with site.session.post(url, data=data, headers=headers) as response:
        assert [json.loads(line) async for line in response.content] == [
            {"error": "The gateway has failed; its log says why"}
        ]
    assert (await site.get("/health"))[0] == 200


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (form("a.pdf", b"a"), "file format not supported: 'a.pdf'; there is .txt, .html, .htm"),
        (form("a", b"a"), "file format not supported: 'a'"),
        (form("a.txt", b"\xff"), "'a.txt' is not in UTF-8"),
        (form("a.srt", b"\xff"), "'a.srt' is not UTF-8: byte 0 is 0xff"),
        (form("folder/a.srt", b"there are no cues"), "'a.srt' holds no subtitles"),
        (form("a.txt", b"a" * 101), "request (101) exceeds text limit (100)"),
        (form("a.txt", b"a", target="xx"), "xx is not supported"),
        (form("a.txt", b"a", source=""), "missing source parameter"),
        ({"source": "en", "target": "de"}, "missing file parameter"),
        ({"source": "en", "target": "de", "file": "a"}, "file must be one file of a form"),
    ],
)
async def test_a_file_that_is_refused_says_why(
    make_site: MakeSite, data: aiohttp.FormData | dict[str, str], error: str
) -> None:
    site = await make_site(max_chars=100)
    status, answer = await site.post("/translate_file", None, data=data)
    assert status == 400
    assert list(answer) == ["error"]
    assert error in answer["error"]
    await good(site)


async def test_only_translated_files_are_given_out(site: Site, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    for name in (
        "secret",
        "..%2Fsecret",
        "a.txt",
        f"{'0' * 32}.a.txt",
        f"{'0' * 32}.%2Fsecret",
        LONG,
    ):
        status, answer = await site.get(f"/download_file/{name}")
        assert (status, list(answer)) == (404, ["error"])
    await good(site)


async def test_old_files_are_removed(site: Site, tmp_path: Path) -> None:
    await good(site)
    [old] = os.listdir(tmp_path)
    os.utime(tmp_path / old, (0, 0))
    await good(site)
    [new] = os.listdir(tmp_path)
    assert new != old


async def test_an_old_file_is_not_given_out(site: Site, tmp_path: Path) -> None:
    await good(site)
    [old] = os.listdir(tmp_path)
    os.utime(tmp_path / old, (0, 0))
    assert (await site.get(f"/download_file/{old}"))[0] == 404
    assert os.listdir(tmp_path) == []
    await good(site)


async def test_a_folder_that_went_is_made_again(make_site: MakeSite, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    site = await make_site(files=folder)
    await good(site)
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.joinpath(os.listdir(folder)[0]).unlink()
    folder.rmdir()
    await good(site)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("हिन्दी.txt", "हिन्दी_de.txt"),
        ("é" * 100 + ".txt", "é" * 75 + "_de.txt"),
        ("a+b; c%20#d.txt", "a+b_c_20#d_de.txt"),
    ],
)
async def test_a_name_keeps_its_letters(site: Site, name: str, wanted: str) -> None:
    status, answer = await site.post("/translate_file", None, data=form(name, SENTENCE.encode()))
    assert status == 200
    assert await fetch(site, answer["translatedFileUrl"]) == (wanted, GERMAN)


async def test_the_address_of_a_file_is_that_of_the_proxy(make_site: MakeSite) -> None:
    address = "https://www.example.com/translate"
    site = await make_site(address=address)
    data = form("ä b.txt", SENTENCE.encode())
    _, answer = await site.post("/translate_file", None, data=data)
    url = answer["translatedFileUrl"]
    assert url.startswith(f"{address}/download_file/")
    assert (await fetch(site, url.replace(address, site.url)))[0] == "ä_b_de.txt"


async def test_files_may_be_switched_off(make_site: MakeSite) -> None:
    site = await make_site(files=None)
    status, answer = await site.post("/translate_file", None, data=form("a.txt", b"a"))
    assert status == 403
    assert answer == {"error": "Files translation are disabled on this server."}
    _, settings = await site.get("/frontend/settings")
    assert (settings["filesTranslation"], settings["supportedFilesFormat"]) == (False, [])
    assert "/translate_file" not in (await site.get("/spec"))[1]["paths"]
    await site.good()
