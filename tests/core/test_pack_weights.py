# SPDX-License-Identifier: Apache-2.0
"""Weights of a model's file, packed and converted: the truth is the converter's own file."""

from __future__ import annotations

import dataclasses
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

from ct2_triton import _core
from model_bin import ModelBin, Variable, read_model_bin, write_model_bin
from support.tiny import tiny_engine_model

TYPES = {0: np.float32, 1: np.int8, 4: np.float16}
SCOPES = [
    "decoder/layer_0/ffn/linear_0",
    "decoder/layer_1/self_attention/linear_1",
    "encoder/layer_0/self_attention/linear_0",
    "decoder/projection",
]


def stored(directory: Path, name: str) -> np.ndarray:
    content = read_model_bin(directory / "model.bin")
    variable = content.variables[content.aliases.get(name, name)]
    if variable.kind == 5:
        wide = np.frombuffer(variable.content, np.uint16).astype(np.uint32) << 16
        return wide.view(np.float32).reshape(variable.dimensions)
    array = np.frombuffer(variable.content, TYPES[variable.kind])
    return array.reshape(variable.dimensions)


def scales_of(directory: Path, scope: str) -> np.ndarray:
    content = read_model_bin(directory / "model.bin")
    name = content.aliases.get(f"{scope}/weight", f"{scope}/weight")
    return stored(directory, f"{name}_scale")


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("threads", [1, 5])
def test_a_float32_file_becomes_what_the_converter_writes_at_int8(scope: str, threads: int) -> None:
    packed = _core.PackedLinear.of_file(
        str(tiny_engine_model("nllb")), scope, "int8", threads=threads
    )
    truth = tiny_engine_model("nllb", quantization="int8")
    np.testing.assert_array_equal(packed.unpack(), stored(truth, f"{scope}/weight"))
    np.testing.assert_array_equal(packed.scales, scales_of(truth, scope))


@pytest.mark.parametrize("scope", SCOPES)
def test_int8_as_it_is_and_as_float32(scope: str) -> None:
    directory = tiny_engine_model("nllb", quantization="int8")
    codes, scales = stored(directory, f"{scope}/weight"), scales_of(directory, scope)
    packed = _core.PackedLinear.of_file(str(directory), scope, "int8", threads=3)
    np.testing.assert_array_equal(packed.unpack(), codes)
    np.testing.assert_array_equal(packed.scales, scales)
    wide = _core.PackedLinear.of_file(str(directory), scope, "float32", threads=3)
    np.testing.assert_array_equal(
        wide.unpack(), codes.astype(np.float32) * (np.float32(1) / scales)[:, None]
    )


@pytest.mark.parametrize("quantization", [None, "float16", "bfloat16"])
def test_floats_of_every_width_as_float32_and_as_int8(quantization: str | None) -> None:
    directory = tiny_engine_model("nllb", quantization=quantization)
    for scope in SCOPES:
        weights = stored(directory, f"{scope}/weight").astype(np.float32)
        wide = _core.PackedLinear.of_file(str(directory), scope, "float32")
        np.testing.assert_array_equal(wide.unpack(), weights)
        narrow = _core.PackedLinear.of_file(str(directory), scope, "int8")
        most = np.abs(weights).max(axis=1)  # zeros in padding
        scales = np.float32(127) / np.where(most == 0, np.float32(127), most)
        np.testing.assert_array_equal(narrow.unpack(), np.rint(weights * scales[:, None]))
        np.testing.assert_array_equal(narrow.scales, scales)


def test_names_of_one_weight_with_a_scale_each(tmp_path: Path) -> None:
    """The embeddings share the projection's packed copy only where they have its scale, too."""
    directory = Path(
        shutil.copytree(tiny_engine_model("nllb", quantization="int8"), tmp_path / "m")
    )
    content = read_model_bin(directory / "model.bin")
    scale = content.variables["decoder/embeddings/weight_scale"]  # of both
    halved = np.frombuffer(scale.content, np.float32) * np.float32(0.5)
    own = dataclasses.replace(scale, content=halved.tobytes())
    content.variables["decoder/projection/weight_scale"] = own
    write_model_bin(content, directory / "model.bin")
    assert _core.LoopModel(str(directory), {"compute_type": "int8"}).trial().tokens == 12


@pytest.mark.parametrize("kind", ["int8", "float32"])
@pytest.mark.parametrize(("outputs", "inputs"), [(1, 1), (33, 5), (3000, 130)])
def test_sizes_that_fill_no_panel(tmp_path: Path, kind: str, outputs: int, inputs: int) -> None:
    weights = np.random.default_rng(outputs).normal(size=(outputs, inputs)).astype(np.float32)
    weights[outputs // 2] = 0
    bias = np.arange(outputs, dtype=np.float32)
    content = ModelBin(6, "TransformerSpec", 7)
    content.variables["a/bias"] = Variable((outputs,), 0, bias.tobytes())
    content.variables["a/weight"] = Variable(weights.shape, 0, weights.tobytes())
    write_model_bin(content, tmp_path / "model.bin")
    packed = _core.PackedLinear.of_file(str(tmp_path), "a", kind, threads=4)

    scales = None
    if kind == "int8":
        scales = packed.scales
        assert scales[outputs // 2] == 1
    truth = _core.PackedLinear(packed.unpack(), scales, bias)
    rows = np.random.default_rng(7).normal(size=(3, inputs)).astype(np.float32)
    np.testing.assert_array_equal(packed.apply(rows), truth.apply(rows))
    if kind == "float32":
        np.testing.assert_array_equal(packed.unpack(), weights)


@pytest.mark.parametrize(
    ("changed", "code", "text"),
    [
        ({"a/weight": Variable((2, 3, 1), 1, bytes(6))}, "unsupported", "3 dimensions"),
        ({"a/weight": Variable((2, 3), 2, bytes(12))}, "unsupported", "holds int16"),
        ({"a/weight_scale": Variable((1,), 0, bytes(4))}, "invalid_argument", "has 1 numbers"),
        ({"a/weight_scale": None}, "invalid_argument", "has 0 numbers for the 2 rows"),
        ({"a/bias": Variable((3,), 0, bytes(12))}, "unsupported", "3 numbers for 2 outputs"),
        ({"a/bias": Variable((2,), 1, bytes(2))}, "unsupported", "a/bias holds int8"),
        ({"a/weight": None}, "unsupported", "no variable a/weight"),
        ({"a/weight": Variable((0, 3), 1, b"")}, "invalid_argument", "for the 0 rows"),
    ],
)
def test_layers_of_another_form(
    tmp_path: Path, changed: dict[str, Variable | None], code: str, text: str
) -> None:
    good = {
        "a/weight": Variable((2, 3), 1, bytes(range(6))),
        "a/weight_scale": Variable((2,), 0, struct.pack("<2f", 2, 4)),
        "a/bias": Variable((2,), 0, struct.pack("<2f", 1, -1)),
    }

    def write(variables: dict[str, Variable | None]) -> None:
        content = ModelBin(6, "TransformerSpec", 7)
        content.variables = {name: v for name, v in variables.items() if v is not None}
        write_model_bin(content, tmp_path / "model.bin")

    write({**good, **changed})
    with pytest.raises(_core.Error, match=text) as failure:
        _core.PackedLinear.of_file(str(tmp_path), "a", "int8", threads=2)
    assert failure.value.code == code
    write(good)
    packed = _core.PackedLinear.of_file(str(tmp_path), "a", "int8", threads=2)
    assert packed.unpack().tolist() == [[0, 1, 2], [3, 4, 5]]
