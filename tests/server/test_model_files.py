# SPDX-License-Identifier: Apache-2.0
"""Model files: where they may lie, and what is said when they are missing or broken."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tritonclient.utils import InferenceServerException

from server import configs
from server.conftest import LoadFailure
from server.helpers import Connection, Reference, sentences

pytestmark = pytest.mark.server

LIMIT = {"max_decoding_length": 8}


def assert_translates(connection: Connection, model: str, reference: Reference) -> None:
    row, prefix = sentences(reference, 1)[0]
    expected = reference.translate(row, prefix, **LIMIT)
    assert connection.translate(model, row, prefix, **LIMIT) == expected


def truncate(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return change


def replace(name: str, content: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(content) and None


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


BROKEN = {
    "no model.bin": (remove("model.bin"), "there is no model.bin in"),
    "no vocabulary": (remove("shared_vocabulary.json"), "vocabulary"),
    "half of model.bin": (truncate("model.bin"), "ends too early"),
    "empty model.bin": (replace("model.bin", ""), "model.bin"),
    "foreign model.bin": (replace("model.bin", "GGUF" * 1000), "model"),
    "half of the vocabulary": (truncate("shared_vocabulary.json"), "parse error"),
    "vocabulary of another kind": (replace("shared_vocabulary.json", "{}"), "must be array"),
    "empty vocabulary": (replace("shared_vocabulary.json", "[]"), "vocabulary"),
    "half of config.json": (truncate("config.json"), "config.json"),
    "config.json of another kind": (replace("config.json", "[]"), "config.json"),
    "empty vmap.txt": (replace("vmap.txt", ""), "vmap.txt is empty"),
    "shortlists.json of another kind": (replace("shortlists.json", "{}"), "shortlists.json cannot"),
    "config.json with wrong types": (replace("config.json", '{"eos_token": 3}'), "config.json"),
}


@pytest.mark.parametrize(("change", "said"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_files(
    load_failure: LoadFailure,
    nllb_engine_model: Path,
    tmp_path: Path,
    change: Callable[[Path], None],
    said: str,
    connection: Connection,
    reference: Reference,
) -> None:
    """The load fails with a sentence; the server and its other model go on."""
    folder = tmp_path / "broken"
    shutil.copytree(nllb_engine_model, folder)
    change(folder)
    assert said in load_failure(configs.full(), engine_model=folder)
    assert_translates(connection, "nllb", reference)


def test_a_vocabulary_too_short(
    load_failure: LoadFailure, nllb_engine_model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "short"
    shutil.copytree(nllb_engine_model, folder)
    file = folder / "shared_vocabulary.json"
    file.write_text(json.dumps(json.loads(file.read_text())[:-10]))
    assert "vocabulary" in load_failure(configs.full(), engine_model=folder)


@pytest.fixture
def model_folder(server_repository: Path, connection: Connection) -> Path:
    folder = server_repository / "placed"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(configs.full())
    yield folder
    connection.raw.unload_model("placed")
    shutil.rmtree(folder)


@pytest.mark.parametrize("place", ["1/model", "1"])
def test_places(
    model_folder: Path,
    nllb_engine_model: Path,
    connection: Connection,
    reference: Reference,
    place: str,
) -> None:
    shutil.copytree(nllb_engine_model, model_folder / place, dirs_exist_ok=True)
    connection.raw.load_model("placed")
    assert_translates(connection, "placed", reference)


def test_a_place_by_default_model_filename(
    model_folder: Path, nllb_engine_model: Path, connection: Connection, reference: Reference
) -> None:
    shutil.copytree(nllb_engine_model, model_folder / "1" / "weights")
    config = configs.full(more='default_model_filename: "weights"\n')
    (model_folder / "config.pbtxt").write_text(config)
    connection.raw.load_model("placed")
    assert_translates(connection, "placed", reference)


def test_the_files_of_another_model(
    model_folder: Path, connection: Connection, reference: Reference
) -> None:
    """Two models, one set of files: what one asks for does not show in the other."""
    config = configs.full(model_path="../nllb/1/model", beam_size=1)
    (model_folder / "config.pbtxt").write_text(config)
    connection.raw.load_model("placed")
    assert_translates(connection, "nllb", reference)
    row, prefix = sentences(reference, 1)[0]
    options = {"max_decoding_length": 20}
    expected = reference.translate(row, prefix, beam_size=1, **options)
    assert connection.translate("placed", row, prefix, **options) == expected


def test_files_that_cannot_be_read_are_not_called_missing(
    model_folder: Path, connection: Connection
) -> None:
    """Root may read all files: a link to itself stands for those that are forbidden to others."""
    file = model_folder / "1" / "model.bin"
    file.symlink_to("model.bin")
    with pytest.raises(InferenceServerException) as raised:
        connection.raw.load_model("placed")
    assert f"'{file}' cannot be read: Too many levels" in raised.value.message()


def test_no_files_anywhere(model_folder: Path, connection: Connection) -> None:
    with pytest.raises(InferenceServerException) as raised:
        connection.raw.load_model("placed")
    message = raised.value.message()
    assert f"'{model_folder}/1/model', '{model_folder}/1'" in message
    assert "no CTranslate2 model was found: there is no model.bin in" in message
