# SPDX-License-Identifier: Apache-2.0
"""docs/text.md: its configuration by hand serves, and its tables are those of the code."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ct2_triton import _core
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import TritonServer
from support.servers import ServerStack

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "text.md").read_text(encoding="utf-8")
CURL_LINES = re.findall(r"^curl -s localhost.*?'$", TEXT, re.MULTILINE | re.DOTALL)
GERMAN = "Der Fahrkartenschalter öffnet um 5:45 Uhr."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    """The demo model for ids and text, and the configuration of the document."""
    repository = tmp_path_factory.mktemp("repository")
    prepare(PrepareOptions("demo", repository, settings={"compute_type": "float32"}, io="stream"))
    folder = repository / "by-hand"
    (folder / "1").mkdir(parents=True)
    config = TEXT.rpartition("```\nbackend")[2].partition("```")[0]
    (folder / "config.pbtxt").write_text("backend" + config, encoding="utf-8")
    with ServerStack() as stack:
        yield stack.start(repository)


def _output(line: str, server: TritonServer) -> str:
    address = urlsplit(server.http_url).netloc or server.http_url
    line = line.replace("localhost:8000", address)
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.server
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("line", CURL_LINES)
def test_a_model_configured_by_hand_translates_into_six_languages(
    server: TritonServer, line: str
) -> None:
    answer = json.loads(_output(line.replace("demo-text", "by-hand"), server))
    outputs = answer.get("outputs")
    texts = outputs[0]["data"] if outputs else answer["text_output"]
    assert texts[0] == GERMAN
    assert len(set(texts)) == 6


@pytest.mark.server
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_a_stream_has_the_outputs_of_the_table(server: TritonServer) -> None:
    (line,) = re.findall(r"^curl -sN .*$", TEXT, re.MULTILINE)
    events = _output(line, server).split("\n\n")
    parts = [json.loads(event.removeprefix("data: ")) for event in events if event.strip()]
    german = [part for part in parts if part["target_language"] == "deu_Latn"]
    assert len(german) > 5
    assert "".join(part["text_output"] for part in german) == GERMAN
    assert [part["finish_reason"] for part in german[-2:]] == ["", "stop"]
    assert {part["target_index"] for part in parts} == {0, 1}
    section = TEXT.partition("## Streams")[2].partition("\n## ")[0]
    rows = "".join(row.split("|")[1] for row in section.splitlines() if row.startswith("| `"))
    assert set(parts[0]) - {"model_name", "model_version"} == set(re.findall(r"`(\w+)`", rows))


def test_the_commands_are_found() -> None:
    assert len(CURL_LINES) == 2


def test_the_limits_have_the_defaults_of_the_table() -> None:
    table = {row["name"]: row["default"] for row in _core.parameters()}
    shown = dict(re.findall(r"^\| [^|]+ \| ([\d,]+) \| `(\w+)` \|$", TEXT, re.MULTILINE))
    assert len(shown) == 4
    assert {name: int(value.replace(",", "")) for value, name in shown.items()} == {
        name: int(table[name]) for name in shown.values()
    }
