# SPDX-License-Identifier: Apache-2.0
"""Glossaries of the gateway, which requests choose by name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import aiohttp
import pytest

from ct2_triton.serve import TritonServer
from server.gateway.conftest import GERMAN, MODEL, SENTENCE, Site
from support import forked
from support.commands import run
from support.web_command import WebCommand

pytestmark = pytest.mark.server

GOOD = {"q": SENTENCE, "source": "en", "target": "de"}
SAID = GOOD | {"q": "Penalty for Quixolab!"}


@pytest.fixture
def command(demo_server: TritonServer, repository: Path) -> list[str]:
    place = ["--url", demo_server.grpc_url, "--model-repository", str(repository)]
    gateway = str(Path(sys.executable).with_name("ct2-gateway"))
    return [gateway, "--model", MODEL, "--port", "0", *place]


@pytest.fixture
def url(command: list[str], tmp_path: Path) -> Iterator[str]:
    """A gateway with two glossaries, one of which has two files."""
    files = {"works": "Quixolab\tQuix AG\n", "names": "Quixolab\n", "more": "Ximba\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    given = (("works", "works"), ("names", "names"), ("names", "more"))
    arguments = [f"--glossary={name}={tmp_path / file}" for name, file in given]
    arguments += ["--keep-patterns", "emails"]
    with ExitStack() as stack:
        process = forked.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)
        stack.enter_context(process)
        stack.callback(process.kill)
        yield WebCommand(process).url


@pytest.fixture
async def site(url: str) -> AsyncIterator[Site]:
    async with aiohttp.ClientSession() as session:
        yield Site(url, session)


async def test_terms_that_are_lost_are_named(site: Site) -> None:
    """A term that the model loses with each placeholder was missing in silence."""
    lost = "ximba@quix.example"
    text = f"The ticket office {lost} opens {lost} at {lost} 5:45 {lost}."
    _, found = await site.post("/translate", SAID | {"q": text})
    assert found["translatedText"].count(lost) != 4
    assert found["lostTerms"] == [lost]
    _, found = await site.post(
        "/translate", SAID | {"q": [SENTENCE, f"<p>{text}"], "format": "html"}
    )
    assert found["lostTerms"] == [[], [lost]]
    file = aiohttp.FormData({"source": "en", "target": "de"})
    file.add_field("file", f"{text}\n{text}\n{SENTENCE}".encode(), filename="a.txt")
    _, found = await site.post("/translate_file", None, data=file)
    assert found["lostTerms"] == [lost]
    _, found = await site.post("/translate", SAID | {"q": SENTENCE})
    assert found == {"translatedText": GERMAN}


async def test_a_request_names_its_glossary(site: Site) -> None:
    _, plain = await site.post("/translate", SAID)
    assert "Quix" not in plain["translatedText"]
    for name, text, wanted in (
        ("works", SAID["q"], "Elfmeter für Quix AG!"),
        ("names", SAID["q"], "Elfmeter für Quixolab!"),
        ("names", "Penalty for Ximba!", "Elfmeter für Ximba!"),
        ("names", SENTENCE, GERMAN),
    ):
        found = await site.post("/translate", SAID | {"q": text, "glossary": name})
        assert found == (200, {"translatedText": wanted})
    many = SAID | {"q": [SAID["q"], SENTENCE], "glossary": "works", "source": "auto"}
    _, found = await site.post("/translate", many)
    assert found["translatedText"] == ["Elfmeter für Quix AG!", GERMAN]
    mail = "Write to ximba@quix.example!"
    for glossary in ("", "works"):
        _, found = await site.post("/translate", SAID | {"q": mail, "glossary": glossary})
        assert "ximba@quix.example" in found["translatedText"]
    page = SAID | {"q": "<p>Penalty for <b>Quixolab</b>!</p>", "format": "html"}
    _, found = await site.post("/translate", page | {"glossary": "works"})
    assert found["translatedText"] == "<p>Elfmeter für <b>Quix AG</b>!</p>"
    _, found = await site.post("/translate", SAID | {"glossary": "works", "alternatives": 2})
    assert found["translatedText"] == "Elfmeter für Quix AG!"
    assert all("Quix AG" in one for one in found["alternatives"])
    file = aiohttp.FormData({"source": "en", "target": "de", "glossary": "works"})
    file.add_field("file", SAID["q"].encode(), filename="a.txt")
    _, found = await site.post("/translate_file", None, data=file)
    async with site.session.get(found["translatedFileUrl"]) as response:
        assert await response.text() == "Elfmeter für Quix AG!"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"glossary": "nowhere"}, "glossary nowhere is not known; there is works, names"),
        ({"glossary": 5}, "glossary must be a string"),
        ({"glossary": "works", "q": "For <dnt>Ximba!"}, "has no </dnt>"),
    ],
)
async def test_a_glossary_that_cannot_be_is_refused(
    site: Site, fields: dict[str, object], said: str
) -> None:
    status, answer = await site.post("/translate", SAID | fields)
    assert status == 400
    assert said in answer["error"]
    await site.good()


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ("file.tsv", 2, "'file.tsv' is not of the form NAME=FILE"),
        ("works=nowhere.tsv", 1, "cannot read the glossary nowhere.tsv"),
    ],
)
def test_a_file_that_cannot_be_is_said(
    command: list[str], given: str, code: int, said: str
) -> None:
    assert said in run(*command, "--glossary", given, code=code).stderr
