# SPDX-License-Identifier: Apache-2.0
"""`--io`: models that take text, alone or beside the model of ids."""

from __future__ import annotations

import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format, text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from ct2_triton import _core
from ct2_triton.client import Tokenizer, TranslationClient
from ct2_triton.errors import OutputError, SettingError, UnsupportedModelError
from ct2_triton.prepare import PrepareOptions, prepare
from support.tiny import tiny_checkpoint

pytestmark = pytest.mark.usefixtures("short_proofs")


def _config(folder: Path) -> ModelConfig:
    return text_format.Parse((folder / "config.pbtxt").read_text(encoding="utf-8"), ModelConfig())


def _files(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _as_loaded(folder: Path) -> dict[str, Any]:
    """The configuration, which the backend's own code must accept and find complete."""
    text = json_format.MessageToJson(_config(folder), preserving_proto_field_name=True)
    _core.parse_model_config(text)
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def test_both_are_one_set_of_files(tmp_path: Path) -> None:
    settings = {"beam_size": "4", "verify_files": "true"}
    prepare(PrepareOptions("demo", tmp_path, settings=settings, max_batch_size=8, io="both"))
    text = _as_loaded(tmp_path / "demo-text")
    assert [tensor["name"] for tensor in text["input"]] == [
        "text_input",
        "source_language",
        "target_languages",
        "target_prefix",
        "draft",
        "stream",
    ]
    parameters = {name: value["string_value"] for name, value in text["parameters"].items()}
    assert parameters["beam_size"] == "4"
    assert not {"verify_files", "pad_id"} & set(parameters)
    assert text["max_batch_size"] == 8
    for name, file in (("model_path", "model.bin"), ("tokenizer_path", "languages.json")):
        path = parameters[name].replace("{version}", "1")
        assert (tmp_path / "demo-text" / path / file).is_file()
    assert [path.name for path in (tmp_path / "demo-text").rglob("*") if path.is_file()] == [
        "config.pbtxt"
    ]
    assert _as_loaded(tmp_path / "demo")["input"][0]["name"] == "INPUT_IDS"


def test_a_stream_model_is_greedy_whatever_search_the_model_has(tmp_path: Path) -> None:
    settings = {"beam_size": "4", "patience": "2", "coverage_penalty": "0.5", "use_vmap": "false"}
    prepare(PrepareOptions("demo", tmp_path, settings=settings, io="stream"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo", "demo-stream", "demo-text"]
    stream = _as_loaded(tmp_path / "demo-stream")
    assert stream["model_transaction_policy"] == {"decoupled": True}
    assert stream["max_batch_size"] == 256
    parameters = {name: value["string_value"] for name, value in stream["parameters"].items()}
    assert parameters["beam_size"] == "1"
    assert not {"patience", "coverage_penalty"} & set(parameters)
    text = _as_loaded(tmp_path / "demo-text")["parameters"]
    assert text["beam_size"]["string_value"] == "4"
    for name in ("model_path", "tokenizer_path", "use_vmap"):
        assert parameters[name] == text[name]["string_value"]


def test_text_alone(tmp_path: Path) -> None:
    prepare(PrepareOptions("demo", tmp_path, io="text"))
    assert _as_loaded(tmp_path / "demo")["input"][0]["name"] == "text_input"
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


def test_a_text_model_that_is_there_is_kept(tmp_path: Path) -> None:
    prepare(PrepareOptions("demo", tmp_path, io="both"))
    shutil.rmtree(tmp_path / "demo")
    with pytest.raises(OutputError, match=r"demo-text exists already; --force replaces it"):
        prepare(PrepareOptions("demo", tmp_path, io="both"))
    assert [path.name for path in tmp_path.iterdir()] == ["demo-text"]
    (tmp_path / "demo-text" / "stale").touch()
    prepare(PrepareOptions("demo", tmp_path, io="both", force=True))
    assert _config(tmp_path / "demo-text").name == "demo-text"
    assert not (tmp_path / "demo-text" / "stale").exists()


@pytest.mark.parametrize(
    ("io", "suffix"),
    [("both", "-text"), ("stream", "-text"), ("stream", "-stream"), ("auto", "-stream")],
)
def test_a_model_of_its_own_is_not_taken_for_a_text_model(
    tmp_path: Path, io: str, suffix: str
) -> None:
    prepare(PrepareOptions("demo", tmp_path, f"demo{suffix}", io="text"))
    before = _files(tmp_path)
    for force in (False, True):
        with pytest.raises(OutputError, match=f"demo{suffix} does not share the files of demo, so"):
            prepare(PrepareOptions("nowhere/at-all", tmp_path, "demo", io=io, force=force))
        assert _files(tmp_path) == before


@pytest.mark.parametrize(
    ("first", "then", "left"),
    [("both", "ids", "-text"), ("both", "text", "-text"), ("stream", "both", "-stream")],
)
def test_no_text_model_is_left_with_the_files_of_another(
    tmp_path: Path, first: str, then: str, left: str
) -> None:
    """It would have the special tokens and the versions of the model before."""
    prepare(PrepareOptions("demo", tmp_path, "one", io=first))
    before = _files(tmp_path)
    options = PrepareOptions("nowhere/at-all", tmp_path, "one", io=then, force=True)
    with pytest.raises(OutputError, match=f"one{left} shares the files of one, and --io {then} d"):
        prepare(options)
    assert _files(tmp_path) == before
    shutil.rmtree(tmp_path / "one")
    with pytest.raises(OutputError, match=f"one{left} shares the files|one-text exists already"):
        prepare(replace(options, force=False))
    prepare(PrepareOptions("demo", tmp_path, "one", io="auto", force=True))


@pytest.mark.parametrize("name", ["model_path", "tokenizer_path"])
def test_files_of_a_text_model_cannot_be_set(tmp_path: Path, name: str) -> None:
    prepare(PrepareOptions("demo", tmp_path, "one", io="both"))
    before = _files(tmp_path)
    options = PrepareOptions("nowhere/at-all", tmp_path, "one", io="both", settings={name: "x"})
    with pytest.raises(SettingError, match=f"--set {name}=x is not possible with one-text: "):
        prepare(replace(options, force=True))
    assert _files(tmp_path) == before


def test_a_name_that_leaves_no_room_for_the_suffixes_is_refused(tmp_path: Path) -> None:
    before = _files(tmp_path)
    options = PrepareOptions("nowhere/at-all", tmp_path / "repository", "n" * 250, io="stream")
    with pytest.raises(OutputError, match=r"n is longer than .* can be, by \d+ characters"):
        prepare(options)
    assert _files(tmp_path) == before


def test_all_models_are_put_in_place_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(PrepareOptions("demo", tmp_path / "repository", "one", io="both"))
    before = _files(tmp_path)
    rename = Path.rename

    def failing(path: Path, target: Path) -> Path:
        if path.parent.suffix == ".tmp" and path.name == "one-text":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    options = PrepareOptions("demo", tmp_path / "repository", "one", io="both", force=True)
    with pytest.raises(OutputError, match="one-text in place: Input/output error"):
        prepare(replace(options, settings={"beam_size": "2"}))
    assert _files(tmp_path) == before
    monkeypatch.undo()
    prepare(options)


def test_an_unknown_choice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="io is 'words'; it must be one of ids, text"):
        prepare(PrepareOptions("demo", tmp_path, io="words"))


def test_a_tokenizer_that_the_backend_cannot_read_is_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(tiny_checkpoint("nllb"), checkpoint)
    (checkpoint / "sentencepiece.bpe.model").unlink()
    before = _files(tmp_path)
    options = PrepareOptions(str(checkpoint), tmp_path / "repository", io="both")
    with pytest.raises(UnsupportedModelError, match="prepare it with --io ids"):
        prepare(replace(options, placeholders=False))
    assert _files(tmp_path) == before


@pytest.mark.parametrize("can", [True, False])
def test_auto_is_all_that_the_backend_can_do(tmp_path: Path, can: bool) -> None:
    """Where a checkpoint has no SentencePiece file, only clients read its tokenizer.json."""
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(tiny_checkpoint("nllb"), checkpoint)
    if not can:
        (checkpoint / "sentencepiece.bpe.model").unlink()
    lines: list[str] = []
    options = PrepareOptions(str(checkpoint), tmp_path / "repository", "one", io="auto")
    prepare(replace(options, placeholders=False), lines.append)
    written = sorted(path.name for path in (tmp_path / "repository").iterdir())
    assert written == (["one", "one-stream", "one-text"] if can else ["one"])
    assert any(line.startswith("takes token ids only: the backend ") for line in lines) != can
    assert not any("--io" in line for line in lines)


def test_a_model_for_ids_alone_replaces_those_of_text_too(tmp_path: Path) -> None:
    """Their configurations name its files, whose tokenizer the backend cannot read."""
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(tiny_checkpoint("nllb"), checkpoint)
    (checkpoint / "sentencepiece.bpe.model").unlink()
    repository = tmp_path / "repository"
    prepare(PrepareOptions("demo", repository, "one", io="auto"))
    (repository / "one-other").mkdir()
    lines: list[str] = []
    options = PrepareOptions(str(checkpoint), repository, "one", io="auto", placeholders=False)
    prepare(replace(options, force=True), lines.append)
    assert sorted(path.name for path in repository.iterdir()) == ["one", "one-other"]
    assert "removed, with the model they belonged to: one-text, one-stream" in lines


@pytest.mark.parametrize(
    ("io", "name", "needed"),
    [("both", "demo-text", False), ("both", "demo", True), ("text", "demo", False)],
)
def test_the_client_reads_a_tokenizer_for_a_model_of_ids_alone(
    tmp_path: Path, io: str, name: str, needed: bool
) -> None:
    prepare(PrepareOptions("demo", tmp_path, io=io))
    client = TranslationClient("localhost:1", name, repository=tmp_path)
    assert isinstance(client.languages, Tokenizer) == needed


def test_a_comment_that_is_not_utf8_does_not_keep_the_client_from_its_tokenizer(
    tmp_path: Path,
) -> None:
    with prepare(PrepareOptions("demo", tmp_path)).config_file.open("ab") as file:
        file.write("# Bahnhöfe\n".encode("latin-1"))
    client = TranslationClient("localhost:1", "demo", repository=tmp_path)
    assert isinstance(client.languages, Tokenizer)
