# SPDX-License-Identifier: Apache-2.0
"""What Triton itself answers to wrong requests: the table of docs/protocol.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import TritonServer
from server.helpers import post
from support.servers import ServerStack

pytestmark = pytest.mark.server

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
TEXT = {"name": "text_input", "datatype": "BYTES", "shape": [1, 1], "data": ["Good morning."]}
TARGET = {"name": "target_languages", "datatype": "BYTES", "shape": [1, 1], "data": ["de"]}
GOOD = {"inputs": [TEXT, TARGET]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    repository = tmp_path_factory.mktemp("repository")
    prepare(PrepareOptions("demo", repository, "demo", io="stream"))
    with ServerStack() as stack:
        yield stack.start(repository)


def table() -> list[tuple[str, int, list[str]]]:
    """The requests of the page, the status of each, and the texts of its answers."""
    page = PAGE.read_text(encoding="utf-8")
    [rows] = re.findall(r"itself answers these requests:\n\n.*\n.*\n((?:\|.*\n)+)", page)
    cells = [row.strip("|").split("|") for row in rows.splitlines()]
    return [(one.strip(), int(code), re.findall("`([^`]+)`", said)) for one, code, said in cells]


def with_input(**change: Any) -> dict[str, Any]:
    return {"inputs": [{**TEXT, **change}, TARGET]}


REQUESTS: dict[str, list[tuple[str, Any]]] = {
    "unreadable JSON": [
        ("demo-text/infer", "{"),
        ("demo-text/infer", {**GOOD, "parameters": {"timeout": -1}}),
    ],
    "a list as": [("demo-text/infer", {**GOOD, "parameters": {"x": [1]}})],
    "unknown input": [
        ("demo-text/infer", with_input(name="x")),
        ("demo-text/infer", {**GOOD, "outputs": [{"name": "x"}]}),
    ],
    "too few inputs": [("demo-text/infer", {"inputs": []})],
    "other shape": [
        ("demo-text/infer", with_input(shape=[1, 2], data=["a", "b"])),
        ("demo-text/infer", with_input(datatype="INT32", data=[7])),
    ],
    "`/infer` or `ModelInfer`": [("demo-stream/infer", GOOD)],
}


def ask(server: TritonServer, path: str, body: Any) -> tuple[int, dict[str, Any]]:
    status, sent = post(server, path, body)
    return status, json.loads(sent)


@pytest.mark.parametrize("begin", REQUESTS)
def test_the_page_has_status_and_text(server: TritonServer, begin: str) -> None:
    assert len(table()) == len(REQUESTS)
    [(_, status, texts)] = [row for row in table() if row[0].startswith(begin)]
    for number, (path, body) in enumerate(REQUESTS[begin]):
        answered, said = ask(server, path, body)
        assert answered == status
        assert texts[number % len(texts)] in said["error"]
        assert post(server, "demo-text/infer", GOOD)[0] == 200


def test_a_misspelt_input_of_generate_names_the_nearest(server: TritonServer) -> None:
    """To Triton it is a parameter."""
    good = {"text_input": "Good morning.", "target_languages": "de"}
    for name in good:
        misspelt = {key[:-1] if key == name else key: value for key, value in good.items()}
        answered, said = ask(server, "demo-text/generate", misspelt)
        assert (answered, f'did you mean "{name}"?' in said["error"]) == (400, True), said
    assert post(server, "demo-text/generate", good)[0] == 200
