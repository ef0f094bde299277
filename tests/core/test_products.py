# SPDX-License-Identifier: Apache-2.0
"""Packed int8 products: every kernel that this processor has, against plain numpy."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from ct2_triton import _core
from support.commands import run

Array = np.ndarray[Any, Any]
NAMES = ["amx", "avx512vnni", "avxvnni", "avx2", "plain"]
ACTIVATIONS = ["none", "relu", "gelu", "gelu_tanh", "swish", "gelu_sigmoid", "sigmoid", "tanh"]


@pytest.fixture(params=NAMES)
def kernel(request: pytest.FixtureRequest) -> str:
    if request.param not in _core.kernels():
        pytest.skip(f"this processor does not have the instructions of {request.param}")
    return request.param


class Layer:
    """Random weights as CTranslate2 keeps them, and what numpy makes of them."""

    def __init__(self, outputs: int, inputs: int, bias: bool = True, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.weight = rng.integers(-127, 128, (outputs, inputs), dtype=np.int8)
        self.scale = rng.uniform(50, 1500, outputs).astype(np.float32)
        self.bias = rng.standard_normal(outputs).astype(np.float32) if bias else None

    def packed(self, kernel: str = "") -> Any:
        return _core.PackedLinear(self.weight, self.scale, self.bias, kernel)

    def expected(self, rows: Array, rounding: str = "once") -> Array:
        codes, inverse = quantize(rows, rounding)
        # Exact: no sum comes near 2^53.
        sums = (codes.astype(np.float64) @ self.weight.T.astype(np.float64)).astype(np.int32)
        values = sums.astype(np.float32) * inverse[:, None] / self.scale
        return values if self.bias is None else values + self.bias


def quantize(rows: Array, rounding: str) -> tuple[Array, Array]:
    """Codes of -127 to 127, and the inverse of each row's scale, as CTranslate2 has them."""
    largest = np.abs(rows).max(axis=1, initial=0)
    with np.errstate(divide="ignore"):
        scale = np.where(largest != 0, np.float32(127) / largest, np.float32(1))
    scale = scale.astype(np.float32)[:, None]
    if rounding == "once":
        # A product of two floats is exact in a double, and so, but for its last bits, is the sum.
        codes = (rows.astype(np.float64) * scale + 128).astype(np.float32)
    elif rounding == "twice":
        codes = rows * scale + np.float32(128)
    else:
        codes = np.rint(rows * scale) + np.float32(128)
    return np.rint(codes).astype(np.int32) - 128, np.float32(1) / scale[:, 0]


def random_rows(count: int, inputs: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal((count, inputs)).astype(np.float32)


def same_bits(one: Array, other: Array) -> bool:
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


def test_the_plain_kernel_is_always_there() -> None:
    assert _core.kernels()[-1] == "plain"
    assert set(_core.kernels()) <= set(NAMES)


@pytest.mark.parametrize("rounding", ["once", "twice", "signed"])
@pytest.mark.parametrize(
    ("outputs", "inputs"),
    [
        (1, 1),
        (7, 3),
        (16, 64),
        (32, 512),
        (33, 65),
        (100, 130),
        (96, 2048),
        (530, 514),
        (70, 62),
        (530, 512),
    ],
)
def test_every_count_of_rows_and_size(
    kernel: str, outputs: int, inputs: int, rounding: str
) -> None:
    layer = Layer(outputs, inputs, bias=outputs % 2 == 0)
    packed = layer.packed(kernel)
    assert packed.kernel == kernel
    rows = random_rows(100, inputs)
    expected = layer.expected(rows, rounding)
    for count in [*range(1, 38), 65, 100]:
        answer = packed.apply(rows[:count], rounding=rounding)
        assert same_bits(answer, expected[:count]), count


@pytest.mark.parametrize("inputs", [1024, 8192, 65536])
def test_the_largest_sums_are_exact(kernel: str, inputs: int) -> None:
    """Where 16 bits, or an order of additions, would show."""
    signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]], np.int8)
    weight = np.repeat(signs * np.int8(127), inputs // 2, axis=1)
    weight = np.vstack([weight, np.full((1, inputs), -128, np.int8)])
    rows = np.repeat(signs.astype(np.float32) * 127, inputs // 2, axis=1)
    packed = _core.PackedLinear(weight, np.ones(5, np.float32), kernel=kernel)
    expected = (rows.astype(np.int64) @ weight.T.astype(np.int64)).astype(np.float32)
    assert np.array_equal(packed.apply(rows), expected)
    assert np.abs(expected).max() == 128 * 127 * inputs


def test_rows_of_zeros_and_of_tiny_numbers(kernel: str) -> None:
    layer = Layer(40, 64)
    rows = random_rows(4, 64)
    rows[1] = 0
    rows[2] = 1e-40  # its scale is infinite
    rows[3] *= 1e30
    answer = layer.packed(kernel).apply(rows)
    assert same_bits(answer[[0, 1, 3]], layer.expected(rows[[0, 1, 3]]))
    assert np.array_equal(answer[1], layer.bias)
    assert np.array_equal(answer[2], layer.bias)


def test_a_row_with_a_nan_spoils_no_other(kernel: str) -> None:
    layer = Layer(40, 64)
    rows = random_rows(14, 64)
    rows[5, 3] = np.nan
    answer = layer.packed(kernel).apply(rows)
    others = [row for row in range(14) if row != 5]
    assert np.isnan(answer[5]).all()
    assert same_bits(answer[others], layer.expected(rows[others]))


def test_without_a_bias_a_zero_keeps_its_sign(kernel: str) -> None:
    packed = _core.PackedLinear(
        np.array([[1], [-1]], np.int8), np.full(2, 3e38, np.float32), kernel=kernel
    )
    assert np.signbit(packed.apply(np.array([[1e-30]], np.float32)))[0].tolist() == [False, True]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(kernel: str, activation: str) -> None:
    """Near the function itself here, and the same bits from every kernel."""
    layer = Layer(70, 64)
    rows = random_rows(9, 64)
    values = layer.expected(rows).astype(np.float64)
    answer = layer.packed(kernel).apply(rows, activation)
    assert np.abs(values).max() > 3
    assert np.allclose(answer, activate(activation, values), rtol=2e-5, atol=3e-6)
    assert same_bits(answer, layer.packed("plain").apply(rows, activation))


def activate(name: str, x: Array) -> Array:
    erf = np.vectorize(math.erf)
    return {
        "none": lambda: x,
        "relu": lambda: np.maximum(x, 0),
        "gelu": lambda: x * (1 + erf(x / np.sqrt(2))) / 2,
        "gelu_tanh": lambda: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
        "swish": lambda: x / (1 + np.exp(-x)),
        "gelu_sigmoid": lambda: x / (1 + np.exp(-1.702 * x)),
        "sigmoid": lambda: 1 / (1 + np.exp(-x)),
        "tanh": lambda: np.tanh(x),
    }[name]()


@pytest.mark.parametrize("outputs", [64, 75])
def test_a_residual_is_added_last(kernel: str, outputs: int) -> None:
    layer = Layer(outputs, 96)
    rows, residual = random_rows(13, 96), random_rows(13, outputs, seed=2)
    answer = layer.packed(kernel).apply(rows, "relu", residual)
    assert same_bits(answer, residual + np.maximum(layer.expected(rows), np.float32(0)))


@pytest.mark.parametrize("log_totals", [False, True])
@pytest.mark.parametrize("outputs", [1, 31, 640, 5003])
def test_the_choice_is_the_first_largest(kernel: str, outputs: int, log_totals: bool) -> None:
    layer = Layer(outputs, 64)
    rows = random_rows(30, 64)
    logits = layer.expected(rows)
    choices, _ = layer.packed(kernel).choose(rows, log_totals)
    assert [choice[0] for choice in choices] == logits.argmax(axis=1).tolist()
    assert [choice[1] for choice in choices] == logits.max(axis=1).tolist()
    if log_totals:
        peak = logits.max(axis=1).astype(np.float64)
        total = peak + np.log(np.exp(logits - peak[:, None]).sum(axis=1))
        assert np.allclose([choice[2] for choice in choices], total, rtol=1e-6, atol=2e-6)


def test_of_equal_logits_the_first_wins(kernel: str) -> None:
    weight = np.zeros((200, 64), np.int8)
    weight[[21, 34, 37, 53, 199]] = 5
    packed = _core.PackedLinear(weight, np.ones(200, np.float32), kernel=kernel)
    rows = np.abs(random_rows(3, 64))
    assert [choice[0] for choice in packed.choose(rows)[0]] == [21] * 3
    assert [choice[0] for choice in packed.choose(-rows)[0]] == [0] * 3


def test_the_log_total_holds_for_large_logits(kernel: str) -> None:
    """Where exp of a logit is no float any more, and where one logit outweighs all others."""
    layer = Layer(300, 64)
    assert layer.bias is not None
    layer.bias += np.where(np.arange(300) % 7 == 0, 20000, -30000).astype(np.float32)
    rows = random_rows(5, 64)
    logits = layer.expected(rows).astype(np.float64)
    peak = logits.max(axis=1)
    total = peak + np.log(np.exp(logits - peak[:, None]).sum(axis=1))
    choices, _ = layer.packed(kernel).choose(rows, True)
    assert np.allclose([choice[2] for choice in choices], total, rtol=1e-7)


def test_logits_are_written_for_the_rows_that_need_them(kernel: str) -> None:
    layer = Layer(333, 64)
    rows = random_rows(20, 64)
    wanted = [row % 3 == 0 for row in range(20)]
    choices, logits = layer.packed(kernel).choose(rows, with_logits=wanted)
    expected = layer.expected(rows)
    assert [row is not None for row in logits] == wanted
    assert all(same_bits(logits[row], expected[row]) for row in range(0, 20, 3))
    assert [choice[0] for choice in choices] == expected.argmax(axis=1).tolist()


def test_forbidden_outputs_are_not_chosen(kernel: str) -> None:
    """Nor counted in the total; a row may forbid what another one chooses."""
    layer = Layer(333, 64)
    rows = random_rows(20, 64)
    logits = layer.expected(rows)
    order = np.argsort(-logits, axis=1, kind="stable")
    forbidden = [sorted(order[row, : row * 3].tolist()) for row in range(20)]
    choices, written = layer.packed(kernel).choose(rows, True, [True] * 20, forbidden)
    assert [choice[0] for choice in choices] == [order[row, row * 3] for row in range(20)]
    assert same_bits(np.stack(written), logits)
    totals = [np.log(np.exp(logits[r, order[r, r * 3 :]].astype(float)).sum()) for r in range(20)]
    assert np.allclose([choice[2] for choice in choices], totals, rtol=1e-6, atol=2e-6)
    with pytest.raises(_core.Error, match="output 333 of a layer of 333"):
        layer.packed(kernel).choose(rows[:1], forbidden=[[333]])
    assert layer.packed(kernel).choose(rows[:1])[0][0][0] == order[0, 0]


@pytest.mark.parametrize("count", [1, 3, 30])
def test_helping_threads_change_no_bit(kernel: str, count: int) -> None:
    """Of 9,001 outputs, which are chosen from in several parts; two of them are equal."""
    layer = Layer(9001, 64)
    layer.weight[8000], layer.scale[:], layer.bias = layer.weight[5], 900, None
    packed = layer.packed(kernel)
    rows = random_rows(count, 64)
    rows[0] = layer.weight[5]  # so that it chooses one of the two
    forbidden = [[1, 2047, 2048, 6000]] * count

    def answers() -> Any:
        logits = packed.apply(rows, "gelu", np.ones((count, 9001), np.float32)).tobytes()
        chosen, written = packed.choose(rows, True, [True] * count, forbidden)
        best = packed.best(rows, 9, forbidden)
        return logits, chosen, [row.tobytes() for row in written], best

    alone = answers()
    with _core.Helpers(2) as helpers:
        while helpers.parts < 100:
            assert answers() == alone
    logits = layer.expected(rows)
    logits[:, forbidden[0]] = -np.inf
    order = np.argsort(-logits, axis=1, kind="stable")
    assert [choice[0] for choice in alone[1]] == order[:, 0].tolist()
    assert order[0, :2].tolist() == [5, 8000]
    assert [[output for output, _ in row] for row in alone[3]] == order[:, :9].tolist()
    totals = np.log(np.exp(logits - logits.max(axis=1)[:, None]).sum(axis=1)) + logits.max(axis=1)
    assert np.allclose([choice[2] for choice in alone[1]], totals, rtol=1e-6, atol=2e-6)


def test_selected_outputs(kernel: str) -> None:
    layer = Layer(500, 70)
    ids = [499, 0, 3, 64, 65, 17, 3, *range(100, 160)]
    selected = layer.packed(kernel).select(ids)
    rows = random_rows(15, 70)
    expected = layer.expected(rows)[:, ids]
    assert same_bits(selected.apply(rows), np.ascontiguousarray(expected))
    assert [c[0] for c in selected.choose(rows)[0]] == expected.argmax(axis=1).tolist()
    with pytest.raises(_core.Error, match="output 500 of a layer of 500"):
        layer.packed(kernel).select([500])


def test_the_memory_is_that_of_the_weights(kernel: str) -> None:
    assert 512 * 8000 <= Layer(8000, 512).packed(kernel).bytes < 512 * 8000 + (3 << 20)


@pytest.mark.parametrize(("outputs", "inputs"), [(1, 65537), (0, 4), (4, 0)])
def test_a_size_that_cannot_be_packed(kernel: str, outputs: int, inputs: int) -> None:
    with pytest.raises(_core.Error, match=f"a layer of {outputs} outputs and {inputs} inputs"):
        Layer(outputs, inputs).packed(kernel)


def named(environment: str) -> subprocess.CompletedProcess[str]:
    """What a process with this CT2_TRITON_KERNELS packs for."""
    code = "import numpy as np; from ct2_triton import _core as c; import json;"
    code += "a = np.ones((1, 1), np.int8), np.ones(1, np.float32);"
    code += "print(json.dumps(c.PackedLinear(*a).kernel))"
    return run(sys.executable, "-c", code, code=None, CT2_TRITON_KERNELS=environment)


def test_the_environment_chooses_the_kernels(kernel: str) -> None:
    assert json.loads(named(kernel).stdout) == kernel


def test_without_a_choice_the_fastest_kernels_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CT2_TRITON_KERNELS", raising=False)
    assert json.loads(named("").stdout) == _core.kernels()[0]


@pytest.mark.parametrize("name", ["AVX2", "sse"])
def test_unknown_kernels_are_refused(name: str) -> None:
    process = named(name)
    assert f'environment variable CT2_TRITON_KERNELS is "{name}"' in process.stderr
    assert "this processor runs plain" in process.stderr
    assert json.loads(named("plain").stdout) == "plain"


@pytest.mark.parametrize("inputs", [1, 2, 3, 37, 512])
@pytest.mark.parametrize("outputs", [1, 31, 70])
def test_weights_are_unpacked_as_they_were(kernel: str, outputs: int, inputs: int) -> None:
    layer = Layer(outputs, inputs)
    assert (layer.packed(kernel).unpack() == layer.weight).all()
