# SPDX-License-Identifier: Apache-2.0
"""Damaged, foreign or inconsistent model directories are refused with a sentence."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ct2_triton import _core


@pytest.fixture
def copy(tmp_path: Path, engine_model: Path) -> Path:
    directory = tmp_path / "model"
    shutil.copytree(engine_model, directory)
    return directory


def _remove(name: str) -> Callable[[Path], None]:
    return lambda directory: (directory / name).unlink()


def _truncate(name: str) -> Callable[[Path], None]:
    def damage(directory: Path) -> None:
        path = directory / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    return damage


def _vocabulary(change: int) -> Callable[[Path], None]:
    def damage(directory: Path) -> None:
        path = directory / "shared_vocabulary.json"
        tokens = json.loads(path.read_text())
        tokens = tokens[:change] if change < 0 else tokens + [f"extra{i}" for i in range(change)]
        path.write_text(json.dumps(tokens))

    return damage


def _write(name: str, text: str) -> Callable[[Path], None]:
    def damage(directory: Path) -> None:
        (directory / name).write_text(text)

    return damage


@pytest.mark.parametrize(
    ("damage", "code", "text"),
    [
        (_remove("model.bin"), "not_found", "model.bin is missing"),
        (_remove("shared_vocabulary.json"), "not_found", "vocabulary"),
        (_truncate("model.bin"), "invalid_argument", "ends too early"),
        (_write("model.bin", ""), "invalid_argument", "it has 0 bytes and ends too early"),
        (_write("model.bin", "no model at all"), "unsupported", "its binary version is"),
        (_truncate("shared_vocabulary.json"), "invalid_argument", "not a JSON array of strings"),
        (_remove("config.json"), "invalid_argument", "convert it again"),
        (_truncate("config.json"), "invalid_argument", "config.json"),
        (_write("config.json", '{"eos_token": 5}'), "invalid_argument", "config.json"),
        (_vocabulary(+3), "invalid_argument", "do not belong together"),
        (_vocabulary(-3), "invalid_argument", "do not belong together"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_damaged_directory(
    copy: Path, damage: Callable[[Path], None], code: str, text: str
) -> None:
    damage(copy)
    with pytest.raises(_core.Error) as failure:
        _core.Translator(str(copy))
    assert failure.value.code == code
    assert text in str(failure.value)
    assert str(copy) in str(failure.value) or "config.json" in str(failure.value)


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(_core.Error, match="no CTranslate2 model in") as failure:
        _core.Translator(str(tmp_path / "absent"))
    assert failure.value.code == "not_found"


def test_a_gpu_that_is_not_there(engine_model: Path) -> None:
    missing = _core.gpu_count()
    with pytest.raises(_core.Error, match="KIND_CPU") as failure:
        _core.Translator(str(engine_model), gpu=True, device_index=missing)
    assert failure.value.code == "invalid_argument"


def test_an_unsupported_compute_type(engine_model: Path) -> None:
    import ctranslate2

    missing = {"float16", "bfloat16"} - ctranslate2.get_supported_compute_types("cpu")
    for name in missing:
        with pytest.raises(_core.Error, match=name) as failure:
            _core.Translator(str(engine_model), {"compute_type": name})
        assert failure.value.code == "invalid_argument"
    assert missing


@pytest.mark.parametrize("length", [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 128, 1000])
def test_sha256_is_that_of_hashlib(length: int) -> None:
    data = bytes(i * 7 % 256 for i in range(length))
    expected = hashlib.sha256(data).hexdigest()
    assert _core.sha256([data]) == expected
    assert _core.sha256([data[:3], data[3:70], data[70:]]) == expected
