# SPDX-License-Identifier: Apache-2.0
"""`ct2-models` on repositories, and beside a real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ct2_triton.prepare import PrepareOptions, prepare
from support import forked
from support.commands import run
from support.models_command import ct2_models
from support.repository import write_model
from support.servers import MakeServer
from support.tiny import tiny_checkpoint


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory, nllb_engine_model: Path) -> Path:
    """The demo, a converted checkpoint, a model by hand and a folder that is none."""
    folder = tmp_path_factory.mktemp("repository")
    prepare(PrepareOptions("demo", folder))
    prepare(PrepareOptions(str(tiny_checkpoint("m2m100")), folder, quantization="float32"))
    written = write_model(folder, "by-hand", nllb_engine_model)
    (written / "3").mkdir()
    (folder / "notes").mkdir()
    return folder


def test_list_has_a_line_for_each_model(repository: Path) -> None:
    header, *lines = (line.split() for line in ct2_models(repository, "list").splitlines())
    assert " ".join(header) == "model version served source revision weights licence server"
    checkpoint = tiny_checkpoint("m2m100")
    assert lines == [
        ["by-hand", "1", "no", "not", "prepared", "-", "-", "-", "-"],
        ["by-hand", "3", "yes", "not", "prepared", "-", "-", "-", "-"],
        ["demo", "1", "yes", "demo", "-", "int8", "apache-2.0", "-"],
        [checkpoint.name, "1", "yes", str(checkpoint), "-", "float32", "-", "-"],
    ]


def test_a_reader_that_has_had_enough_ends_it_quietly(repository: Path) -> None:
    """As it ends each command that prints."""
    read, write = os.pipe()
    os.close(read)
    command = [Path(sys.executable).with_name("ct2-models"), "list"]
    done = forked.run(
        [*command, "--model-repository", repository],
        stdout=write, stderr=subprocess.PIPE, check=False, timeout=600,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


def test_show_has_the_whole_record(repository: Path) -> None:
    text = ct2_models(repository, "show", "demo")
    record = json.loads((repository / "demo" / "ct2_model.json").read_text())
    lines = text.splitlines()
    assert lines[:3] == ["name: demo", f"folder: {repository / 'demo'}", "model_versions: 1"]
    assert lines[3] == "served_versions: 1"
    for line in (
        "  id: demo",
        "  license: apache-2.0",
        "  quantization: int8",
        f"  ctranslate2: {record['versions']['ctranslate2']}",
        f"  decoded_rows: {record['verification']['decoded_rows']}",
        f"files: {len(record['files'])}",
    ):
        assert line in lines
    shown = json.loads(ct2_models(repository, "show", "demo", "--json"))
    assert shown["verification"] == record["verification"]
    assert shown["versions"] == record["versions"]


def test_an_unknown_model_is_told_with_the_nearest(repository: Path, tmp_path: Path) -> None:
    text = ct2_models(repository, "show", "dema", code=1)
    assert text == "ct2-models: there is no model 'dema'; nearest: demo\n"
    nowhere = tmp_path / "nowhere"
    assert (
        ct2_models(nowhere, "list", code=1)
        == f"ct2-models: there is no model repository {nowhere}\n"
    )
    assert ct2_models(tmp_path, "list").split()[0] == "model"


def test_without_an_action_only_the_action_is_missing(repository: Path) -> None:
    done = run("ct2-models", code=2, folder=repository)
    assert done.stderr == (
        "ct2-models: the following arguments are required: COMMAND; see ct2-models --help\n"
    )


def test_a_model_of_text_is_told_as_what_it_is(tmp_path: Path) -> None:
    prepare(PrepareOptions("demo", tmp_path, io="both"))
    lines = ct2_models(tmp_path, "list").splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [
        ["demo", "1", "yes"], ["demo-text", "1", "yes"]
    ]  # fmt: skip
    assert "the files of demo" in lines[2]
    whole, beside = ct2_models(tmp_path, "verify").splitlines()
    assert whole == "demo: unchanged"
    assert beside == "demo-text: the files of demo; no checksums of its own"
    shown = json.loads(ct2_models(tmp_path, "show", "demo-text", "--json"))
    assert shown["files_of"] == "demo"


def test_verify_finds_damage_and_goes_on(repository: Path, tmp_path: Path) -> None:
    assert ct2_models(repository, "verify").splitlines() == [
        "by-hand: not prepared; no checksums of its own",
        "demo: unchanged",
        f"{tiny_checkpoint('m2m100').name}: unchanged",
    ]
    copy = tmp_path / "copy"
    prepare(PrepareOptions("demo", copy, name="a"))
    prepare(PrepareOptions("demo", copy, name="b"))
    weights = copy / "a" / "1" / "model" / "model.bin"
    weights.write_bytes(weights.read_bytes()[:-1])
    damaged, whole = ct2_models(copy, "verify", code=1).splitlines()
    assert damaged.startswith("a: ")
    assert "1/model/model.bin has changed" in damaged
    assert whole == "b: unchanged"


def test_a_damaged_record_hides_no_other_model(tmp_path: Path) -> None:
    for name in "abc":
        prepare(PrepareOptions("demo", tmp_path, name=name))
    (tmp_path / "a" / "ct2_model.json").write_text("{")
    result = run("ct2-models", "list", "--model-repository", tmp_path, code=1)
    assert [line.split()[:2] for line in result.stdout.splitlines()[1:]] == [
        ["a", "none"], ["b", "1"], ["c", "1"]
    ]  # fmt: skip
    assert "model a: " in result.stderr
    assert "ct2_model.json" in result.stderr
    damaged, *others = ct2_models(tmp_path, "verify", code=1).splitlines()
    assert "ct2_model.json" in damaged
    assert others == ["b: unchanged", "c: unchanged"]
    assert "ct2_model.json" in ct2_models(tmp_path, "rollback", "a", code=1)
    assert ct2_models(tmp_path, "show", "b")


@pytest.mark.server
def test_a_server_says_what_it_has_loaded(tmp_path: Path, make_server: MakeServer) -> None:
    prepare(PrepareOptions("demo", tmp_path, name="served"))
    prepare(PrepareOptions("demo", tmp_path, name="left-out"))
    server = make_server(
        tmp_path, server_arguments=["--model-control-mode=explicit", "--load-model=served"]
    )
    address = server.grpc_url
    lines = [line.split() for line in ct2_models(tmp_path, "list", "--url", address).splitlines()]
    assert [line[-2:] for line in lines[1:]] == [["apache-2.0", "-"], ["apache-2.0", "READY"]]
    shown = json.loads(ct2_models(tmp_path, "show", "served", "--json", "--url", address))
    assert shown["server"] == {"1": "READY"}
    assert "int8" in _origin(server.log_text())
    server.stop()
    text = ct2_models(tmp_path, "list", "--url", address, code=1)
    assert text.startswith(f"ct2-models: no Triton server answers at {address}: ")
    assert len(text.splitlines()) == 1


def _origin(log: str) -> str:
    """What the load log says of where the model comes from."""
    (line,) = [line for line in log.splitlines() if ", made of " in line]
    return line.partition(", made of ")[2]


@pytest.mark.server
def test_the_load_log_names_source_and_revision(tmp_path: Path, make_server: MakeServer) -> None:
    model = prepare(PrepareOptions("demo", tmp_path))
    manifest = model.directory / "ct2_model.json"
    record = json.loads(manifest.read_text())
    record["source"] |= {"id": "owner/name", "revision": "main", "commit": "0123456789abcdef"}
    manifest.write_text(json.dumps(record))
    log = make_server(tmp_path).log_text().replace('\\"', '"')
    assert _origin(log).startswith('"owner/name", revision "main", commit "0123456789abcdef", int8')
