# SPDX-License-Identifier: Apache-2.0
"""ct2-gateway as others use it: LibreTranslate's own client, and requests made of its document."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest
import requests
import schemathesis
from hypothesis import Phase, given, settings
from libretranslatepy import LibreTranslateAPI

from server.gateway.conftest import GERMAN, GOOD, SENTENCE, StartGateway
from support.waiting import wait_until

pytestmark = pytest.mark.server

RIGHT, WRONG = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
FILE = "POST /translate_file"
ROUTES = [
    "POST /translate",
    "POST /detect",
    "GET /languages",
    "GET /frontend/settings",
    "GET /health",
    FILE,
    "GET /download_file/{name}",
    "POST /suggest",
]


def _good(url: str, **fields: str) -> str:
    """A request that must be answered."""
    answer = requests.post(f"{url}/translate", json={**GOOD, **fields}, timeout=600)
    answer.raise_for_status()
    return str(answer.json()["translatedText"])


def test_the_client_of_libretranslate(gateway: str) -> None:
    client = LibreTranslateAPI(f"{gateway}/")
    assert client.translate(SENTENCE, "en", "de") == GERMAN
    assert client.detect(SENTENCE)[0]["language"] == "en"
    assert {"code": "de", "name": "German"}.items() <= client.languages()[0].items()


@pytest.fixture(scope="session")
def document(gateway: str) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{gateway}/spec")


@pytest.mark.parametrize(
    ("route", "mode"),
    # A document cannot say how a file's name ends: most right ones are refused, too.
    [*((r, RIGHT) for r in ROUTES if r != FILE), *((r, WRONG) for r in (*ROUTES[:2], FILE))],
)
def test_requests_made_of_the_document(
    document: schemathesis.BaseSchema, gateway: str, route: str, mode: schemathesis.GenerationMode
) -> None:
    """Right ones are answered, wrong ones refused; each answer is one that the document has."""
    method, path = route.split()
    operation = document[path][method]
    strategy = operation.as_strategy(generation_mode=mode)

    @settings(max_examples=40, phases=[Phase.generate])
    @given(case=strategy)
    def conforms(case: schemathesis.Case) -> None:
        case.call_and_validate()

    conforms()
    assert _good(gateway) == GERMAN


def test_every_route_is_tried(document: schemathesis.BaseSchema) -> None:
    found = [result.ok() for result in document.get_all_operations()]
    assert sorted(ROUTES) == sorted(f"{one.method.upper()} {one.path}" for one in found)


def test_processes_share_a_port_and_end_together(start_gateway: StartGateway) -> None:
    gateway = start_gateway("--processes", "2")
    assert {_good(gateway.url) for _ in range(8)} == {GERMAN}
    assert gateway.stop() == 0
    with pytest.raises(requests.ConnectionError):
        _good(gateway.url)


def test_a_file_that_one_process_translates_another_gives_out(start_gateway: StartGateway) -> None:
    gateway = start_gateway("--processes", "2")
    form = {"source": "en", "target": "de"}
    file = {"file": ("a.txt", SENTENCE)}
    answer = requests.post(f"{gateway.url}/translate_file", form, files=file, timeout=600).json()
    found = {requests.get(answer["translatedFileUrl"], timeout=600).text for _ in range(8)}
    assert found == {GERMAN}
    assert gateway.stop() == 0


@pytest.mark.parametrize("processes", ["1", "2"])
def test_each_request_is_logged_without_its_query(
    start_gateway: StartGateway, processes: str
) -> None:
    options = ("--access-log", "--log-format", "json", "--processes", processes)
    gateway = start_gateway(*options, stderr=subprocess.PIPE)
    assert requests.get(f"{gateway.url}/nowhere?api_key=secret", timeout=600).status_code == 404
    assert requests.get(f"{gateway.url}/two%0Alines", timeout=600).status_code == 404
    assert _good(gateway.url) == GERMAN
    assert gateway.stop() == 0
    assert gateway.process.stderr is not None
    text = gateway.process.stderr.read()
    assert "secret" not in text
    lines = [json.loads(line) for line in text.splitlines()]
    found = [(line["method"], line["path"], line["status"], line["remote"]) for line in lines]
    assert sorted(found) == [
        ("GET", "/nowhere", 404, "127.0.0.1"),
        ("GET", "/two%0Alines", 404, "127.0.0.1"),
        ("POST", "/translate", 200, "127.0.0.1"),
    ]


def test_a_process_that_is_killed_is_replaced(start_gateway: StartGateway) -> None:
    gateway = start_gateway("--processes", "2", stderr=subprocess.PIPE)
    parent = gateway.process.pid

    def children() -> set[int]:
        return set(map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split()))

    before = children()
    killed = min(before)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: len(children() - {killed}) == 2)
    assert before & children() == before - {killed}
    assert {_good(gateway.url) for _ in range(8)} == {GERMAN}
    assert gateway.stop() == 0
    assert gateway.process.stderr is not None
    said = f"ct2-gateway: process {killed} was ended by SIGKILL; it is replaced"
    assert gateway.process.stderr.read().splitlines() == [said]


def test_only_names_of_this_machine_are_answered_unless_others_are_allowed(
    gateway: str, start_gateway: StartGateway
) -> None:
    headers = {"Host": "translate.example.com"}
    assert requests.get(f"{gateway}/languages", headers=headers, timeout=600).status_code == 403
    assert _good(gateway) == GERMAN
    for arguments in (["--allowed-host", "translate.example.com"], ["--host", "0.0.0.0"]):
        other = start_gateway(*arguments)
        port = other.url.rpartition(":")[2]
        url = f"http://127.0.0.1:{port}"
        assert requests.get(f"{url}/languages", headers=headers, timeout=600).status_code == 200
        assert _good(url) == GERMAN


def test_keys_come_from_the_environment(start_gateway: StartGateway) -> None:
    gateway = start_gateway(CT2_GATEWAY_API_KEY="one two")
    client = LibreTranslateAPI(f"{gateway.url}/", "two")
    assert client.translate(SENTENCE, "en", "de") == GERMAN
    with pytest.raises(requests.HTTPError, match="403"):
        _good(gateway.url, api_key="one two")
    assert _good(gateway.url, api_key="one") == GERMAN
    gateway.process.send_signal(signal.SIGINT)
    assert gateway.process.wait(600) == 0


def test_bytes_that_are_no_request_leave_no_traceback(start_gateway: StartGateway) -> None:
    """A body that is not packed as its header says is the caller's fault, also in the log."""
    gateway = start_gateway(stderr=subprocess.PIPE)
    for packed in ("gzip", "deflate"):
        for form in ({"json": GOOD}, {"data": GOOD}):
            answer = requests.post(
                f"{gateway.url}/translate",
                headers={"Content-Encoding": packed},
                timeout=600,
                **form,
            )
            assert answer.status_code == 400
            why = f"the body cannot be read: it is not in '{packed}', its Content-Encoding"
            assert answer.json() == {"error": f"Invalid request: {why}"}
    form_type = "application/x-www-form-urlencoded; charset=nonsense"
    answer = requests.post(
        f"{gateway.url}/translate",
        data=gzip.compress(b"q=Good+morning"),
        headers={"Content-Encoding": "gzip", "Content-Type": form_type},
        timeout=600,
    )
    assert answer.status_code == 400
    assert answer.json() == {"error": "Invalid request: the body cannot be read"}
    host, port = gateway.url.removeprefix("http://").split(":")
    head = b"POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    for sent in (head + b"zz\r\n", b"\x16\x03\x01\x02\x00\r\n\r\n"):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(sent)
            assert connection.recv(100).startswith(b"HTTP/1.0 400 ")
    assert _good(gateway.url) == GERMAN
    assert gateway.stop() == 0
    assert gateway.process.stderr is not None
    assert gateway.process.stderr.read() == ""


def test_a_folder_where_the_languages_are_not_is_named_once(start_gateway: StartGateway) -> None:
    wrong = start_gateway("--model", "nowhere", stderr=subprocess.PIPE)
    assert wrong.process.wait(600) == 1
    assert wrong.process.stderr is not None
    assert wrong.process.stderr.read().count("nowhere/tokenizer") == 1


def test_what_processes_say_is_json_if_asked(start_gateway: StartGateway) -> None:
    options = ("--model", "demo", "--processes", "2", "--log-format", "json")
    wrong = start_gateway(*options, stderr=subprocess.PIPE)
    assert wrong.process.wait(600) == 1
    assert wrong.process.stderr is not None
    said = [json.loads(line)["message"] for line in wrong.process.stderr]
    assert "'demo' takes token ids" in said[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "demo"], "'demo' takes token ids; name one that takes text"),
        (["--model", "demo", "--processes", "2"], "a process has failed, so all 2 have ended"),
        (["--model", "nowhere-text"], "the languages of model 'nowhere-text' are not in "),
        (["--url", "localhost:1", "--retry-for", "0"], "not ready within 1 s"),
        (
            ["--port", "PORT"],
            "cannot listen at 127.0.0.1, port PORT: Address already in use; choose others with "
            "--host and --port",
        ),
        (["--port", "PORT", "--processes", "2"], "cannot listen at 127.0.0.1, port PORT: Address"),
        (["--option", "beam_sise=2"], 'nothing can be translated: unknown parameter "beam_sise"'),
        (["--host", "no.such.host.invalid"], "cannot listen at no.such.host.invalid, port 0: "),
    ],
)
def test_what_cannot_start_says_why(
    start_gateway: StartGateway, gateway: str, arguments: list[str], message: str
) -> None:
    port = gateway.rpartition(":")[2]
    wrong = start_gateway(
        *(port if one == "PORT" else one for one in arguments), stderr=subprocess.PIPE
    )
    assert wrong.process.wait(600) == 1
    assert wrong.process.stderr is not None
    said = wrong.process.stderr.read()
    assert message.replace("PORT", port) in said
    assert "Traceback" not in said
    assert _good(gateway) == GERMAN
