# SPDX-License-Identifier: Apache-2.0
"""Random rows through the decode loop, held against CTranslate2 on each row alone.

Families, options and the steps at which rows join are drawn from a seed, which is printed with the
result. At float32 every answer must be CTranslate2's, or differ at a tie that is shown.

    python tests/core/loop_matrix.py --rows 5000 --seed 1 --compute-type int8
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.extend(str(Path(__file__).resolve().parents[1] / name) for name in ("", "tiny"))

import tiny_models
from core.beam_ties import tie_between
from core.matrix_model import TIE, Case, MatrixModel, Row
from ct2_triton import _core
from ct2_triton.bench.shapes import write_shape
from model_bin import edited_copy
from tiny_models import TinyOptions

if TYPE_CHECKING:
    from collections.abc import Callable

POSITIONS = tuple(f"{side}/position_encodings/encodings" for side in ("decoder", "encoder"))


def draft_for(answer: Row, model: MatrixModel, rng: random.Random) -> Row:
    """Makes a draft of an answer: right, cut, with changed, lost and added tokens, or none."""
    noise = [rng.choice(model.choosable) for _ in range(rng.randint(1, 6))]
    at = rng.randint(0, len(answer))
    return rng.choice(
        [
            answer,
            [*answer, model.end, *noise],
            answer[:at],
            [*answer[:at], noise[0], *answer[at + 1 :]],
            [*answer[:at], *answer[at + 2 :]],
            [*answer[:at], *noise, *answer[at:]],
            noise,
            [],
            answer * 20,
        ]
    )


def decode(
    model: MatrixModel,
    cases: list[Case],
    rng: random.Random,
    drafts: list[Row] | None = None,
) -> list[dict[str, Any]]:
    """Gives the loop's answers to rows that join a few at a time, at random steps."""
    loop = _core.DecodeLoop(model.loop_model)
    answers: list[Any] = [None] * len(cases)
    places: dict[int, int] = {}
    grown: dict[int, Row] = {}
    waiting = list(range(len(cases)))
    while waiting or loop.running:
        count = rng.choice([0, 0, 1, 2, 6])
        joining, waiting = waiting[:count], waiting[count:]
        rows = [(cases[i].source, cases[i].prefix, cases[i].parameters) for i in joining]
        expected = [drafts[i] for i in joining] if drafts else []
        places.update(zip(loop.admit(rows, expected), joining, strict=True))
        grew, ended = loop.step()
        for name, token in grew:
            grown.setdefault(name, []).append(token)
        for name, answer in ended:
            answers[places[name]] = {**answer, "grown": grown.get(name, [])}
    assert not loop.cache_bytes, f"{loop.cache_bytes} bytes of cache are still in use"
    return answers


@dataclass
class Tally:
    """What a comparison found.

    Attributes:
        rows: Rows compared.
        tokens: Tokens of their answers.
        ties: Rows that differ first where two logits or beams are equal, nearly.
        tie_gap: Largest difference at a tie, relative to what is compared.
        different: Descriptions of the other rows that differ.
        score_error: Largest difference of scores, where the ids are equal.
    """

    rows: int = 0
    tokens: int = 0
    ties: int = 0
    tie_gap: float = 0.0
    different: list[str] = field(default_factory=list)
    score_error: float = 0.0

    def __str__(self) -> str:
        """Gives one line for people."""
        ties = f"{self.ties} at a tie" + (f" of {self.tie_gap:.1e}" if self.ties else "")
        return (
            f"{self.rows} rows, {self.tokens} tokens: {len(self.different)} differ, "
            f"{ties}; scores differ by at most {self.score_error:.1e}"
        )


@dataclass(frozen=True)
class Drafted:
    """What rows with drafts gave, beside the same rows without.

    Attributes:
        different: Rows whose answers differ.
        kept: Tokens of drafts that stand in answers.
        score_error: Largest difference of scores, where the ids are equal.
    """

    different: int
    kept: int
    score_error: float


def compare(model: MatrixModel, cases: list[Case], answers: list[dict[str, Any]]) -> Tally:
    """Holds the answers against CTranslate2 on each row alone."""
    tally = Tally(rows=len(cases))
    for case, answer in zip(cases, answers, strict=True):
        truth = model.truth(case)
        tally.tokens += len(truth["ids"])
        grown = answer["ids"] if case.is_greedy else []
        found = _all_ids(answer)
        scores = [hypothesis["score"] for hypothesis in answer["hypotheses"]]
        if answer["grown"] != grown:
            tally.different.append(f"{model.name}: reported {answer['grown']}: {answer['ids']}")
        elif found == truth["hypotheses"]:
            tally.score_error = max(tally.score_error, _score_error(scores, truth["scores"]))
        elif (gap := _tie_gap(model, case, truth, found, scores)) is not None:
            tally.ties += 1
            tally.tie_gap = max(tally.tie_gap, gap)
        else:
            tally.different.append(
                f"{model.name}: {case}\n {truth['hypotheses']} {truth['scores']}\n {found} {scores}"
            )
    return tally


def _score_error(scores: list[float], expected: list[float]) -> float:
    """Gives the largest difference, relative to scores that are large."""
    return max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(scores, expected, strict=True))


def _tie_gap(
    model: MatrixModel, case: Case, truth: dict[str, Any], found: list[Row], scores: list[float]
) -> float | None:
    """How near to each other is what made the difference; none: it was no tie."""
    if case.is_greedy:
        return _greedy_tie(model, case, truth["ids"], found[0])
    expected = truth["scores"]
    if model.compute_type == "float32" and not case.options.get("prefix_bias_beta"):
        return tie_between(model, case, (truth["hypotheses"], expected), (found, scores))
    # Beams that are as good as each other: the scores are the same, the hypotheses are not.
    error = _score_error(scores, expected) if len(scores) == len(expected) else TIE
    return error if error < TIE else None


def _greedy_tie(model: MatrixModel, case: Case, truth: Row, answer: Row) -> float | None:
    """How far apart CTranslate2's logits are of the tokens in which answers differ first."""
    if model.compute_type != "float32":
        return None
    step = next(
        (i for i, (a, b) in enumerate(zip(truth, answer, strict=False)) if a != b),
        min(len(truth), len(answer)),
    )
    options = {**case.options, "return_logits_vocab": True, "return_end_token": True}
    logits = model.truth(Case(case.source, case.prefix, options))["logits"]
    values = np.asarray(logits[step]).reshape(-1)
    if model.map_options:  # the logits are those of the candidates, in the order of their ids
        known, values = values, np.full(len(model.target_tokens), -np.inf)
        values[model.candidates] = known
    ends = case.options.get("end_token") or [model.end]
    # Where an answer has no token any more, it has chosen an end token.
    first, second = (
        values[row[step]] if step < len(row) else values[ends].max() for row in (truth, answer)
    )
    gap = float(abs(first - second) / max(1.0, abs(first)))
    return gap if gap <= TIE else None


def matrix_models(make: Callable[[str, TinyOptions], Path], folder: Path) -> dict[str, Path]:
    """Gives a CTranslate2 directory of every kind of decoder.

    Args:
        make: Gives the directory of a tiny model of a family.
        folder: Where to write the kinds that no family has.
    """
    usual = TinyOptions()
    models = {name: make(name, usual) for name in sorted(tiny_models.FAMILIES)}
    models["t5-wide-heads"] = make("t5", TinyOptions(d_kv=40))
    models["t5-narrow-heads"] = make("t5", TinyOptions(d_kv=8))
    models["nllb-ends-by-itself"] = make("nllb", TinyOptions(train_steps=200, max_positions=128))
    models["no-stored-positions"] = edited_copy(models["m2m100"], folder / "sines", drop=POSITIONS)
    models["vocabulary-map"] = edited_copy(models["nllb"], folder / "mapped")
    tokens = json.loads((models["nllb"] / "shared_vocabulary.json").read_text())
    always = "\t" + " ".join(tokens[20:600:3]) + "\n"
    (models["vocabulary-map"] / "vmap.txt").write_text(always, encoding="utf-8")
    return models


def run(model: MatrixModel, rows: int, seed: int) -> Tally:
    """Draws rows, decodes and compares them."""
    rng = random.Random(f"{model.name} {seed}")
    cases = [model.draw(rng) for _ in range(rows)]
    return compare(model, cases, decode(model, cases, rng))


def composition(model: MatrixModel, rows: int, seed: int) -> int:
    """Counts the rows whose answers depend on who else is in the loop."""
    rng = random.Random(f"{model.name} {seed}")
    cases = [model.draw(rng) for _ in range(rows)]
    together = decode(model, cases, rng)
    alone = [decode(model, [case], rng)[0] for case in cases]
    return sum(_all_ids(a) != _all_ids(b) for a, b in zip(together, alone, strict=True))


def helped(
    model: MatrixModel, rows: int, seed: int
) -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]:
    """Decodes rows on one thread, and again with two helping threads.

    On a busy machine helpers may come too late to help, so it is repeated until they have.

    Returns:
        The answers of one thread, with their scores, and those of each run with helpers.
    """
    rng = random.Random(f"{model.name} {seed}")
    cases = [model.draw(rng) for _ in range(rows)]
    alone = decode(model, cases, random.Random(seed))
    together = []
    with _core.Helpers(2) as helpers:
        while helpers.parts < 100:
            together.append(decode(model, cases, random.Random(seed)))
    return alone, together


def drafted(model: MatrixModel, rows: int, seed: int) -> Drafted:
    """Decodes rows without drafts, and again with drafts, in other company."""
    rng = random.Random(f"{model.name} {seed}")
    cases = [model.draw(rng) for _ in range(rows)]
    plain = decode(model, cases, rng)
    drafts = [
        draft_for(answer["ids"][len(case.prefix) - model.least_prefix :], model, rng)
        if case.is_greedy
        else []
        for case, answer in zip(cases, plain, strict=True)
    ]
    with_drafts = decode(model, cases, rng, drafts)
    pairs = list(zip(plain, with_drafts, strict=True))
    same = [(a, b) for a, b in pairs if (a["ids"], a["grown"]) == (b["ids"], b["grown"])]
    return Drafted(
        rows - len(same),
        sum(b["draft_tokens_kept"] for _, b in pairs),
        max(_score_error([b["score"]], [a["score"]]) for a, b in same),
    )


def _all_ids(answer: dict[str, Any]) -> list[Row]:
    return [hypothesis["ids"] for hypothesis in answer["hypotheses"]]


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5000, help="rows in all (default: 5000)")
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    parser.add_argument("--compute-type", default="float32", help="default: float32")
    parser.add_argument("--models", help="comma-separated kinds of models (default: all)")
    parser.add_argument("--beams", type=float, default=0, help="share of beams (default: 0)")
    parser.add_argument("--directory", type=Path, help="a CTranslate2 model, in place of the kinds")
    parser.add_argument("--shape", help="a model of ct2_triton.bench.shapes, in place of the kinds")
    parser.add_argument(
        "--composition", action="store_true",
        help="compare the loop with itself: each row in company and alone",
    )  # fmt: skip
    parser.add_argument(
        "--drafts", action="store_true",
        help="compare the loop with itself: each greedy row with a draft and without",
    )  # fmt: skip
    return parser.parse_args()


def main() -> int:
    """Runs the matrix and prints what it found."""
    args = parse_arguments()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as scratch:
        return _run_all(args, _chosen_models(args, Path(scratch)))


def _chosen_models(args: argparse.Namespace, folder: Path) -> dict[str, Path]:
    """Gives the models to run, by name; makes those that do not exist."""
    if args.directory:
        return {args.directory.name: args.directory}
    if args.shape:
        checkpoint = write_shape(args.shape, folder / args.shape)
        return {args.shape: tiny_models.convert(checkpoint, folder / "ct2")}

    from support.tiny import tiny_engine_model

    models = matrix_models(tiny_engine_model, folder)
    chosen = args.models.split(",") if args.models else list(models)
    return {name: models[name] for name in chosen}


def _run_all(args: argparse.Namespace, models: dict[str, Path]) -> int:
    different = Counter[str]()
    share = -(-args.rows // len(models))
    for name, directory in models.items():
        model = MatrixModel(name, directory, args.compute_type, args.beams)
        if args.composition:
            different[name] = composition(model, share, args.seed)
            print(f"{name}: {share} rows, {different[name]} depend on their company", flush=True)
            continue
        if args.drafts:
            found = drafted(model, share, args.seed)
            different[name] = found.different
            print(f"{name}: {share} rows, {found}", flush=True)
            continue
        tally = run(model, share, args.seed)
        different[name] = len(tally.different)
        print(f"{name}: {tally}", *tally.different[:3], sep="\n  ", flush=True)
    total = different.total()
    print(f"{args.compute_type}, seed {args.seed}: {total} of {share * len(models)} rows differ")
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
