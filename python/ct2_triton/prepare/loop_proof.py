# SPDX-License-Identifier: Apache-2.0
"""Proves that decode loops compute a prepared model as CTranslate2 does.

A server that finds the proof in `ct2_model.json` does not load CTranslate2 to try the model.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from ct2_triton.engine_library import EngineLibraryError, load_core
from ct2_triton.prepare.converted.vocabularies import read_vocabularies

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import ModuleType

_ROWS = 16
_MAX_SOURCE_TOKENS = 12
_GREEDY = {"beam_size": 1, "max_decoding_length": 24}
_EXACT = "float32"


def loop_proofs(model: Path, settings: Mapping[str, str]) -> dict[str, Any]:
    """Hold decode loops against CTranslate2 in the type that will be served, and in float32.

    By compute type it is what was compared, with the proof's id where loops agree; why there is no
    proof where they do not, or cannot run the model. Nothing without the compiled core.
    """
    try:
        core = load_core()
    except (ImportError, EngineLibraryError):
        return {}
    types = dict.fromkeys((settings.get("compute_type", "default"), _EXACT))
    return {name: _proof(core, model, name) for name in types}


def _proof(core: ModuleType, model: Path, compute_type: str) -> dict[str, Any]:
    try:
        proof_id, trial = core.prove_loop(str(model), compute_type)
        equal = _equal_rows(core, model, compute_type)
    except core.Error as error:
        return {"refused": str(error)}
    found = {"trial": trial, "rows": _ROWS, "rows_equal": equal}
    if compute_type == _EXACT and equal < _ROWS:
        return {**found, "refused": "rows of float32 differ from CTranslate2's"}
    return {"id": proof_id, **found}


def _equal_rows(core: ModuleType, model: Path, compute_type: str) -> int:
    """Count the rows of random ids that loops answer as CTranslate2 does on each row alone."""
    rows = _random_rows(model)
    answers = []
    for decoding in ("calls", "loop"):
        parameters = {"compute_type": compute_type, "decoding": decoding, "proof": "off"}
        translator = core.Translator(str(model), parameters)
        answers.append(
            [translator.translate([row], [prefix], _GREEDY)[0][0]["ids"] for row, prefix in rows]
        )
        del translator
    return sum(one == other for one, other in zip(*answers, strict=True))


def _random_rows(model: Path) -> list[tuple[list[int], list[int]]]:
    """Give sources and prefixes, of ids beyond the first, where special tokens stand."""
    vocabularies = read_vocabularies(model)
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    prefix_tokens = 1 if config.get("decoder_start_token") is None else 0
    chance = random.Random(29)  # noqa: S311

    def ids(size: int, count: int) -> list[int]:
        return [chance.randrange(size // 8, size) for _ in range(count)]

    return [
        (
            ids(len(vocabularies.source), 1 + i % _MAX_SOURCE_TOKENS),
            ids(len(vocabularies.target), prefix_tokens + i % 2),
        )
        for i in range(_ROWS)
    ]
