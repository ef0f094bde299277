# SPDX-License-Identifier: Apache-2.0
"""Where the tokens of random rows come from, held against CTranslate2's attention on each row.

It draws as `loop_matrix` does; of most rows nearly all tokens but the unknown one are suppressed.

    python tests/core/loop_alignments.py --rows 5000
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.extend(str(Path(__file__).resolve().parents[1] / name) for name in ("", "core", "tiny"))

import loop_matrix
from loop_matrix import Case, MatrixModel

TIE = 1e-5
"""Two shares of attention that are closer count as equal."""


@dataclass
class Found:
    """What a comparison found.

    Attributes:
        tokens: Free tokens whose position was compared.
        ties: Of these, those with another position of the same attention.
        replaced: Unknown tokens that CTranslate2 replaced.
        different: Descriptions of rows that differ.
    """

    tokens: int = 0
    ties: int = 0
    replaced: int = 0
    different: list[str] = field(default_factory=list)


def draw(model: MatrixModel, rng: random.Random) -> Case:
    """Makes a row that asks for alignments, replaces unknown tokens, or both."""
    case = model.draw(rng)
    while case.options.get("return_alternatives") and case.options["beam_size"] > 1:
        case = model.draw(rng)  # CTranslate2 mixes up the attention of alternatives with beams
    options = {**case.options, **rng.choice([{"return_alignments": True}, {"return_scores": True}])}
    options["replace_unknowns"] = rng.random() < 0.6 or "return_alignments" not in options
    unknown = model.target_ids["<unk>"]
    # With an unknown token in its prefix a row would run without the vocabulary map.
    share = 0 if model.map_options else 0.2
    prefix = [unknown if rng.random() < share else token for token in case.prefix]
    if rng.random() < 0.7 and not options.get("disable_unk"):
        kept = {unknown, model.end, *rng.sample(model.choosable, 2)}
        options.pop("end_token", None)
        options["suppress_sequences"] = [[i] for i in model.choosable if i not in kept]
    # A start token is no id of the answer.
    return replace(case, prefix=case.prefix[: model.least_prefix] + prefix[model.least_prefix :],
                   options=options)  # fmt: skip


def run(model: MatrixModel, rows: int, seed: int) -> Found:
    """Draws rows, decodes and compares them."""
    rng = random.Random(f"{model.name} {seed} alignments")
    cases = [draw(model, rng) for _ in range(rows)]
    runs = [case for case in cases if _runs_in_loop(model, case)]
    found = Found()
    for case, answer in zip(runs, loop_matrix.decode(model, runs, rng), strict=True):
        _compare(model, case, answer, found)
    return found


def _runs_in_loop(model: MatrixModel, case: Case) -> bool:
    """Whether the loop takes the row: it must see where forced unknown tokens look."""
    forced = case.prefix[model.least_prefix :]
    limit = case.options["max_decoding_length"]
    reaches = len(forced) >= limit and not case.options.get("prefix_bias_beta")
    unknown = model.target_ids["<unk>"] in forced[:limit]
    return not (case.options["replace_unknowns"] and reaches and unknown)


def _compare(model: MatrixModel, case: Case, answer: dict[str, Any], found: Found) -> None:
    truth = model.truth(case)
    tally = loop_matrix.compare(model, [case], [answer])
    found.different += tally.different
    if tally.different or tally.ties:
        return
    plain = model.truth(replace(case, options={**case.options, "replace_unknowns": False}))
    if case.options["replace_unknowns"]:
        found.replaced += sum(a != b for a, b in zip(plain["ids"], truth["ids"], strict=True))
    if not case.options.get("return_alignments"):
        assert all(hypothesis["alignments"] == [] for hypothesis in answer["hypotheses"])
        return
    forced = 0 if case.options.get("prefix_bias_beta") else len(case.prefix) - model.least_prefix
    for hypothesis, attention in zip(answer["hypotheses"], truth["attention"], strict=True):
        given = hypothesis["alignments"]
        known = len(given) == len(hypothesis["ids"]) and all(i == -1 for i in given[:forced])
        if not known or not _agree(given[forced:], attention[forced:], found):
            best = [int(np.argmax(weights)) for weights in attention]
            found.different.append(f"{model.name}: {case}\n {best}\n {given}")


def _agree(given: list[int], attention: list[list[float]], found: Found) -> bool:
    for position, weights in zip(given, attention, strict=True):
        best = int(np.argmax(weights))
        found.tokens += 1
        found.ties += position != best
        if position < 0 or weights[best] - weights[position] > TIE:
            return False
    return True


def main() -> int:
    """Compares rows of all kinds of models and prints what it found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5000, help="rows in all (default: 5000)")
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    from support.tiny import tiny_engine_model

    total = 0
    with tempfile.TemporaryDirectory() as scratch:
        models = loop_matrix.matrix_models(tiny_engine_model, Path(scratch))
        for name, directory in models.items():
            model = MatrixModel(name, directory, "float32", beams=0.4)
            found = run(model, -(-args.rows // len(models)), args.seed)
            total += len(found.different)
            print(f"{name}: {found.tokens} tokens, {found.ties} at a tie, {found.replaced} "
                  f"replaced, {len(found.different)} rows differ", flush=True)  # fmt: skip
            print(*found.different[:2], sep="\n")
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
