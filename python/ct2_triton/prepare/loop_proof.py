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
# Of int8, whose last bits tip over roundings. Some processors compute CTranslate2's int8 inexactly:
# there loops must be as near to float32.
_LEAST_EQUAL = 8
_CHANCE = 2  # rows by which two counts may differ
_MAX_SOURCE_TOKENS = 12
_GREEDY = {"beam_size": 1, "max_decoding_length": 24}
_EXACT = "float32"

_Row = tuple[list[int], list[int]]


def loop_proofs(model: Path, settings: Mapping[str, str]) -> dict[str, Any]:
    """Hold decode loops against CTranslate2 in the type that will be served, and in float32.

    By compute type it is the proof's id and what was compared; why loops are refused where they do
    not agree, or cannot run the model. Loops that are wrong in float32 are wrong in every type.
    Nothing without the compiled core.
    """
    try:
        core = load_core()
    except (ImportError, EngineLibraryError):
        return {}
    types = dict.fromkeys((settings.get("compute_type", "default"), _EXACT))
    proofs = {name: _proof(core, model, name) for name in types}
    if why := proofs[_EXACT].get("refused"):
        for proof in proofs.values():
            proof.setdefault("refused", f"{_EXACT}: {why}")
    return proofs


def _proof(core: ModuleType, model: Path, compute_type: str) -> dict[str, Any]:
    proof: dict[str, Any] = {}
    try:
        proof["id"] = core.proof_id(str(model), compute_type)
        proof["trial"] = core.prove_loop(str(model), compute_type)
        rows = _random_rows(model)
        calls = _answers(core, model, rows, compute_type, "calls")
        loop = _answers(core, model, rows, compute_type, "loop")
        equal = _equal(loop, calls)
        proof |= {"rows": len(rows), "rows_equal": equal}
        if compute_type == _EXACT:
            refused = equal < len(rows)
        elif refused := equal < _LEAST_EQUAL:
            exact = _answers(core, model, rows, _EXACT, "calls")
            refused = _equal(loop, exact) + _CHANCE < _equal(calls, exact)
    except core.Error as error:
        if error.code != "unsupported":  # says nothing of the loop, so a load obeys no id
            proof.pop("id", None)
        return {**proof, "refused": str(error)}
    if refused:
        proof["refused"] = f"only {equal} of {len(rows)} rows equal CTranslate2's"
    return proof


def _answers(
    core: ModuleType, model: Path, rows: list[_Row], compute_type: str, decoding: str
) -> list[list[int]]:
    """Answer the rows: in a loop together, in calls each alone.

    A row of a loop does not depend on the others, and a step for all reads the weights once. In a
    call, another row may change the last bits.
    """
    parameters = {"compute_type": compute_type, "decoding": decoding, "proof": "off"}
    translator = core.Translator(str(model), parameters)
    groups = [rows] if decoding == "loop" else [[row] for row in rows]
    return [
        hypotheses[0]["ids"]
        for group in groups
        for hypotheses in translator.translate(
            [row for row, _ in group], [prefix for _, prefix in group], _GREEDY
        )
    ]


def _equal(some: list[list[int]], others: list[list[int]]) -> int:
    return sum(one == other for one, other in zip(some, others, strict=True))


def _random_rows(model: Path) -> list[_Row]:
    """Return sources and prefixes, of ids beyond the first, where special tokens stand."""
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
