# SPDX-License-Identifier: Apache-2.0
"""`ct2-prepare demo`: the model in the package, ready without network, PyTorch or transformers."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ct2_triton.errors import (
    SettingError,
    SourceError,
    UnknownLanguageError,
    UnsupportedModelError,
)
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepare.quality import FILE_NAME
from ct2_triton.prepare.shipped import FOLDER
from ct2_triton.prepare.writing import checksums
from ct2_triton.prepared_model import PreparedModel, TokenRules

CHECKPOINT = FOLDER / "checkpoint"
MAX_BYTES = 12_000_000
# A `sitecustomize` by which these cannot be imported.
WITHOUT = """
import sys
for name in ("torch", "transformers", "huggingface_hub", "tokenizers", "safetensors"):
    sys.modules[name] = None
"""


def files(model: Path) -> dict[str, bytes]:
    """Every file but the manifest; the comment that names the source left out of config.pbtxt."""
    found = {
        path.relative_to(model).as_posix(): path.read_bytes()
        for path in model.rglob("*")
        if path.is_file() and path.name != "ct2_model.json"
    }
    config = found["config.pbtxt"].splitlines(keepends=True)
    assert b"Written by ct2-prepare from" in config[0]
    found["config.pbtxt"] = b"".join(config[1:])
    return found


def test_it_needs_no_network_and_no_conversion_packages(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
        "HF_ENDPOINT": "http://127.0.0.1:9",  # nobody listens there
    }
    command = [str(Path(sys.executable).with_name("ct2-prepare")), "demo"]
    done = subprocess.run(
        [*command, "--model-repository", "repository"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "repository/demo"
    model = PreparedModel.read(tmp_path / "repository" / "demo")
    assert model.manifest["files"] == checksums(tmp_path / "repository" / "demo")
    assert model.manifest["source"]["license"] == "apache-2.0"


def test_the_full_conversion_of_the_checkpoint_gives_the_same_files(tmp_path: Path) -> None:
    shipped = prepare(PrepareOptions("demo", tmp_path / "shipped", instance_kind="cpu"))
    options = PrepareOptions(str(CHECKPOINT), tmp_path / "made", "demo", instance_kind="cpu")
    made = prepare(options)
    ours, others = files(shipped.directory), files(made.directory)
    plain = others.pop("config.pbtxt")
    config = ours.pop("config.pbtxt")
    assert config.startswith(plain)
    verdicts = json.loads(ours.pop(f"1/model/{FILE_NAME}"))  # it was given the demo's sentences
    given = {
        code
        for code, one in verdicts["languages"].items()
        if any("length" in bounds for bounds in one.get("from", {}).values())
    }
    assert given == {entry.code for entry in shipped.rules.languages if entry.target}
    tables = [json.loads(found.pop("tokenizer/languages.json")) for found in (ours, others)]
    kinds = [table.pop("placeholders") for table in tables]
    assert tables[0] == tables[1]
    assert all(map(len, kinds))  # which names it copies best is a matter of rounding
    assert b'key: "alignment_heads"' in config[len(plain) :]  # this model's own
    assert ours == others
    proofs = [model.manifest["verification"] for model in (shipped, made)]
    for proof in proofs:
        del proof["near_ties"]  # their gaps are rounding noise
    assert proofs[0] == proofs[1]


def test_it_translates_from_english_into_the_others_alone() -> None:
    rules = TokenRules.read(FOLDER)
    assert [entry.code for entry in rules.languages if entry.source] == ["eng_Latn"]
    assert len([entry for entry in rules.languages if entry.target]) == 6
    with pytest.raises(UnknownLanguageError, match="no source language 'de'; it has eng_Latn"):
        rules.source_language("de")
    with pytest.raises(UnknownLanguageError, match="no target language 'en'; it has deu_Latn, "):
        rules.target_language("en")
    assert rules.target_language("de") is not None


def test_another_precision_is_converted_from_the_checkpoint(tmp_path: Path) -> None:
    model = prepare(PrepareOptions("demo", tmp_path, "demo16", quantization="float16"))
    assert model.directory.name == "demo16"
    assert model.manifest["conversion"]["quantization"] == "float16"
    assert model.manifest["source"]["id"] == "demo"
    shipped, converted = FOLDER / "model", model.directory / "1" / "model"
    sizes = [(folder / "model.bin").stat().st_size for folder in (converted, shipped)]
    assert sizes[0] > 1.8 * sizes[1]
    assert (converted / FILE_NAME).read_bytes() == (shipped / FILE_NAME).read_bytes()


def test_settings_and_names_are_the_callers(tmp_path: Path) -> None:
    options = PrepareOptions(
        "demo", tmp_path, "mine", max_batch_size=8, settings={"beam_size": "4"}
    )
    model = prepare(options)
    config = (model.directory / "config.pbtxt").read_text(encoding="utf-8")
    assert 'name: "mine"' in config
    assert "max_batch_size: 8" in config
    assert 'key: "beam_size" value { string_value: "4" }' in " ".join(config.split())


def test_wrong_choices_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="beam_sise"):
        prepare(PrepareOptions("demo", tmp_path, settings={"beam_sise": "4"}))
    with pytest.raises(SourceError, match="it has no revision 'v2'"):
        prepare(PrepareOptions("demo", tmp_path, revision="v2"))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_called_demo_is_named_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "demo").symlink_to("other")
    with pytest.raises(UnsupportedModelError, match=r"there is no model: neither config\.json"):
        prepare(PrepareOptions("./demo", tmp_path / "repository"))
    assert prepare(PrepareOptions("demo", tmp_path / "repository")).directory.name == "demo"


def test_the_weights_are_those_of_the_recorded_training() -> None:
    record = json.loads((CHECKPOINT / "training.json").read_text(encoding="utf-8"))
    for name, checksum in record["files"].items():
        assert hashlib.sha256((CHECKPOINT / name).read_bytes()).hexdigest() == checksum, name
    grammar = Path(__file__).resolve().parents[3] / "demo_model" / "grammar"
    assert record["grammar"] == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(grammar.glob("*.yaml"))
    }


def test_it_is_small() -> None:
    size = sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file())
    assert size <= MAX_BYTES
    card = (CHECKPOINT / "README.md").read_text(encoding="utf-8")
    assert "license: apache-2.0" in card
