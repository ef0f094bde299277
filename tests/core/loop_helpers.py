# SPDX-License-Identifier: Apache-2.0
"""What the tests of the decode loop share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.engine_truth import EngineTruth, ragged_rows
from ct2_triton import _core

Row = list[int]
GREEDY: dict[str, Any] = {"beam_size": 1, "max_decoding_length": 24}


def new_loop(directory: Path, compute_type: str = "float32", **options: Any) -> Any:
    return _core.DecodeLoop(
        _core.LoopModel(str(directory), {"compute_type": compute_type}), **options
    )


def run_to_end(loop: Any) -> dict[int, Any]:
    """Steps until no row is left; the answers by row."""
    answers: dict[int, Any] = {}
    while loop.running:
        answers.update(loop.step()[1])
    return answers


def decode_alone(loop: Any, source: Row, prefix: Row, parameters: dict[str, Any]) -> Any:
    [name] = loop.admit([(source, prefix, {**GREEDY, **parameters})])
    return run_to_end(loop)[name]


def assert_nothing_is_lost(directory: Path, truth: EngineTruth, product: str, after: int) -> None:
    """Holds rows to CTranslate2's answers where one product of the model fails, and is done again.

    Args:
        directory: A CTranslate2 model.
        truth: What CTranslate2 answers with it.
        product: The layer that fails, such as "decoder/projection".
        after: How often it is well before.
    """
    model = _core.LoopModel(str(directory), {"compute_type": "float32"}, damaged=product)
    loop = _core.DecodeLoop(model)
    sources, prefixes = ragged_rows(truth, 4, seed=9)
    rows = [(s, p, GREEDY) for s, p in zip(sources, prefixes, strict=True)]
    names = loop.admit(rows[:2])
    model.fail_after(after)
    answers: dict[int, Any] = {}
    failures = 0

    def retried(action: Any) -> Any:
        nonlocal failures
        before = (loop.running, loop.cache_bytes)
        try:
            return action()
        except _core.Error as error:
            failure = error
        assert "a product failed" in str(failure)
        assert failure.code == "internal"
        assert (loop.running, loop.cache_bytes) == before
        failures += 1
        model.fail_after(-1)
        return action()

    answers.update(retried(loop.step)[1])
    names += retried(lambda: loop.admit(rows[2:]))
    while loop.running:
        answers.update(retried(loop.step)[1])

    assert failures == 1
    for name, source, prefix in zip(names, sources, prefixes, strict=True):
        assert [answers[name]["ids"]] == truth.hypotheses(source, prefix, **GREEDY)
