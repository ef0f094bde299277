# SPDX-License-Identifier: Apache-2.0
"""docs/text.md: its commands are run as they stand, on a server of their own."""

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
ALL_CURL_LINES = re.findall(r"^curl .*?'$", TEXT, re.MULTILINE | re.DOTALL)
CURL_LINES = [line for line in ALL_CURL_LINES if "generate_stream" not in line]
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


def _run(line: str, server: TritonServer) -> dict[str, object]:
    answer: dict[str, object] = json.loads(_output(line, server))
    return answer


@pytest.mark.server
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("model", ["demo-text", "by-hand"])
@pytest.mark.parametrize("line", CURL_LINES)
def test_one_curl_line_translates_into_six_languages(
    server: TritonServer, line: str, model: str
) -> None:
    answer = _run(line.replace("demo-text", model), server)
    outputs = answer.get("outputs")
    texts = outputs[0]["data"] if isinstance(outputs, list) else answer["text_output"]
    assert isinstance(texts, list)
    assert texts[0] == GERMAN
    assert len(set(texts)) == 6


@pytest.mark.server
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_one_curl_line_reads_a_stream(server: TritonServer) -> None:
    (line,) = set(ALL_CURL_LINES) - set(CURL_LINES)
    events = _output(line, server).split("\n\n")
    parts = [json.loads(event.removeprefix("data: ")) for event in events if event.strip()]
    german = [part for part in parts if part["target_language"] == "deu_Latn"]
    assert len(german) > 5
    assert "".join(part["text_output"] for part in german) == GERMAN
    assert [part["finish_reason"] for part in german[-2:]] == ["", "stop"]
    assert {part["target_index"] for part in parts} == {0, 1}
    assert set(parts[0]) - {"model_name", "model_version"} == _outputs_of_streams()


def _outputs_of_streams() -> set[str]:
    rows = TEXT.partition("## Translations as they grow")[2].partition("\n## ")[0].split("\n")
    return set(re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in rows if "|" in row)))


def test_all_ways_are_shown() -> None:
    assert ["generate" in line for line in CURL_LINES] == [True, False]
    assert len(ALL_CURL_LINES) == 3


def test_the_limits_have_the_defaults_of_the_table() -> None:
    table = {row["name"]: row["default"] for row in _core.parameters()}
    shown = dict(re.findall(r"^\| [^|]+ \| ([\d,]+) \| `(\w+)` \|$", TEXT, re.MULTILINE))
    assert len(shown) == 4
    assert {name: int(value.replace(",", "")) for value, name in shown.items()} == {
        name: int(table[name]) for name in shown.values()
    }
