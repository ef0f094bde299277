# SPDX-License-Identifier: Apache-2.0
"""Operations and bytes that benchmarks/roofline.py counts, against the model's sizes."""

from __future__ import annotations

import json

import pytest

import roofline
from ct2_triton import _core
from ct2_triton.prepare.shipped import FOLDER
from roofline import (
    REST,
    SELF,
    SOURCE,
    Limits,
    Part,
    Steps,
    limits_table,
    measure_limits,
    measure_steps,
    table,
)

STEPS = 3


@pytest.mark.parametrize(
    ("rows", "compute_type", "size"), [(1, "int8", 1), (5, "int8", 1), (5, "float32", 4)]
)
def test_what_is_counted_is_what_the_sizes_say(rows: int, compute_type: str, size: int) -> None:
    config = json.loads((FOLDER / "checkpoint" / "config.json").read_text(encoding="utf-8"))
    width, inner = config["d_model"], config["decoder_ffn_dim"]
    layers, vocabulary = config["decoder_layers"], config["vocab_size"]
    model = _core.LoopModel(str(FOLDER / "model"), {"compute_type": compute_type}, timed=True)
    found = measure_steps(model, rows, STEPS)
    weights = {
        "products of self-attention": layers * 4 * width**2,
        "products of cross-attention": layers * 2 * width**2,
        "feed-forward": layers * 2 * width * inner,
        "vocabulary, with the choice": width * vocabulary,
    }
    first = roofline.WARM_STEPS + 1
    keys = {
        SELF: layers * rows * sum(first + step for step in range(STEPS)),
        SOURCE: layers * rows * STEPS * roofline.SOURCE_TOKENS,
    }
    assert set(found.parts) == {*weights, *keys, REST}
    for name, count in weights.items():
        assert found.parts[name].operations == rows * STEPS * count
        # Packed weights have a scale, a bias and a sum for each output, and are padded.
        least = STEPS * size * count
        most = STEPS * (1.2 * size * count + (2 << 20))
        assert least <= found.parts[name].bytes <= most
    for name, count in keys.items():
        assert found.parts[name].operations == 2 * width * count
        assert found.parts[name].bytes == 4 * 2 * width * count
    assert all(part.ns > 0 for part in found.parts.values())


def test_a_share_is_the_bound_divided_by_the_time() -> None:
    limits = Limits(products=100e9, floats=10e9, bytes=20e9)
    parts = {
        "feed-forward": Part(operations=4_000_000, bytes=4_000_000, ns=400_000),  # 200 us: bytes
        SELF: Part(operations=2_000_000, bytes=40, ns=800_000),  # 200 us: floats
        REST: Part(ns=800_000),
    }
    lines = table(Steps(1, 2, parts), limits)
    assert lines[2:] == [
        "| feed-forward | 200 | 10.0 | 10.0 | 100 | 50% |",
        "| attention to itself | 400 | 2.5 | 0.0 | 100 | 25% |",
        "| the rest | 400 | | | | |",
        "| the step | 1000 | | | 200 | 20% |",
    ]


def test_the_limits_of_this_machine_are_measured() -> None:
    measured = measure_limits(0.001, [1 << 20])
    assert measured.pop("cores") >= 1
    assert list(measured) == ["int8", "float", "L2", "L3", "memory", str(1 << 20)]
    assert all(figures["one"] > 0 and figures["all"] > 0 for figures in measured.values())
    assert len(limits_table({**measured, "cores": 2})) == 2 + len(measured)
