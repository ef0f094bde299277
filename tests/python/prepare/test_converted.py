# SPDX-License-Identifier: Apache-2.0
"""Models without a checkpoint: what is recorded of them, and what is refused, in one sentence."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch

import tiny_packages
from ct2_triton.client.tokenization import Tokenizer
from ct2_triton.errors import (
    MissingPackageError,
    PrepareError,
    SettingError,
    SourceError,
    UnsupportedModelError,
)
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepared_model import PreparedModel
from model_bin import read_model_bin, write_model_bin
from support.no_pytorch import prepare_without_pytorch
from support.tiny import tiny_checkpoint, tiny_engine_model


def prepare_here(source: Path, **options: Any) -> PreparedModel:
    repository = source.parent / "repository"
    return prepare(PrepareOptions(str(source), repository, name="m", **options))


def refusal(source: Path, kind: type[PrepareError] = UnsupportedModelError, **options: Any) -> str:
    """Prepares what cannot be; nothing is left, and the message is one line."""
    with pytest.raises(kind) as caught:
        prepare_here(source, **options)
    assert not list(source.parent.glob("repository/*"))
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a CTranslate2 folder of a family with its tokenizer, to be changed by the test."""

    def make(family: str = "nllb", quantization: str | None = None) -> Path:
        converted = tiny_engine_model(family, quantization=quantization)
        return tiny_packages.make_ctranslate2(tiny_checkpoint(family), converted, tmp_path / "ct2")

    return make


@pytest.fixture
def opennmt_py(tmp_path: Path) -> Path:
    return tiny_packages.make_opennmt_py(tmp_path / "onmt")


def test_what_is_not_proved_is_printed_and_recorded(folder: Callable[..., Path]) -> None:
    source = folder("nllb", "int8")
    lines: list[str] = []
    options = PrepareOptions(str(source), source.parent / "repository", name="m")
    model = prepare(options, lines.append)
    record = model.manifest["verification"]
    assert record["proved"] is False
    assert record["translated"] == record["probes"] == 13
    assert record["files_compared"] == ["tokenizer.json"]
    assert len(record["not_proved"]) == 4
    assert [f"not proved: {line}" for line in record["not_proved"]] == lines[-4:]
    assert model.manifest["family"] == "CTranslate2 model"
    assert model.manifest["stored"] == "int8"
    assert "the weights stay as they are stored, in int8" in lines


@pytest.mark.parametrize("family", ["nllb", "m2m100", "mbart50", "mbart25", "marian", "madlad"])
def test_the_rules_are_those_of_the_checkpoint(
    family: str, folder: Callable[..., Path], prepared: Callable[[str], PreparedModel]
) -> None:
    found, wanted = prepare_here(folder(family)).rules, prepared(family).rules

    def ids(rules: Any) -> dict[str, Any]:
        return {entry.code: entry for entry in rules.languages if entry.target}

    if family != "marian":  # whose tokenizer_config.json names a source as well
        assert found.languages == wanted.languages
    assert ids(found) == ids(wanted)
    assert found.end_ids == wanted.end_ids
    assert found.unk_id == wanted.unk_id
    assert found.max_target_tokens is not None or wanted.max_target_tokens is None


def test_a_tokenizer_json_alone_gives_the_ids_of_sentencepiece(folder: Callable[..., Path]) -> None:
    source = folder("nllb")
    shutil.rmtree(source.parent / "repository", ignore_errors=True)
    wanted = Tokenizer(prepare_here(source).tokenizer_folder)
    (source / "sentencepiece.bpe.model").unlink()
    options = PrepareOptions(str(source), source.parent / "other", name="m")
    found = Tokenizer(prepare(options).tokenizer_folder)
    for text in ("How is your day going?", "Grüße aus Köln </s> fra_Latn", "今天 ☃"):
        assert found.encode(text) == wanted.encode(text)
        assert found.decode(found.encode(text).ids) == wanted.decode(wanted.encode(text).ids)


def test_vocabularies_of_older_versions(folder: Callable[..., Path]) -> None:
    source = folder("m2m100")
    file = source / "shared_vocabulary.json"
    tokens = json.loads(file.read_text(encoding="utf-8"))
    file.unlink()
    text = "".join(f"{token}\n" for token in tokens)
    (source / "shared_vocabulary.txt").write_text(text, encoding="utf-8")
    model = prepare_here(source)
    written = (model.model_folder / "shared_vocabulary.json").read_text(encoding="utf-8")
    assert json.loads(written) == tokens


def test_an_unpacked_argos_package_and_one_in_a_folder(opennmt_py: Path, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    package = tiny_packages.make_argos(opennmt_py, tmp_path / "place" / "p.argosmodel", "zt", "pb")
    packed = prepare(PrepareOptions(str(package.parent), tmp_path / "one", name="m"))
    with zipfile.ZipFile(package) as content:
        content.extractall(tmp_path / "unpacked")
    [unpacked] = (tmp_path / "unpacked").iterdir()
    found = prepare(PrepareOptions(str(unpacked), tmp_path / "two", name="m"))
    assert found.rules == packed.rules
    source, target = found.rules.source_language("zh-TW"), found.rules.target_language("pt-BR")
    assert source is not None
    assert target is not None
    assert (source.code, target.code) == ("zt", "pb")
    assert prepare(PrepareOptions(str(package), tmp_path / "three")).name == "p"


def test_without_pytorch_and_transformers(opennmt_py: Path, tmp_path: Path) -> None:
    """In an environment that holds neither, a package is prepared, and a checkpoint is not."""
    package = tiny_packages.make_argos(opennmt_py, tmp_path / "p.argosmodel")
    opus = tiny_packages.make_opus_mt(tiny_checkpoint("marian"), tmp_path / "opus")
    for source in (package, opus):
        done = run_without_pytorch(tmp_path, source)
        assert done.returncode == 0, done.stderr
        assert "not proved: that the weights" in done.stderr
    for source, kind in (
        (tiny_checkpoint("marian"), "transformers checkpoint"),
        (opennmt_py, "OpenNMT-py checkpoint"),
    ):
        refused = run_without_pytorch(tmp_path, source)
        assert refused.returncode == 1
        [line] = refused.stderr.splitlines()
        assert f"this is a {kind}, whose conversion needs more: not installed: torch" in line
        assert "unless PIP_EXTRA_INDEX_URL names PyTorch's CPU index" in line


def run_without_pytorch(tmp_path: Path, source: Path) -> subprocess.CompletedProcess[str]:
    arguments = [str(source), "--force", "--model-repository", str(tmp_path / "repository")]
    return prepare_without_pytorch(tmp_path, arguments)


# What is refused


def test_a_folder_without_vocabulary(folder: Callable[..., Path]) -> None:
    source = folder()
    (source / "shared_vocabulary.json").unlink()
    assert "there is no vocabulary beside model.bin" in refusal(source)


def test_a_folder_without_tokenizer(folder: Callable[..., Path]) -> None:
    source = folder()
    for name in ("sentencepiece.bpe.model", "tokenizer.json"):
        (source / name).unlink()
    assert "there is no tokenizer: neither a SentencePiece model" in refusal(source)
    (source / "bpe.model").write_text("#version: 0.2\n")
    assert "split by subword-nmt (BPE)" in refusal(source)


def test_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "there is no model: neither" in refusal(tmp_path / "empty")


def test_the_tokenizer_of_another_model(folder: Callable[..., Path]) -> None:
    source = folder("marian")
    (source / "vocab.json").unlink()
    for name in ("source.spm", "target.spm"):
        text = " ".join(chr(0x4E00 + i) for i in range(400))
        with (source / name).open("wb") as stream:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter([text]), model_writer=stream, vocab_size=405,
                hard_vocab_limit=False, minloglevel=2,
            )  # fmt: skip
    assert "which must be another model's" in refusal(source, PrepareError)


def test_a_vocab_json_with_other_numbers(folder: Callable[..., Path]) -> None:
    source = folder("marian")
    file = source / "vocab.json"
    numbered = json.loads(file.read_text(encoding="utf-8"))
    one, other = list(numbered)[100:102]
    numbered[one], numbered[other] = numbered[other], numbered[one]
    file.write_text(json.dumps(numbered), encoding="utf-8")
    message = refusal(source, PrepareError)
    assert "differs from vocab.json at 2 of 1993 ids" in message


def test_a_vocabulary_of_another_size(folder: Callable[..., Path]) -> None:
    source = folder()
    file = source / "shared_vocabulary.json"
    tokens = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps([*tokens, "more"]), encoding="utf-8")
    message = refusal(source, PrepareError)
    assert "the source vocabulary has 1407 tokens, and the model 1406 rows" in message


def test_a_model_that_is_no_translation_model(folder: Callable[..., Path]) -> None:
    source = folder()
    content = read_model_bin(source / "model.bin")
    content.specification = "TransformerDecoderSpec"
    write_model_bin(content, source / "model.bin")
    message = refusal(source)
    assert "'TransformerDecoderSpec', which is not a translation model" in message


@pytest.mark.parametrize("size", [0, 3, 40, 5000])
def test_a_model_bin_that_is_cut(folder: Callable[..., Path], size: int) -> None:
    source = folder()
    content = (source / "model.bin").read_bytes()[:size]
    (source / "model.bin").write_bytes(content)
    assert "model.bin is not a CTranslate2 model, or it is damaged" in refusal(source)


def test_a_package_with_two_models(opennmt_py: Path, tmp_path: Path) -> None:
    package = tiny_packages.make_argos(opennmt_py, tmp_path / "p.argosmodel")
    with zipfile.ZipFile(package, "a") as content:
        content.writestr("translate-en_de-1_0/other/model.bin", b"")
    assert "there are 2 models (model/model.bin, other/model.bin)" in refusal(package)


def test_a_name_that_leaves_its_folder(opennmt_py: Path, tmp_path: Path) -> None:
    package = tiny_packages.make_argos(opennmt_py, tmp_path / "p.argosmodel")
    with zipfile.ZipFile(package, "a") as content:
        content.writestr("../../sentencepiece.model", b"")
    assert "'../../sentencepiece.model', which leaves its folder" in refusal(package)


def test_files_that_are_no_archive(tmp_path: Path) -> None:
    (tmp_path / "p.argosmodel").write_bytes(b"no zip")
    assert "cannot unpack" in refusal(tmp_path / "p.argosmodel", SourceError)
    (tmp_path / "p.tar").write_bytes(b"")
    assert "give a directory, or an archive" in refusal(tmp_path / "p.tar", SourceError)
    assert "there is no file or folder no.argosmodel" in refusal(Path("no.argosmodel"), SourceError)


def test_a_package_whose_compressed_files_are_damaged(opennmt_py: Path, tmp_path: Path) -> None:
    """The directory at its end is whole, so only the unpacking meets the damage."""
    stored = tiny_packages.make_argos(opennmt_py, tmp_path / "stored.argosmodel")
    package = tmp_path / "p.argosmodel"
    with zipfile.ZipFile(stored) as old, zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
        model = next(entry for entry in new.infolist() if entry.filename.endswith("model.bin"))
    content = bytearray(package.read_bytes())
    begin = model.header_offset + 200
    content[begin : begin + 400] = b"\xff" * 400
    package.write_bytes(content)
    assert f"cannot unpack {package}: " in refusal(package, SourceError)


def test_an_ensemble_of_opus_mt_and_names_outside_it(tmp_path: Path) -> None:
    source = tiny_packages.make_opus_mt(tiny_checkpoint("marian"), tmp_path / "opus")
    decoder = source / "decoder.yml"
    text = decoder.read_text(encoding="utf-8")
    decoder.write_text(text.replace("models:\n", "models:\n  - opus.model2.npz\n"))
    assert "decoder.yml names 2 models, which vote" in refusal(source)
    decoder.write_text(text.replace("- opus.src.vocab.yml", "- ../opus.src.vocab.yml"))
    assert "'../opus.src.vocab.yml', which is not beside it" in refusal(source)
    decoder.write_text("- no mapping\n")
    assert "decoder.yml does not name models and vocabs" in refusal(source)


class Code:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str, int]]:
        return os.mkdir, (str(self.path), 0o700)


def test_a_pickle_with_code(opennmt_py: Path, tmp_path: Path) -> None:
    torch.save({"model": Code(tmp_path / "made by code")}, opennmt_py / "model.pt")
    assert "which could be code" in refusal(opennmt_py)
    (opennmt_py / "model.pt").write_bytes(pickle.dumps(Code(tmp_path / "made by code")))
    assert "which could be code" in refusal(opennmt_py)
    assert not (tmp_path / "made by code").exists()


@pytest.mark.parametrize("version", ["2.5.1", "1.13.0+cpu"])
def test_a_pickle_is_not_read_by_a_pytorch_that_may_run_its_code(
    version: str, opennmt_py: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "packages" / f"torch-{version}.dist-info" / "METADATA"
    installed.parent.mkdir(parents=True)
    installed.write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    with monkeypatch.context() as patch:
        patch.syspath_prepend(installed.parents[1])
        message = refusal(opennmt_py, MissingPackageError)
    assert "from 2.6 on" in message
    assert version in message
    assert prepare_here(opennmt_py).directory.is_dir()


def test_a_checkpoint_that_is_not_of_opennmt_py_or_no_translator(opennmt_py: Path) -> None:
    file = opennmt_py / "model.pt"
    content = torch.load(file, weights_only=False)
    content["opt"].decoder_type = "transformer_lm"
    torch.save(content, file)
    assert "a decoder of type 'transformer_lm', which is not a translation" in refusal(opennmt_py)
    torch.save({"state": torch.zeros(3)}, file)
    assert "is not an OpenNMT-py checkpoint" in refusal(opennmt_py)


def test_a_language_pair(folder: Callable[..., Path]) -> None:
    source = folder("marian")
    message = refusal(source, SettingError, language_pair="en:de")
    assert "the model itself names its languages: deu, fra, spa" in message
    for value in ("en", "en:", ":de", "en:en"):
        assert refusal(folder_of_t5(source), SettingError, language_pair=value).endswith("en:de")
    checkpoint = tiny_checkpoint("t5")
    options = PrepareOptions(str(checkpoint), source.parent / "r", language_pair="en:de")
    with pytest.raises(SettingError, match="--language-pair names the languages of a model"):
        prepare(options)


def folder_of_t5(beside: Path) -> Path:
    folder = beside.parent / "t5"
    if not folder.exists():
        tiny_packages.make_ctranslate2(tiny_checkpoint("t5"), tiny_engine_model("t5"), folder)
    return folder
