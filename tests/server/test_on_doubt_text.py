# SPDX-License-Identifier: Apache-2.0
"""on_doubt for texts, streams and the client: each flagged sentence is decoded once more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ct2_triton import _core
from ct2_triton.client import SyncTranslationClient
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepare.quality import FILE_NAME
from ct2_triton.serve import TritonServer
from server.helpers import Connection
from server.text_client import answer, refusal, send_text
from support.commands import run
from support.metrics import fresh
from support.servers import ServerStack

pytestmark = pytest.mark.server

GOOD = "The ticket office opens at 5:45."
ODD = ["Yes.", "9999 8888 7777", "Wow wow wow wow wow!"]  # flagged in German and French
CODES = {"de": "deu_Latn", "fr": "fra_Latn"}
OUTPUTS = ["text_output", "score", "quality", "quality_flags"]
SECOND = {"beam_size": 2, "no_repeat_ngram_size": 4}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A model of its own for each test: so few rows were flagged that all may be decoded again."""
    settings = {"beam_size": "1", "compute_type": "float32"}
    prepare(PrepareOptions("demo", tmp_path, settings=settings, io="stream"))
    return tmp_path


@pytest.fixture
def server(repository: Path) -> Iterator[TritonServer]:
    with ServerStack() as stack:
        yield stack.start(repository)


def ask(connection: Connection, texts: list[str], **options: Any) -> dict[str, list[Any]]:
    return answer(send_text(connection, texts, [*CODES], outputs=OUTPUTS, **options))


def retried(server: TritonServer, model: str = "demo-text") -> float:
    return fresh(server, model)["ct2_retried_rows_total"]


def test_the_better_answer_of_each_text_and_language(
    server: TritonServer, repository: Path, connection: Connection
) -> None:
    texts = [GOOD, *ODD]
    judge = _core.Judge((repository / "demo" / "1" / "model" / FILE_NAME).read_text())
    first = ask(connection, texts, quality=True)
    second = ask(connection, texts, quality=True, **SECOND)
    got = ask(connection, texts, on_doubt="retry")
    kinds = []
    for i, text in enumerate(texts):
        for j, code in enumerate(CODES.values()):
            one, two = (
                judge.judge(text, each["text_output"][i][j], code, each["score"][i][j], "eng_Latn")
                for each in (first, second)
            )
            better = bool(one["flags"]) and _core.better_verdict(two["doubts"], one["doubts"])
            given = second if better else first
            for name in OUTPUTS:
                assert got[name][i][j] == given[name][i][j], (text, code, name)
            kinds.append((bool(one["flags"]), better))
    assert {*kinds} == {(False, False), (True, False), (True, True)}
    assert retried(server) == sum(flagged for flagged, _ in kinds)


def test_only_flagged_sentences_are_decoded_again(
    server: TritonServer, connection: Connection
) -> None:
    text = f"{GOOD} {ODD[0]} {GOOD}"
    parts = ask(connection, [GOOD, ODD[0]], on_doubt="retry")["text_output"]
    before = retried(server)
    whole = ask(connection, [text], on_doubt="retry")
    assert whole["text_output"] == [[f"{parts[0][j]} {parts[1][j]} {parts[0][j]}" for j in (0, 1)]]
    assert retried(server) - before == before > 0


def test_streams_are_flagged_only(
    server: TritonServer, repository: Path, connection: Connection
) -> None:
    call: dict[str, Any] = {"source": "en", "targets": [*CODES]}
    with SyncTranslationClient(server.grpc_url, "demo-stream", repository=repository) as client:
        parts = list(client.stream_text(ODD[0], **call, on_doubt="retry"))
    first = ask(connection, [ODD[0]], quality=True)
    for index in (0, 1):
        of_target = [part for part in parts if part.index == index]
        assert "".join(part.text for part in of_target) == first["text_output"][0][index]
        verdict = of_target[-1].verdict
        assert verdict is not None
        flags = [f for f in json.loads(first["quality_flags"][0][index]) if isinstance(f, str)]
        assert [*verdict.flags] == flags != []
    assert retried(server, "demo-stream") == 0


@pytest.mark.parametrize("model", ["demo", "demo-text"])
def test_the_client_passes_it(
    server: TritonServer, repository: Path, connection: Connection, model: str
) -> None:
    call: dict[str, Any] = {"source": "en", "targets": "de"}
    with SyncTranslationClient(server.grpc_url, model, repository=repository) as client:
        flagged = client.translate(ODD[0], **call, on_doubt="flag")
        given = client.translate(ODD[0], **call, on_doubt="retry")
        plain = client.translate(ODD[0], **call, on_doubt="none")
    assert plain.verdict is None
    assert flagged.text == plain.text
    assert flagged.verdict is not None
    assert given.verdict is not None
    assert given.verdict.quality > flagged.verdict.quality
    assert given.text == ask(connection, [ODD[0]], **SECOND)["text_output"][0][0]


def test_the_command_passes_it(server: TritonServer, connection: Connection) -> None:
    done = run(
        "ct2-translate", "--url", server.grpc_url, "--model", "demo-text", "--from", "en",
        "--to", "de", "--json", "--option", "on_doubt=retry",
        text=f"{ODD[0]}\n",
    )  # fmt: skip
    [line] = done.stdout.splitlines()
    translation = json.loads(line)["translations"][0]
    assert translation["verdict"]["quality"] > 0
    assert translation["text"] == ask(connection, [ODD[0]], **SECOND)["text_output"][0][0]


def test_a_wrong_value(connection: Connection) -> None:
    said = refusal(connection, GOOD, ["de"], on_doubt="maybe")
    assert (
        'parameter "on_doubt": the value "maybe" is not allowed; give one of none, flag, retry'
        in said
    )
    assert ask(connection, [GOOD], on_doubt="retry")["quality"][0][0] > 0.5
