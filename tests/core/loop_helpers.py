# SPDX-License-Identifier: Apache-2.0
"""What the tests of the decode loop share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
