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
CURL_LINES = re.findall(r"^curl .*?'$", TEXT, re.MULTILINE | re.DOTALL)
GERMAN = "Der Fahrkartenschalter öffnet um 5:45 Uhr."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    """The demo model for ids and text, and the configuration of the document."""
    repository = tmp_path_factory.mktemp("repository")
    prepare(PrepareOptions("demo", repository, settings={"compute_type": "float32"}, io="both"))
    folder = repository / "by-hand"
    (folder / "1").mkdir(parents=True)
    config = TEXT.rpartition("```\nbackend")[2].partition("```")[0]
    (folder / "config.pbtxt").write_text("backend" + config, encoding="utf-8")
    with ServerStack() as stack:
        yield stack.start(repository)


def _run(line: str, server: TritonServer) -> dict[str, object]:
    address = urlsplit(server.http_url).netloc or server.http_url
    line = line.replace("localhost:8000", address)
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    answer: dict[str, object] = json.loads(done.stdout)
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


def test_both_ways_are_shown() -> None:
    assert ["generate" in line for line in CURL_LINES] == [True, False]


def test_the_limits_have_the_defaults_of_the_table() -> None:
    table = {row["name"]: row["default"] for row in _core.parameters()}
    shown = dict(re.findall(r"^\| [^|]+ \| ([\d,]+) \| `(\w+)` \|$", TEXT, re.MULTILINE))
    assert len(shown) == 4
    assert {name: int(value.replace(",", "")) for value, name in shown.items()} == {
        name: int(table[name]) for name in shown.values()
    }
