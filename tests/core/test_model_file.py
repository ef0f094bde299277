# SPDX-License-Identifier: Apache-2.0
"""The reader of model.bin: files of the real converter, and damaged or foreign ones."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from core.engine_truth import EngineTruth
from ct2_triton import _core
from model_bin import ModelBin, Variable, read_model_bin, write_model_bin
from support.tiny import tiny_engine_model
from tiny_models import FAMILIES

QUANTIZATIONS = [None, "float16", "bfloat16", "int8", "int8_float16", "int16"]
KINDS = ["float32", "int8", "int16", "int32", "float16", "bfloat16"]


def small() -> ModelBin:
    """A file with one variable of each kind, an attribute and other names."""
    content = ModelBin(6, "TransformerSpec", 7)
    for kind, (name, size) in enumerate(zip(KINDS, (4, 1, 2, 4, 2, 2), strict=True)):
        content.variables[f"encoder/{name}"] = Variable((2, 3), kind, bytes(range(6 * size)))
    content.variables["encoder/heads"] = Variable((), 2, struct.pack("<h", 300))
    content.variables["encoder/weight_scale"] = Variable((2,), 0, struct.pack("<2f", 0.5, 4))
    content.variables["encoder/weight"] = Variable((2, 3), 1, bytes(6))
    content.variables["encoder/none"] = Variable((0, 3), 0, b"")
    content.aliases["decoder/weight"] = "encoder/weight"
    content.aliases["decoder/nothing"] = "encoder/nothing"
    return content


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Callable[[ModelBin], bytes]]:
    """Writes a file into `tmp_path`; the reader reads a good one after each test."""

    def make(content: ModelBin) -> bytes:
        write_model_bin(content, tmp_path / "model.bin")
        return (tmp_path / "model.bin").read_bytes()

    yield make
    make(small())
    assert "encoder/heads" in _core.ModelFile(str(tmp_path)).variables


def refused(directory: Path, code: str, text: str) -> None:
    with pytest.raises(_core.Error) as failure:
        _core.ModelFile(str(directory))
    assert failure.value.code == code
    assert text in str(failure.value)


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_file_of_the_converter(family: str, quantization: str | None) -> None:
    directory = tiny_engine_model(family, quantization=quantization)
    truth = read_model_bin(directory / "model.bin")
    file = _core.ModelFile(str(directory))

    found = file.variables
    for name, variable in truth.variables.items():
        assert found[name][:2] == (KINDS[variable.kind], variable.dimensions)
        assert file.read(name) == variable.content
    names = set(truth.variables)
    for alias, name in truth.aliases.items():
        for end in ("", "_scale"):
            if name + end in found:
                assert found[alias + end] == found[name + end]
                names.add(alias + end)
    assert truth.aliases
    assert set(found) == names


def test_narrow_floats_are_widened_as_numpy_does(
    tmp_path: Path, write: Callable[[ModelBin], bytes]
) -> None:
    every = np.arange(65536, dtype=np.uint16)
    content = small()
    content.variables["half"] = Variable((256, 256), 4, every.tobytes())
    content.variables["brain"] = Variable((256, 256), 5, every.tobytes())
    write(content)
    file = _core.ModelFile(str(tmp_path))

    half = every.view(np.float16).astype(np.float32)
    brain = (every.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(file.floats("half"), half)
    np.testing.assert_array_equal(file.floats("brain"), brain)
    np.testing.assert_array_equal(file.floats("encoder/weight_scale"), [0.5, 4])
    assert file.floats("nothing").size == 0


def test_attributes_of_every_type(tmp_path: Path, write: Callable[[ModelBin], bytes]) -> None:
    content = small()
    for kind, (form, value) in enumerate(
        [("f", 0.125), ("b", -3), ("h", -300), ("i", 70000), ("e", 1.5)]
    ):
        content.variables[f"a{kind}"] = Variable((), kind, struct.pack("<" + form, value))
    content.variables["a5"] = Variable((1,), 5, b"\x40\xc0")  # of one element
    write(content)
    file = _core.ModelFile(str(tmp_path))

    found = [file.attribute(f"a{kind}", 9) for kind in range(6)]
    assert found == [0.125, -3, -300, 70000, 1.5, -3]
    assert file.attribute("absent", 9) == 9
    with pytest.raises(_core.Error, match="encoder/int8 has 6 elements"):
        file.attribute("encoder/int8", 9)
    for value in (float("nan"), float("inf"), -3e9):
        content.variables["a0"] = Variable((), 0, struct.pack("<f", value))
        write(content)
        with pytest.raises(_core.Error, match="its variable a0 is .*, where a number up to 2"):
            _core.ModelFile(str(tmp_path)).attribute("a0", 9)
    with pytest.raises(_core.Error, match="encoder/int8 holds int8, where floats"):
        file.floats("encoder/int8")
    with pytest.raises(_core.Error, match="no variable absent"):
        file.read("absent")


def test_a_file_that_is_cut_off_anywhere(
    tmp_path: Path, write: Callable[[ModelBin], bytes]
) -> None:
    whole = write(small())
    for size in range(len(whole)):
        (tmp_path / "model.bin").write_bytes(whole[:size])
        refused(tmp_path, "invalid_argument", f"it has {size} bytes and ends too early")


def test_a_foreign_file(tmp_path: Path, write: Callable[[ModelBin], bytes]) -> None:
    for name, value, text in [
        ("version", 3, "binary version is 3, known are 4 to 6"),
        ("version", 7, "binary version is 7, known are 4 to 6"),
        ("specification", "WhisperSpec", 'it holds a "WhisperSpec", not a TransformerSpec'),
    ]:
        content = small()
        setattr(content, name, value)
        write(content)
        refused(tmp_path, "unsupported", text)


def test_a_format_that_only_calls_know(tmp_path: Path, write: Callable[[ModelBin], bytes]) -> None:
    for name, value, text in [
        ("version", 5, "binary version is 5, known is 6"),
        ("specification", "", 'it holds a "", not a TransformerSpec'),
        ("revision", 4, "revision 4, known are 5 to 7"),
        ("revision", 8, "revision 8, known are 5 to 7"),
    ]:
        content = small()
        setattr(content, name, value)
        write(content)
        file = _core.ModelFile(str(tmp_path))
        assert file.attribute("encoder/heads", 0) == 300
        with pytest.raises(_core.Error, match=text) as failure:
            file.require_current_format()
        assert failure.value.code == "unsupported"
    write(small())
    _core.ModelFile(str(tmp_path)).require_current_format()


def test_a_model_of_an_older_format_is_decoded_in_calls(tmp_path: Path) -> None:
    directory = Path(shutil.copytree(tiny_engine_model("nllb"), tmp_path / "model"))
    content = read_model_bin(directory / "model.bin")
    content.version = 5
    write_model_bin(content, directory / "model.bin")
    truth = EngineTruth(directory)
    translator = _core.Translator(str(directory), {"compute_type": "float32"})
    for row, prefix in (([11, 12, 13], [20]), ([14], [21])):
        [found] = translator.translate([row], [prefix], {"max_decoding_length": 8})
        assert [each["ids"] for each in found] == truth.hypotheses(
            row, prefix, max_decoding_length=8
        )
    assert translator.call_bytes > 0
    with pytest.raises(_core.Error, match="binary version is 5, known is 6"):
        _core.Translator(str(directory), {"compute_type": "float32", "decoding": "loop"})


@pytest.mark.parametrize("name", ["odd", "decoder/odd", "encoder/odd"])
def test_a_variable_that_loops_do_not_know(tmp_path: Path, name: str) -> None:
    directory = Path(shutil.copytree(tiny_engine_model("nllb"), tmp_path / "model"))
    content = read_model_bin(directory / "model.bin")
    content.variables[name] = Variable((), 1, b"1")
    write_model_bin(content, directory / "model.bin")
    with pytest.raises(_core.Error, match=f"the decode loop does not know .*variable {name}"):
        _core.Translator(str(directory), {"compute_type": "float32", "decoding": "loop"})


@pytest.mark.parametrize(
    ("variable", "code", "text"),
    [
        (Variable((2,), 6, b"ab"), "unsupported", '"odd" has elements of type 6'),
        (Variable((3,), 1, b"ab"), "invalid_argument", '"odd" has 2 bytes, which is not'),
        (Variable((1,), 0, b"ab"), "invalid_argument", '"odd" has 2 bytes, which is not'),
        (Variable((2**31, 2**31, 4), 1, b""), "invalid_argument", '"odd" has 0 bytes'),
        (Variable((2**32 - 1,) * 8, 0, b""), "invalid_argument", '"odd" has 0 bytes'),
        (Variable((1,) * 9, 1, b"a"), "invalid_argument", '"odd" has 9 dimensions'),
    ],
)
def test_a_damaged_variable(
    tmp_path: Path, write: Callable[[ModelBin], bytes], variable: Variable, code: str, text: str
) -> None:
    content = small()
    content.variables["odd"] = variable
    write(content)
    refused(tmp_path, code, text)


def test_damaged_names(tmp_path: Path, write: Callable[[ModelBin], bytes]) -> None:
    whole = write(small())
    for old, new, text in [
        (b"encoder/int8\0", b"encoder/int16"[:13], "does not end with a zero"),
        (b"encoder/int8\0", b"encoder\0int8\0", "does not end with a zero"),
        (b"encoder/heads", b"encoder/int16", 'two variables \\"encoder/int16'),
        (b"decoder/weight\0", b"encoder/weight\0", 'two variables \\"encoder/weight'),
        (b"encoder/heads\0", b"encoder/h\xe9ads\0", "not of printable ASCII"),
    ]:
        assert whole.count(old) == 1
        (tmp_path / "model.bin").write_bytes(whole.replace(old, new))
        refused(tmp_path, "invalid_argument", text.replace("\\", ""))
    (tmp_path / "model.bin").write_bytes(whole.replace(b"Transformer", b"Transf\xff\xc3mer"))
    refused(tmp_path, "unsupported", "Transf��mer")


def test_no_file(tmp_path: Path) -> None:
    refused(tmp_path, "unavailable", "No such file")
    (tmp_path / "model.bin").mkdir()
    refused(tmp_path, "unavailable", "Is a directory")
    (tmp_path / "model.bin").rmdir()
    os.mkfifo(tmp_path / "model.bin")
    refused(tmp_path, "invalid_argument", "it has 0 bytes")
    (tmp_path / "model.bin").unlink()


def test_a_file_that_changes_after_it_was_opened(
    tmp_path: Path, write: Callable[[ModelBin], bytes]
) -> None:
    """A copy onto model.bin truncates it first: a mapped file would end the process."""
    whole = write(small())
    file = _core.ModelFile(str(tmp_path))
    file.require_unchanged()
    with (tmp_path / "model.bin").open("r+b") as stream:
        stream.truncate(40)
    with pytest.raises(_core.Error, match="it ends there now; load the model again") as failure:
        file.read("encoder/weight")
    assert failure.value.code == "unavailable"
    with pytest.raises(_core.Error, match="changed while it was loaded"):
        file.require_unchanged()

    write(small())
    replaced = _core.ModelFile(str(tmp_path))
    (tmp_path / "model.bin").rename(tmp_path / "old")
    (tmp_path / "model.bin").write_bytes(whole[:40])
    replaced.require_unchanged()  # it reads what it opened
    assert replaced.read("encoder/weight") == bytes(6)
