# SPDX-License-Identifier: Apache-2.0
"""The kernels of the decode loop, each held against plain arithmetic in double precision."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from ct2_triton import _core

KERNELS = ["plain", "avx2", "avx512"]
# Around the widths of registers (4, 8, 16 numbers), and the heads of known models.
HEAD_DIMS = [1, 7, 8, 15, 16, 17, 33, 40, 64, 80, 128]
TOKENS = [1, 2, 15, 16, 17, 50]
# Some kernels take four heads at once; these are some more.
HEADS = 6


@pytest.fixture(params=KERNELS)
def kernels(request: pytest.FixtureRequest) -> str:
    if request.param not in _core.kernel_names():
        pytest.skip(f"this processor does not run {request.param}")
    return str(request.param)


def attention(query: Any, keys: Any, values: Any, scale: float, bias: Any = None) -> Any:
    """query: [heads, dim]; keys, values: [tokens, heads, dim]; bias: [heads, tokens]."""
    scores = np.einsum("hd,thd->ht", query.astype(float), keys.astype(float)) * scale
    if bias is not None:
        scores = scores + bias
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.einsum("ht,thd->hd", weights, values.astype(float))


def draw(tokens: int, heads: int, dim: int, spread: float = 1.0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(tokens * 1000 + dim)
    query = (rng.normal(size=(heads, dim)) * spread).astype(np.float32)
    keys, values = rng.normal(size=(2, tokens, heads, dim)).astype(np.float32)
    return query, keys, values


def attend(
    kernels: str, query: Any, keys: Any, values: Any, scale: float, bias: Any = (), **more: Any
) -> Any:
    heads = query.shape[0]
    flat = [array.ravel().tolist() for array in (query, keys, values)]
    out = _core.attend(kernels, *flat, heads, scale, np.ravel(bias).tolist(), **more)
    return np.array(out).reshape(query.shape)


@pytest.mark.parametrize("dim", HEAD_DIMS)
@pytest.mark.parametrize("tokens", TOKENS)
def test_attention(kernels: str, tokens: int, dim: int) -> None:
    query, keys, values = draw(tokens, HEADS, dim)

    out = attend(kernels, query, keys, values, dim**-0.5)

    assert out == pytest.approx(attention(query, keys, values, dim**-0.5), abs=3e-6)


@pytest.mark.parametrize("dim", [8, 40, 64])
@pytest.mark.parametrize("with_bias", [False, True])
def test_tokens_that_lie_in_slots(kernels: str, dim: int, with_bias: bool) -> None:
    """The same bits as with the tokens in order: beams compute as a row of their own would."""
    query, keys, values = draw(40, HEADS, dim)
    slots = np.random.default_rng(5).permutation(40)[:29]
    bias = (
        np.linspace(-1, 1, HEADS * 17).astype(np.float32) if with_bias else np.zeros(0, np.float32)
    )
    flat = [query.ravel().tolist(), *(a.ravel().tolist() for a in (keys, values))]
    picked = [query.ravel().tolist(), *(a[slots].ravel().tolist() for a in (keys, values))]

    found = _core.attend(kernels, *flat, HEADS, 0.3, bias.tolist(), slots=slots.tolist())

    assert found == _core.attend(kernels, *picked, HEADS, 0.3, bias.tolist())


def test_attention_that_is_far_from_even(kernels: str) -> None:
    """Scores far apart, as trained models have them: e to the power of -1000 is 0."""
    query, keys, values = draw(60, 2, 64, spread=300)

    out = attend(kernels, query, keys, values, 1)

    assert np.isfinite(out).all()
    assert out == pytest.approx(attention(query, keys, values, 1), abs=2e-3)


@pytest.mark.parametrize("tokens", [1, 3, 9, 40])
def test_bias_by_distance(kernels: str, tokens: int) -> None:
    """The first and last numbers of a head's bias count for all tokens that are further away."""
    heads, last = 3, 8
    query, keys, values = draw(tokens, heads, 16)
    bias = np.random.default_rng(1).normal(size=(heads, 2 * last + 1)).astype(np.float32)

    out = attend(kernels, query, keys, values, 1, bias)

    distances = np.maximum(np.arange(tokens) - tokens + 1, -last) + last
    expected = attention(query, keys, values, 1, bias[:, distances])
    assert out == pytest.approx(expected, abs=3e-6)


@pytest.mark.parametrize("count", [1, 3, 4, 15, 16, 17, 31, 100, 1000])
def test_first_maximum(kernels: str, count: int) -> None:
    rng = np.random.default_rng(count)
    for _ in range(50):
        values = rng.integers(-5, 3, size=count).astype(np.float32)
        assert _core.first_maximum(kernels, values.tolist()) == int(values.argmax())


def test_first_maximum_of_disabled_tokens(kernels: str) -> None:
    lowest = float(np.finfo(np.float32).min)
    values = [lowest] * 40
    assert _core.first_maximum(kernels, values) == 0
    values[33] = -1e30
    assert _core.first_maximum(kernels, values) == 33
    assert _core.first_maximum(kernels, [float("-inf")] * 20 + [lowest]) == 20
    assert _core.first_maximum(kernels, [float("nan")] * 20) < 20


def test_an_unknown_name_is_refused_with_the_known_ones(engine_model: Any) -> None:
    script = "import sys; from ct2_triton import _core; _core.LoopModel(sys.argv[1])"
    result = subprocess.run(
        [sys.executable, "-c", script, str(engine_model)],
        env={**os.environ, "CT2_TRITON_KERNELS": "sse"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 0
    assert 'CT2_TRITON_KERNELS is "sse"; this processor runs plain' in result.stderr


def attend_row(kernels: str, projected: Any, scale: float, bias: Any = ()) -> Any:
    """projected: [tokens, query and key and value, heads, dim]."""
    tokens, _, heads, dim = projected.shape
    out = _core.attend_row(kernels, projected.ravel().tolist(), heads, dim, scale, np.ravel(bias))
    return np.array(out, np.float32).reshape(tokens, heads, dim)


# The usual size of a head is computed four queries at once, long rows from copies.
@pytest.mark.parametrize("tokens", [1, 3, 4, 5, 18, 63, 64, 130])
@pytest.mark.parametrize(("heads", "dim"), [(4, 64), (8, 64), (6, 64), (4, 40)])
@pytest.mark.parametrize("last", [0, 9])
def test_tokens_of_a_row_see_each_other(
    kernels: str, tokens: int, heads: int, dim: int, last: int
) -> None:
    """The same bits as token by token, with and without a bias by distance."""
    rng = np.random.default_rng(tokens)
    projected = (rng.normal(size=(tokens, 3, heads, dim)) * 2).astype(np.float32)
    query, keys, values = projected.transpose(1, 0, 2, 3)

    bias = rng.normal(size=(heads, 2 * last + 1)).astype(np.float32) if last else ()

    out = attend_row(kernels, projected, dim**-0.5, bias)

    each = [
        attend(kernels, row, keys, values, dim**-0.5, bias, position=position)
        for position, row in enumerate(query)
    ]
    if last:
        keys_from = np.arange(tokens)[None, :] - np.arange(tokens)[:, None]
        biases = bias[:, np.clip(keys_from, -last, last) + last]
        for position, row in enumerate(query):
            expected = attention(row, keys, values, dim**-0.5, biases[:, position])
            assert out[position] == pytest.approx(expected, abs=2e-5)
    assert out.tobytes() == np.array(each, np.float32).tobytes()


def test_a_row_of_a_wrong_size_is_refused() -> None:
    with pytest.raises(_core.Error, match="sizes do not fit"):
        _core.attend_row("plain", [0.0] * 25, 2, 4, 1.0)
    assert _core.attend_row("plain", [1.0] * 24, 2, 4, 1.0) == [1.0] * 8
