# SPDX-License-Identifier: Apache-2.0
"""Models in other forms than checkpoints, from text to text through the live server."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import sentencepiece

import tiny_packages
from ct2_triton.client import SyncTranslationClient
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepared_model import PreparedModel
from ct2_triton.serve import TritonServer
from server.client.conftest import Prepared
from server.helpers import Connection
from support.tiny import tiny_checkpoint, tiny_engine_model
from tiny_corpus import sentences

pytestmark = pytest.mark.server

STEPS = 16
TEXTS = [*sentences(6, seed=5), "How is your day going?", "Two\tspaces  and a tail ", "☃ 今天"]

# Family -> a source and a target of it, by its own codes.
FAMILIES: dict[str, tuple[str | None, str | None]] = {
    "nllb": ("eng_Latn", "deu_Latn"),
    "m2m100": ("en", "fr"),
    "mbart50": ("en_XX", "de_DE"),
    "mbart25": ("en_XX", "de_DE"),
    "marian": (None, "fra"),
    "marian-pair": ("en", "de"),
    "t5": (None, None),
    "madlad": (None, "fr"),
}

Load = Callable[..., PreparedModel]


@pytest.fixture
def load(server: TritonServer, server_repository: Path) -> Iterator[Load]:
    """Prepares a model into the server's repository, loads it, and takes it away again."""
    connection = Connection(server.grpc_url)
    made: list[PreparedModel] = []

    def make(source: Path, **options: Any) -> PreparedModel:
        name = f"converted-{source.stem}"
        settings = {"quantization": "float32", "instance_kind": "cpu", **options}
        model = prepare(PrepareOptions(str(source), server_repository, name, **settings))
        made.append(model)
        connection.raw.load_model(name)
        return model

    yield make
    for model in made:
        connection.raw.unload_model(model.name)
        shutil.rmtree(model.directory)
    connection.close()


def translated(
    server: TritonServer, model: PreparedModel, source: str | None, target: str | None
) -> list[str]:
    with SyncTranslationClient(
        server.grpc_url, model.name, tokenizer=model.tokenizer_folder
    ) as client:
        found = [
            client.translate(text, source=source, targets=target, max_decoding_length=STEPS)
            for text in TEXTS
        ]
    return [one.text for one in found]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_converted_folder_answers_as_its_checkpoint_prepared(
    family: str, server: TritonServer, prepared: Prepared, load: Load, tmp_path: Path
) -> None:
    """The same weights, one prepared and proved from the checkpoint, one from CTranslate2's."""
    source, target = FAMILIES[family]
    folder = tiny_packages.make_ctranslate2(
        tiny_checkpoint(family), tiny_engine_model(family), tmp_path / f"{family}-ct2"
    )
    proved = prepared(family)
    converted = load(folder)
    of_proved = ("en", "de") if family == "t5" else (source, target)
    wanted = translated(server, proved, *of_proved)
    if family == "t5":  # nothing in a converted T5 says its tasks: they are part of the text
        assert converted.rules.languages == ()
        assert any(translated(server, converted, None, None))
        return
    assert translated(server, converted, source, target) == wanted
    assert len(set(wanted)) > 2


@pytest.mark.parametrize("two_vocabularies", [False, True])
def test_an_opus_mt_archive(
    two_vocabularies: bool, server: TritonServer, prepared: Prepared, load: Load, tmp_path: Path
) -> None:
    archive = tiny_packages.make_opus_mt(
        tiny_checkpoint("marian"), tmp_path / "opus", two_vocabularies=two_vocabularies
    )
    wanted = translated(server, prepared("marian"), None, "fra")
    model = load(archive)
    assert (model.model_folder / "target_vocabulary.json").exists() == two_vocabularies
    assert translated(server, model, None, "fra") == wanted


def test_a_checkpoint_of_opennmt_py(server: TritonServer, load: Load, tmp_path: Path) -> None:
    folder = tiny_packages.make_opennmt_py(tmp_path / "onmt")
    model = load(folder, language_pair="en:de")
    assert model.rules.source_language("eng") is not None
    check_two_vocabularies(server, model, folder / "sentencepiece.model")


def test_an_argos_package(server: TritonServer, load: Load, tmp_path: Path) -> None:
    folder = tiny_packages.make_opennmt_py(tmp_path / "onmt")
    model = load(tiny_packages.make_argos(folder, tmp_path / "translate-en_de-1_0.argosmodel"))
    check_two_vocabularies(server, model, folder / "sentencepiece.model")


def check_two_vocabularies(server: TritonServer, model: PreparedModel, pieces: Path) -> None:
    """Argos's own way: pieces in, pieces out, no end token."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(pieces))
    translator = ctranslate2.Translator(str(model.model_folder), device="cpu")
    results = translator.translate_batch(
        [processor.encode(text, out_type=str) for text in TEXTS],
        beam_size=1,
        max_decoding_length=STEPS,
    )
    unknown = {"<unk>", "<blank>", "<s>"}
    wanted = [
        processor.decode([piece for piece in result.hypotheses[0] if piece not in unknown]).strip()
        for result in results
    ]
    assert translated(server, model, "en", "de") == wanted
    assert any(wanted)
