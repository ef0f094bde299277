# SPDX-License-Identifier: Apache-2.0
"""Verdicts through the client: they are those of the judge on the same text and score."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ct2_triton import errors
from ct2_triton.client import SyncTranslationClient, Translation, Verdict
from ct2_triton.engine_library import load_core
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepare.quality import FILE_NAME
from ct2_triton.prepared_model import PreparedModel
from ct2_triton.serve import TritonServer
from server import configs
from server.client.conftest import Command, Prepared
from server.conftest import LoadModel
from support.commands import run
from support.servers import ServerStack

pytestmark = pytest.mark.server

TEXT = "The ticket office opens at 5:45."
ODD = "Goal goal goal goal goal goal 77 goal!"
CALL: dict[str, Any] = {"source": "en", "targets": ["de", "fr"], "quality": True}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    settings = {"compute_type": "float32"}
    model = prepare(PrepareOptions("demo", folder, settings=settings, io="stream"))
    file = model.directory / "1" / "model" / FILE_NAME
    statistics = json.loads(file.read_text(encoding="utf-8"))
    for language in statistics["languages"].values():
        for bounds in language.get("from", {}).values():
            del bounds["uncovered"], bounds["invented"]  # the judge has no alignments here
    file.write_text(json.dumps(statistics), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def demo_server(demo: Path) -> Iterator[TritonServer]:
    with ServerStack() as stack:
        yield stack.start(demo)


def judged(demo: Path, one: Translation) -> Verdict:
    """The judge's own verdict on what came back; its score is the server's."""
    statistics = (demo / "demo" / "1" / "model" / FILE_NAME).read_text(encoding="utf-8")
    target = PreparedModel.read(demo / "demo").rules.target_language(one.target)
    assert target is not None
    judge = load_core().Judge(statistics)
    found = judge.judge(one.source_text, one.text, target.code, one.score, "eng_Latn")
    quality = pytest.approx(found["quality"], abs=1e-5)
    return Verdict(quality, tuple(found["flags"]), tuple(found["not_computed"]))


@pytest.mark.parametrize("model", ["demo", "demo-text"])
def test_every_translation_has_its_verdict(
    demo: Path, demo_server: TritonServer, model: str
) -> None:
    with SyncTranslationClient(demo_server.grpc_url, model, repository=demo) as client:
        rows = client.translate([TEXT, ODD], **CALL, return_scores=True)
        several = client.translate(TEXT, **CALL, num_hypotheses=2, beam_size=2)
        blank = client.translate(" ", **CALL)
        plain = client.translate(TEXT, source="en", targets="de")
    for one in (*rows[0], *rows[1]):
        assert one.verdict == judged(demo, one)
    assert [one.verdict.flags for one in rows[0] if one.verdict] == [(), ()]
    assert all(one.verdict is not None and one.verdict.flags for one in rows[1])
    for one in several:
        assert one.verdict is not None
        assert one.hypotheses[1].verdict is None
    assert [one.verdict for one in blank] == [Verdict(1.0)] * 2
    assert plain.verdict is None
    assert plain.text == rows[0][0].text


def test_the_last_part_of_a_stream_has_it(demo: Path, demo_server: TritonServer) -> None:
    with SyncTranslationClient(demo_server.grpc_url, "demo-stream", repository=demo) as client:
        parts = list(client.stream_text(ODD, **CALL))
        assert not any(part.verdict for part in client.stream_text(TEXT, source="en", targets="de"))
    for index in (0, 1):
        own = [part.verdict for part in parts if part.index == index]
        assert own[:-1] == [None] * (len(own) - 1)
        assert own[-1] is not None
        assert own[-1].flags


def test_a_model_that_declares_none(
    server: TritonServer, prepared: Prepared, load: LoadModel
) -> None:
    folder = prepared("nllb").tokenizer_folder
    call = CALL | {"max_decoding_length": 8}
    with SyncTranslationClient(server.grpc_url, load(configs.plain()), tokenizer=folder) as client:
        with pytest.raises(errors.InvalidCallError, match="does not declare QUALITY"):
            client.translate(TEXT, **call)
        good = client.translate(TEXT, **call | {"quality": False})
    assert all(one.ids and one.verdict is None for one in good)


def test_a_wrong_value_is_refused(demo: Path, demo_server: TritonServer) -> None:
    with SyncTranslationClient(demo_server.grpc_url, "demo", repository=demo) as client:
        with pytest.raises(errors.RequestRejectedError, match='"quality": the value "often"'):
            client.translate(TEXT, **CALL | {"quality": "often"})
        good = client.translate(TEXT, **CALL)[0].verdict
    assert good is not None
    assert good.flags == ()


def test_the_command_shows_it(command: Command) -> None:
    done = run(*command("--quality", "--json"), text=f"{TEXT}\n")
    [line] = done.stdout.splitlines()
    verdict = json.loads(line)["translations"][0]["verdict"]
    assert set(verdict) >= {"quality", "flags"}
    told = run(*command("--quality"), text=f"{TEXT}\n")
    assert ("line 1: flagged: " in told.stderr) == bool(verdict["flags"])
