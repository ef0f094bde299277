# SPDX-License-Identifier: Apache-2.0
"""Prove that decode loops compute a prepared model as CTranslate2 does.

A server that finds the proof in `ct2_model.json` skips the trial against CTranslate2.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from ct2_triton.engine_library import EngineLibraryError, load_core
from ct2_triton.prepare.converted.files import read_vocabularies

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import ModuleType

_ROWS = 16
# For int8, where the last bits change roundings. Some processors compute CTranslate2's int8
# inexactly; there, loops must be as close to float32.
_LEAST_EQUAL = 8
_CHANCE = 2  # allowed difference of two counts of rows
_MAX_SOURCE_TOKENS = 12
_GREEDY = {"beam_size": 1, "max_decoding_length": 24}
_EXACT = "float32"

_Row = tuple[list[int], list[int]]


def loop_proofs(model: Path, settings: Mapping[str, str]) -> dict[str, Any]:
    """Compare decode loops with CTranslate2 in the served compute type, and in float32.

    Returns by compute type the proof's ID and the comparison, or why loops are refused: they
    differ, or cannot run the model. Loops that are wrong in float32 are refused for every type.
    Empty without the compiled core.
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
    """Translate the rows: together in a decode loop, each alone in CTranslate2 calls.

    In a loop, rows do not depend on each other, and each step reads the weights once for all. In a
    call, another row can change the last bits.
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
    """Return sources and prefixes of random IDs, without the first ones, which are special."""
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
