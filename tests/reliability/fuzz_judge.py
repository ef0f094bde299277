# SPDX-License-Identifier: Apache-2.0
"""Holds a reply against what must come back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reliability.fuzz_request import Answer
from reliability.truths import PAD, Truth


@dataclass
class Reply:
    """What came back, over any transport: Triton's code, "OK" among them."""

    code: str
    message: str = ""
    outputs: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)


_SWAPPED = ("OK", "ERROR")


def complaint(answer: Answer, reply: Reply) -> str:
    """Says what is wrong with a reply; empty if nothing is."""
    # A stream carries the text of an error alone.
    if (
        reply.code not in {*answer.code.split("|"), "ERROR"}
        or (answer.code, reply.code) == _SWAPPED
    ):
        return f"expected {answer.code} {answer.pattern!r}, got {reply.code} {reply.message!r}"
    if answer.code != "OK":
        if re.search(answer.pattern, reply.message):
            return ""
        return f"expected a message with {answer.pattern!r}, got {reply.message!r}"
    if set(reply.outputs) != set(answer.outputs):
        return f"expected the outputs {answer.outputs}, got {sorted(reply.outputs)}"
    wanted = _arrays(answer.truths)
    aligned = reply.outputs.pop("ALIGNMENTS", None)
    if aligned is not None and (message := _misplaced(answer, aligned, wanted["OUTPUT_IDS"])):
        return message
    for name, got in reply.outputs.items():
        expected = wanted[name] if answer.batched else wanted[name][0]
        if got.shape != expected.shape or not _equal(expected, got):
            return f"{name}: expected {expected.tolist()}, got {got.tolist()}"
    return ""


def _misplaced(answer: Answer, got: np.ndarray[Any, Any], best: np.ndarray[Any, Any]) -> str:
    """Says what is wrong with positions: one for each token, and none behind the longest row.

    Which position, tests/core/loop_alignments.py says: attention has ties.
    """
    expected = best.shape if answer.batched else best[0].shape
    if got.shape != expected:
        return f"ALIGNMENTS: expected the shape {expected}, got {got.shape}"
    rows = got if answer.batched else got[None]
    for truth, row in zip(answer.truths, rows.tolist(), strict=True):
        if row and (
            min(row) < -1 or max(row) >= 512 or set(row[len(truth.hypotheses[0]) :]) - {-1}
        ):
            return f"ALIGNMENTS: {row}"
    return ""


def _equal(expected: np.ndarray[Any, Any], got: np.ndarray[Any, Any]) -> bool:
    if expected.dtype == np.float32:  # the sum of logs depends on the order of the additions
        return bool(np.allclose(expected, got, rtol=1e-3, atol=1e-4))
    return expected.tolist() == got.tolist()


def _arrays(truths: Sequence[Truth]) -> dict[str, np.ndarray[Any, Any]]:
    rows, n = len(truths), max((len(truth.hypotheses) for truth in truths), default=0)
    longest = max((len(h) for truth in truths for h in truth.hypotheses), default=0)
    best = max((len(truth.hypotheses[0]) for truth in truths), default=0)
    arrays: dict[str, np.ndarray[Any, Any]] = {
        "OUTPUT_IDS": np.full((rows, best), PAD),
        "OUTPUT_LENGTHS": np.zeros((rows, 1), np.int32),
        "HYPOTHESES": np.full((rows, n, longest), PAD),
        "HYPOTHESIS_LENGTHS": np.zeros((rows, n), np.int32),
        "SCORES": np.full((rows, n), -np.inf, np.float32),
        "FINISH_REASON": np.full((rows, n), "", object),
    }
    for i, truth in enumerate(truths):
        first = truth.hypotheses[0]
        arrays["OUTPUT_IDS"][i, : len(first)] = first
        arrays["OUTPUT_LENGTHS"][i, 0] = len(first)
        for j, hypothesis in enumerate(truth.hypotheses):
            arrays["HYPOTHESES"][i, j, : len(hypothesis)] = hypothesis
            arrays["HYPOTHESIS_LENGTHS"][i, j] = len(hypothesis)
            arrays["SCORES"][i, j] = truth.scores[j]
            arrays["FINISH_REASON"][i, j] = truth.finish[j]
    return arrays
