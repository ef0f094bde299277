# SPDX-License-Identifier: Apache-2.0
"""ct2_model.json says where a model comes from, and its checksums can be checked."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

import ct2_triton
from ct2_triton import cli
from ct2_triton.checksums import verify
from ct2_triton.errors import PreparedModelError
from ct2_triton.prepare import PrepareOptions
from ct2_triton.prepare.pipeline import model_name
from ct2_triton.prepare.source import find_checkpoint
from ct2_triton.prepared_model import PreparedModel, TokenRules
from python.prepare.conftest import Prepared


def test_every_file_has_its_checksum(prepared: Prepared) -> None:
    model = prepared("nllb")
    listed = dict(model.manifest["files"])
    for path in model.directory.rglob("*"):
        name = path.relative_to(model.directory).as_posix()
        if path.is_file() and name != "ct2_model.json":
            assert listed.pop(name) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert listed == {}


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.fixture
def copied(prepared: Prepared, tmp_path: Path) -> Path:
    return Path(shutil.copytree(prepared("nllb").directory, tmp_path / "nllb"))


def test_verify_is_content_with_what_was_written(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.models(["verify", "nllb", "--model-repository", str(copied.parent)]) == 0
    captured = capsys.readouterr()
    assert captured.out == "nllb: unchanged\n"
    assert captured.err == ""


@pytest.mark.parametrize("name", ["1/model/model.bin", "tokenizer/tokenizer.json"])
def test_verify_finds_a_flipped_byte(
    copied: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    flip_a_byte(copied / name)
    assert cli.models(["verify", "nllb", "--model-repository", str(copied.parent)]) == 1
    assert f"{name} has changed" in capsys.readouterr().out
    flip_a_byte(copied / name)
    assert verify(copied) == []


def test_verify_names_a_missing_file(copied: Path) -> None:
    (copied / "1" / "model" / "config.json").unlink()
    with pytest.raises(PreparedModelError, match=r"1/model/config\.json is missing"):
        verify(copied)
    (copied / "ct2_model.json").write_text('{"format": 1}', encoding="utf-8")
    with pytest.raises(PreparedModelError, match="lists no files"):
        verify(copied)
    (copied / "ct2_model.json").unlink()
    with pytest.raises(PreparedModelError, match="does not exist"):
        verify(copied)


def test_verify_tells_what_its_owner_changed(copied: Path) -> None:
    with (copied / "config.pbtxt").open("a", encoding="utf-8") as config:
        config.write("# mine\n")
    (copied / "1" / "model" / "vmap.txt").touch()
    edited, added = verify(copied)
    assert "config.pbtxt has changed" in edited
    assert "vmap.txt is not in ct2_model.json" in added


def test_versions_options_and_proof_are_recorded(prepared: Prepared) -> None:
    manifest = prepared("nllb").manifest
    assert manifest["name"] == "nllb"
    assert manifest["family"] == "nllb"
    assert manifest["versions"]["ct2-triton"] == ct2_triton.__version__
    for package in ("ctranslate2", "transformers", "tokenizers", "sentencepiece", "torch"):
        assert manifest["versions"][package] == version(package)
    assert manifest["conversion"]["quantization"] == "float32"
    proof = manifest["verification"]
    assert proof["vocabulary_tokens"] == 1406
    assert proof["probes"] == 13
    assert proof["stored_rows_equal"] == proof["probes"]
    assert proof["compared_tokens"] > 300
    assert proof["near_ties"] == []
    equal = {"near_ties": [], "stored_rows_equal": proof["probes"], "not_compared": ""}
    assert proof["loops"] == equal
    for of_type in ("default", "float32"):
        proof = manifest["loop_proofs"][of_type]
        assert proof["rows_equal"] == proof["rows"] == 16
        assert "trial of 12 tokens" in proof["trial"]
        assert len(proof["id"]) == 64


@pytest.mark.parametrize(
    ("front_matter", "expected"),
    [
        ("license: mit", "mit"),
        ("license: [apache-2.0, cc-by-4.0]", "apache-2.0, cc-by-4.0"),
        ("license: other\nlicense_name: the-house-licence", "the-house-licence"),
        ("language: de", None),
        ("- a list", None),
    ],
)
def test_the_licence_comes_from_the_model_card(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path, front_matter: str, expected: str | None
) -> None:
    checkpoint = checkpoint_copy("nllb")
    card = f"---\n{front_matter}\n---\n# Card\n"
    (checkpoint / "README.md").write_text(card, encoding="utf-8")
    assert find_checkpoint(str(checkpoint), None, tmp_path).source.license == expected


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("facebook/nllb-200-distilled-600M", "nllb-200-distilled-600M"),
        ("Helsinki-NLP/opus-mt-en-de", "opus-mt-en-de"),
        ("some/where/trailing/", "trailing"),
    ],
)
def test_the_name_is_derived_from_the_source(tmp_path: Path, source: str, name: str) -> None:
    assert model_name(PrepareOptions(source, tmp_path)) == name
    assert model_name(PrepareOptions(source, tmp_path, name="mine")) == "mine"


def test_the_name_of_the_present_folder_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my-model").mkdir()
    monkeypatch.chdir(tmp_path / "my-model")
    assert model_name(PrepareOptions(".", tmp_path)) == "my-model"


def test_reading_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(PreparedModelError, match="ct2-prepare wrote"):
        PreparedModel.read(tmp_path)
    (tmp_path / "ct2_model.json").write_text("{", encoding="utf-8")
    with pytest.raises(PreparedModelError, match="cannot read"):
        PreparedModel.read(tmp_path)
    (tmp_path / "ct2_model.json").write_text('{"format": 99}', encoding="utf-8")
    with pytest.raises(PreparedModelError, match="format 1"):
        PreparedModel.read(tmp_path)
    (tmp_path / "ct2_model.json").write_text('{"format": 1}', encoding="utf-8")
    with pytest.raises(PreparedModelError, match="damaged"):
        PreparedModel.read(tmp_path)


def test_rules_survive_writing_and_reading(prepared: Prepared, tmp_path: Path) -> None:
    for family in ("nllb", "marian", "t5"):
        rules = prepared(family).rules
        rules.write(tmp_path)
        assert TokenRules.read(tmp_path) == rules


def test_rules_of_an_earlier_version_are_read(prepared: Prepared, tmp_path: Path) -> None:
    prepared("marian").rules.write(tmp_path)
    path = tmp_path / "languages.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    for key in ("added_tokens", "other_scripts", "source_last"):
        del content[key]
    path.write_text(json.dumps(content), encoding="utf-8")
    assert not TokenRules.read(tmp_path).source_last
    assert TokenRules.read(tmp_path).languages == prepared("marian").rules.languages


@pytest.mark.parametrize("key", ["end_ids", "languages", "duplicate_ids"])
def test_damaged_rules_are_refused(prepared: Prepared, tmp_path: Path, key: str) -> None:
    prepared("nllb").rules.write(tmp_path)
    path = tmp_path / "languages.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, key: None}), encoding="utf-8")
    with pytest.raises(PreparedModelError, match="damaged"):
        TokenRules.read(tmp_path)
