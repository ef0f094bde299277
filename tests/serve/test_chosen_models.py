# SPDX-License-Identifier: Apache-2.0
"""ct2-serve MODEL...: what is missing is prepared, and these models alone are served."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from ct2_triton.client import SyncTranslationClient
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve.chosen_models import choose_models
from ct2_triton.serve.errors import ModelRepositoryError
from support import forked
from support.commands import run
from support.prepared import prepare_tiny, proofs_of
from support.repository import write_identity_model
from support.tiny import tiny_checkpoint
from support.waiting import wait_until

pytestmark = pytest.mark.server

COMMAND = Path(sys.executable).with_name("ct2-serve")
SENTENCE = "The ticket office opens at 5:45."
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "text.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the command runs: nothing is there."""
    return tmp_path


@contextmanager
def _serving(
    folder: Path, *arguments: str, after: Sequence[str] = ()
) -> Iterator[tuple[dict[str, str], Path]]:
    """A server in a folder: what it says when it is ready, and its standard error."""
    log = folder / "stderr.txt"
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    with log.open("w") as stderr:
        process = forked.Popen(
            [COMMAND, *arguments, "--free-ports", "--log-file", "server.log", *after],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("ready; models: "), log.read_text()
        addresses = dict(process.stdout.readline().split() for _ in range(2))
        yield (
            {
                "pid": str(process.pid),
                "models": first.removeprefix("ready; models: ").strip(),
                **addresses,
            },
            log,
        )
        process.terminate()
        assert process.wait() == 0
    finally:
        process.kill()
        process.wait()


def _streamed(address: str) -> str:
    """What the line of docs/text.md for streams gives in German."""
    (line,) = re.findall(r"^curl -sN .*$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    line = line.replace("localhost:8000", address.removeprefix("http://"))
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    events = [json.loads(event[len("data: ") :]) for event in done.stdout.split("\n\n") if event]
    german = [part["text_output"] for part in events if part["target_language"] == "deu_Latn"]
    assert len(german) > 5
    return "".join(german)


def _refused(folder: Path, *arguments: str | Path) -> str:
    command = [COMMAND, *arguments, "--free-ports"]
    return run(*command, code=1, folder=folder, HF_HUB_OFFLINE="1").stderr


def test_the_demo_needs_nothing_on_disk_and_is_prepared_once(folder: Path) -> None:
    with _serving(folder, "demo") as (ready, log):
        assert ready["models"] == "demo, demo-stream, demo-text"
        assert "ct2-serve: demo is not in model_repository: preparing it" in log.read_text()
        repository = folder / "model_repository"
        with SyncTranslationClient(ready["gRPC"], "demo", repository=repository) as client:
            german = client.translate(SENTENCE, source="en", targets="de")
        assert "5:45" in german.text
        assert _streamed(ready["HTTP"]) == german.text
    written = (folder / "model_repository" / "demo" / "ct2_model.json").stat().st_mtime_ns
    with _serving(folder, "demo") as (ready, log):
        assert ready["models"] == "demo, demo-stream, demo-text"
        assert log.read_text() == ""
    assert (folder / "model_repository" / "demo" / "ct2_model.json").stat().st_mtime_ns == written


def test_a_missing_model_is_prepared_with_the_options_of_ct2_prepare(folder: Path) -> None:
    shutil.copytree(tiny_checkpoint("marian"), folder / "tiny")
    options = ("--quantization", "float32", "--io", "ids", "--set", "beam_size=3")
    with _serving(folder, "tiny", *options, "--no-placeholders") as (ready, log):
        assert ready["models"] == "tiny"
        assert "preparing it" in log.read_text()
        # PyTorch would take memory for as long as the server runs.
        maps = Path(f"/proc/{ready['pid']}/maps").read_text()
        assert "libtorch" not in maps
        assert "libctranslate2" not in maps
    model = folder / "model_repository" / "tiny"
    assert json.loads((model / "ct2_model.json").read_text())["conversion"]["quantization"] == (
        "float32"
    )
    assert re.search(
        r'"beam_size"\s+value \{\s+string_value: "3"', (model / "config.pbtxt").read_text()
    )
    errors = _refused(folder, "tiny", "--quantization", "int8")
    assert errors.endswith(
        "model_repository/tiny was prepared with --quantization float32, not int8: replace it with "
        "ct2-prepare --force, or prepare another one with ct2-prepare --name\n"
    )
    with _serving(folder, "tiny", *options) as (ready, log):
        assert ready["models"] == "tiny"
        assert "tiny is prepared already, without regard to --io, --set" in log.read_text()


def test_several_models_are_served_and_the_others_of_the_repository_are_not(folder: Path) -> None:
    """One is prepared, one lies in the repository, one in a folder elsewhere, one is not named."""
    shutil.copytree(tiny_checkpoint("nllb"), folder / "owner" / "tiny-nllb")
    write_identity_model(folder / "model_repository", "identity")
    write_identity_model(folder / "model_repository", "not-named")
    write_identity_model(folder / "elsewhere", "own")
    with _serving(folder, "owner/tiny-nllb", "identity", "elsewhere/own") as (ready, log):
        assert ready["models"] == "identity, own, tiny-nllb, tiny-nllb-stream, tiny-nllb-text"
        steps = log.read_text().splitlines()
        assert steps[0] == "ct2-serve: owner/tiny-nllb is not in model_repository: preparing it"
        assert any("ct2-serve: proving" in step for step in steps)
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(f"{ready['HTTP']}/v2/models/not-named/ready")  # noqa: S310
        with urllib.request.urlopen(f"{ready['HTTP']}/v2/models/own/ready") as answer:  # noqa: S310
            assert answer.status == 200
    assert {path.name for path in (folder / "model_repository").iterdir()} >= {"tiny-nllb"}


def test_arguments_after_two_dashes_are_the_servers(folder: Path) -> None:
    with _serving(folder, "demo", "--model-repository", "models", after=["--", "--log-verbose=1"]):
        wait_until(lambda: "HTTP request: " in (folder / "server.log").read_text())
    own = ("demo", "--model-repository", "models", "--free-ports")
    errors = _refused(folder, *own, "--", "--no-such")
    assert "unrecognized option '--no-such'" in errors
    assert "unexpected argument 'demo' after '--'" in _refused(folder, "--", "demo")


def test_a_model_of_another_origin_is_not_taken_for_the_one_named(folder: Path) -> None:
    prepare_tiny("nllb", folder / "model_repository", "nllb")
    errors = _refused(folder, "facebook/nllb")
    assert re.match(
        r"ct2-serve: model_repository/nllb is not facebook/nllb: it was prepared ", errors
    )
    write_identity_model(folder / "model_repository", "plain")
    assert "something unknown" in _refused(folder, "owner/plain")


@pytest.fixture
def served_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """R/model, prepared from ./x/model; there is a ./y/model, too."""
    monkeypatch.chdir(folder)
    for owner in "xy":
        shutil.copytree(tiny_checkpoint("nllb"), folder / owner / "model")
    with proofs_of(4):
        options = PrepareOptions("./x/model", Path("R"), placeholders=False)
        return prepare(options).directory.resolve()


def _chosen(source: str | Path) -> list[Path]:
    found = choose_models([str(source)], [Path("R")], print, PrepareOptions)
    return [path.resolve() for path in found]


def test_a_folder_of_the_same_name_is_another_model(
    folder: Path, served_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "link").mkdir()
    (folder / "link" / "model").symlink_to(folder / "x" / "model")
    same = ("x/model", "./x/model/", "y/../x/model", "link/model", folder / "x" / "model", "model")
    for source in same:
        assert _chosen(source) == [served_model]
    refusal = (
        f"R/model is not {{}}: it was prepared from {folder}/x/model; serve it as model, or "
        "prepare {} with ct2-prepare --name"
    )
    for other in ("./y/model", "y/model", str(folder / "y" / "model")):
        with pytest.raises(ModelRepositoryError) as raised:
            _chosen(other)
        assert str(raised.value) == refusal.format(other, other)
    for place, is_same in (("x", True), ("y", False)):  # the last part of "." is a name, too
        monkeypatch.chdir(folder / place / "model")
        chosen = partial(choose_models, ["."], [Path("../../R")], print, PrepareOptions)
        if is_same:
            assert chosen()
            continue
        with pytest.raises(ModelRepositoryError, match=r"R/model is not \.: it was prepared from"):
            chosen()


def test_a_folder_that_was_moved_is_told_as_one(folder: Path, served_model: Path) -> None:
    (folder / "x" / "model").rename(folder / "x" / "kept")
    assert _chosen("x/model") == [served_model]  # what was prepared from it is still there
    with pytest.raises(ModelRepositoryError, match=r"x/model, which is no longer there and may"):
        _chosen("y/model")


def test_a_record_of_an_earlier_version_has_the_path_as_given(served_model: Path) -> None:
    record = served_model / "ct2_model.json"
    content = json.loads(record.read_text())
    del content["source"]["path"]
    record.write_text(json.dumps(content))
    assert _chosen("x/model") == [served_model]
    with pytest.raises(ModelRepositoryError, match=r"prepared from \./x/model; serve it as model"):
        _chosen("y/model")


def test_the_demo_and_a_folder_of_that_name_are_told_apart(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    prepare(PrepareOptions("demo", Path("R")))
    (folder / "demo").mkdir()
    assert [path.name for path in _chosen("demo")] == ["demo"]
    with pytest.raises(ModelRepositoryError, match=r"R/demo is not \./demo: it was prepared from"):
        _chosen("./demo")


def test_nothing_is_prepared_where_no_server_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITONSERVER", "/nowhere/tritonserver")
    assert "/nowhere/tritonserver" in _refused(folder, "demo")
    assert list(folder.iterdir()) == []


def test_nothing_is_prepared_where_a_port_is_taken(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        errors = run(COMMAND, "demo", "--http-port", str(port), code=1, folder=folder).stderr
    assert f"cannot use port {port} of 127.0.0.1 for http: " in errors
    assert list(folder.iterdir()) == []


def test_what_cannot_be_served_is_named(folder: Path) -> None:
    write_identity_model(folder / "a", "one")
    write_identity_model(folder / "b", "one")
    assert "are both the model 'one'" in _refused(folder, "a/one", "b/one")
    assert "ct2-serve: a is a model repository: name it with --model-re" in _refused(folder, "a")
    errors = _refused(folder, "owner/no-such-model")
    assert "owner/no-such-model is not in model_repository: preparing it" in errors
    assert "owner/no-such-model is not in the local cache" in errors
    assert "ct2-serve demo" in _refused(folder)
    (folder / "model_repository").mkdir()
    assert "model_repository has no model" in _refused(folder)
    (folder / "texts" / "notes").mkdir(parents=True)
    assert "texts has no model: name one" in _refused(folder, "--model-repository", "texts")
    (folder / "model_repository").mkdir(exist_ok=True)
    assert "dmeo is not in model_repository (did you mean demo?): preparing it" in _refused(
        folder, "dmeo"
    )
    with _serving(folder, after=["--", "--model-control-mode=poll"]) as (ready, _):
        assert ready["models"] == "none"
