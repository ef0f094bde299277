# SPDX-License-Identifier: Apache-2.0
"""Packed float32 products: near numpy's in double precision, and the same in any company."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.library_layer import library_layer
from core.test_products import ACTIVATIONS, Array, activate, random_rows, same_bits
from ct2_triton import _core
from ct2_triton.prepare.shipped import FOLDER

DEMO = FOLDER / "model"
NAMES = ["avx512", "avx2", "plain"]
SIZES = [(1, 1), (7, 3), (16, 64), (32, 512), (33, 65), (100, 130), (96, 2048), (530, 514)]


@pytest.fixture(params=NAMES)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param not in _core.kernels("float32"):
        pytest.skip(f"this processor does not have the instructions of {request.param}")
    monkeypatch.setenv("CT2_TRITON_KERNELS", request.param)
    return request.param


class Layer:
    """Random weights, and what numpy makes of them."""

    def __init__(self, outputs: int, inputs: int, bias: bool = True) -> None:
        rng = np.random.default_rng(outputs)
        self.weight = rng.standard_normal((outputs, inputs)).astype(np.float32)
        self.bias = rng.standard_normal(outputs).astype(np.float32) if bias else None

    def packed(self, kernel: str) -> Any:
        return _core.PackedLinear(self.weight, bias=self.bias, kernel=kernel)

    def expected(self, rows: Array) -> Array:
        values = rows.astype(np.float64) @ self.weight.T.astype(np.float64)
        return values if self.bias is None else values + self.bias


def error(found: Array, expected: Array) -> float:
    """Root mean square difference, as a share of that of what is expected."""
    difference = found.astype(np.float64) - expected
    return float(np.sqrt((difference**2).mean() / (expected.astype(np.float64) ** 2).mean()))


def test_the_plain_kernel_is_always_there() -> None:
    assert _core.kernels("float32")[-1] == "plain"
    assert set(_core.kernels("float32")) <= set(NAMES)


@pytest.mark.parametrize(("outputs", "inputs"), SIZES)
def test_a_row_has_the_same_bits_in_any_company(kernel: str, outputs: int, inputs: int) -> None:
    layer = Layer(outputs, inputs, bias=outputs % 2 == 0)
    packed = layer.packed(kernel)
    assert packed.kernel == kernel
    rows = random_rows(37, inputs)
    alone = np.concatenate([packed.apply(row[None]) for row in rows])
    assert error(alone, layer.expected(rows)) < 3e-6
    for count in range(1, 38):
        assert same_bits(packed.apply(rows[37 - count :]), alone[37 - count :]), count


def test_a_row_of_zeros_and_one_with_a_nan(kernel: str) -> None:
    layer = Layer(40, 66)
    rows = random_rows(14, 66)
    rows[4] = 0
    rows[5, 3] = np.nan
    answer = layer.packed(kernel).apply(rows)
    assert np.array_equal(answer[4], layer.bias)
    assert np.isnan(answer[5]).all()
    others = [row for row in range(14) if row != 5]
    assert error(answer[others], layer.expected(rows[others])) < 3e-6


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_an_activation_and_a_residual_follow(kernel: str, activation: str) -> None:
    layer = Layer(70, 64)
    rows, residual = random_rows(9, 64), random_rows(9, 70, seed=2)
    answer = layer.packed(kernel).apply(rows, activation, residual)
    expected = residual + activate(activation, layer.expected(rows))
    assert np.allclose(answer, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("outputs", [1, 31, 640, 5003, 9001])
def test_the_choice_is_the_first_largest(kernel: str, outputs: int) -> None:
    packed = Layer(outputs, 64).packed(kernel)
    rows = random_rows(30, 64)
    logits = packed.apply(rows)
    order = np.argsort(-logits, axis=1, kind="stable")
    assert [choice[:2] for choice in packed.choose(rows)[0]] == [
        (best[0], values[best[0]]) for best, values in zip(order, logits, strict=True)
    ]
    if outputs > 3:
        forbidden = [sorted(best[:2].tolist()) for best in order]
        choices, written = packed.choose(rows, True, [True] * 30, forbidden)
        assert [choice[0] for choice in choices] == order[:, 2].tolist()
        assert same_bits(np.stack(written), logits)
        left = np.take_along_axis(logits.astype(np.float64), order[:, 2:], axis=1)
        totals = left[:, 0] + np.log(np.exp(left - left[:, :1]).sum(axis=1))
        assert np.allclose([choice[2] for choice in choices], totals, rtol=1e-6, atol=2e-6)


def test_selected_outputs(kernel: str) -> None:
    packed = Layer(500, 70).packed(kernel)
    ids = [499, 0, 3, 64, 65, 17, 3, *range(100, 160)]
    rows = random_rows(15, 70)
    expected = np.ascontiguousarray(packed.apply(rows)[:, ids])
    assert same_bits(packed.select(ids).apply(rows), expected)


@pytest.mark.parametrize("inputs", [1, 3, 512])
@pytest.mark.parametrize("outputs", [1, 31, 70])
def test_weights_are_unpacked_as_they_were(kernel: str, outputs: int, inputs: int) -> None:
    """Any bits: floats only move."""
    layer = Layer(outputs, inputs)
    layer.weight.flat[0] = np.nan
    layer.weight.flat[-1] = -0.0
    assert same_bits(layer.packed(kernel).unpack(), layer.weight)


def test_weights_of_one_type_do_not_take_the_other_ones_scales() -> None:
    weight = np.ones((2, 2), np.float32)
    with pytest.raises(_core.Error, match="int8 weights have scales, and float32 ones have none"):
        _core.PackedLinear(weight, np.ones(2, np.float32))
    with pytest.raises(_core.Error, match="int8 weights have scales, and float32 ones have none"):
        _core.PackedLinear(weight.astype(np.int8))
    assert _core.PackedLinear(weight).apply(weight).tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize("activation", ["none", "relu", "swish"])
@pytest.mark.parametrize("scope", ["encoder/layer_0/ffn/linear_0", "decoder/projection"])
def test_a_layer_of_a_trained_model(kernel: str, scope: str, activation: str) -> None:
    """Near the library's, with rows of several magnitudes, each compared by itself."""
    packed = _core.ModelLayer(str(DEMO), "float32", scope, activation)
    assert packed.packing.startswith(f"1 layers packed for {kernel}, ")
    rows, expected = library_layer(DEMO, "float32", scope, activation)
    found = packed.apply(rows)
    used = np.arange(len(rows)) != 11  # a row of zeros
    assert max(map(error, found[used], expected[used])) < 3e-6
    if activation == "none":  # no model has both
        residual = random_rows(37, expected.shape[1], seed=5)
        assert error(packed.apply(rows, residual), expected + residual) < 3e-6
