# SPDX-License-Identifier: Apache-2.0
"""`ct2-models promote | rollback` where something is wrong; a real server: tests/server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ct2_triton.cli import models
from ct2_triton.errors import OutputError, PreparedModelError, VersionError
from ct2_triton.models.rollout import promote, rollback
from ct2_triton.models.server import RunningServer
from ct2_triton.prepare import PrepareOptions, prepare


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """The demo in two versions; the first is served."""
    prepare(PrepareOptions("demo", tmp_path / "repository"))
    return prepare(PrepareOptions("demo", tmp_path / "repository", as_version=2)).directory


def test_a_folder_without_weights_is_not_promoted(demo: Path) -> None:
    before = _files(demo)
    (demo / "3" / "model").mkdir(parents=True)
    with pytest.raises(VersionError, match=rf"version 3 of {demo} has no model\.bin: prepare it"):
        promote(demo, [3], None)
    assert _files(demo) == before
    (demo / "3" / "model.bin").touch()  # where the backend looks, too
    promote(demo, [3], None)


def test_a_number_that_no_server_can_read_is_named(
    demo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (demo / str(2**63)).mkdir()
    repository = ["--model-repository", str(demo.parent)]
    for action in (["list"], ["promote", "demo", "2"], ["promote", "demo", str(2**63)]):
        assert models([*action, *repository]) == 1
        assert f"{demo / str(2**63)} ends a server that reads it" in capsys.readouterr().err
    (demo / str(2**63)).rmdir()
    assert models(["promote", "demo", "2", *repository]) == 0


_SILENT = """
import os
from concurrent.futures import ThreadPoolExecutor
import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

class Silent(service_pb2_grpc.GRPCInferenceServiceServicer):
    def ServerLive(self, request, context):
        return service_pb2.ServerLiveResponse(live=True)

    def RepositoryIndex(self, request, context):
        return service_pb2.RepositoryIndexResponse()

    def RepositoryModelLoad(self, request, context):
        os._exit(1)

server = grpc.server(ThreadPoolExecutor(2))
service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Silent(), server)
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
"""


@pytest.fixture
def silent_server() -> Iterator[str]:
    """A server that takes a load and ends without an answer, as one that is killed does."""
    command = [sys.executable, "-c", _SILENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"127.0.0.1:{process.stdout.readline().strip()}"
        process.kill()


def _files(demo: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in demo.iterdir() if path.is_file()}


def test_what_is_served_already_is_taken_by_a_server_and_nothing_is_written(demo: Path) -> None:
    promote(demo, [2], None)
    before, asked = _files(demo), []
    with pytest.raises(VersionError, match="serves 2 already"):
        promote(demo, [2], None)
    assert promote(demo, [2], asked.append) == (2,)
    assert asked == ["demo"]
    assert _files(demo) == before


def test_a_load_without_an_answer_is_said_to_go_on_perhaps(
    demo: Path, silent_server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (demo / "config.pbtxt").read_bytes()
    repository = ["--model-repository", str(demo.parent)]
    assert models(["promote", "demo", "2", "--url", silent_server, *repository]) == 1
    said = capsys.readouterr().err
    assert f"may still be loading; check with ct2-models list --url {silent_server}" in said
    assert "nothing is changed" not in said
    assert (demo / "config.pbtxt").read_bytes() == before


def test_an_interrupted_load_is_said_to_go_on_perhaps(
    demo: Path,
    silent_server: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(RunningServer, "load", interrupted)
    repository = ["--model-repository", str(demo.parent)]
    assert models(["promote", "demo", "2", "--url", silent_server, *repository]) == 130
    assert "may still be loading; check with ct2-models list" in capsys.readouterr().err


@pytest.mark.parametrize("change", [lambda model: promote(model, [2], None),
                                    lambda model: rollback(model, None)])  # fmt: skip
def test_where_no_lock_can_be_made_a_sentence_says_so(
    demo: Path, change: Callable[[Path], object]
) -> None:
    # Who runs the tests may be root, whom no permission stops; a folder in its place does.
    (demo.parent.parent / ".repository.demo.lock").mkdir()
    with pytest.raises(OutputError, match=f"cannot write to {demo.parent}: "):
        change(demo)


@pytest.mark.parametrize(
    "entries",
    [
        [{}],
        ["promote"],
        [{"at": "", "action": "promote", "before": 1, "after": [2]}],
        [{"at": "", "action": "remove", "before": [1], "after": [2]}],
        [{"at": "", "action": "rollback", "before": [2], "after": [1]}],
    ],
)
def test_a_damaged_record_is_named(demo: Path, entries: list[object]) -> None:
    record = demo / "ct2_versions.json"
    record.write_text(json.dumps({"format": 1, "history": entries}))
    with pytest.raises(PreparedModelError, match=r"ct2_versions\.json is damaged: "):
        rollback(demo, None)
