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
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ctranslate2
import numpy as np

sys.path.extend(str(Path(__file__).resolve().parents[1] / name) for name in ("", "tiny"))

import tiny_models
from ct2_triton import _core
from ct2_triton.bench.shapes import write_shape
from model_bin import edited_copy
from tiny_models import TinyOptions

if TYPE_CHECKING:
    from collections.abc import Callable

Row = list[int]

TIE = 1e-5
"""Two logits that are closer, relative to their size, count as equal."""

POSITIONS = tuple(f"{side}/position_encodings/encodings" for side in ("decoder", "encoder"))


@dataclass(frozen=True)
class Case:
    """A row and its options, as CTranslate2 takes them (lists are lists)."""

    source: Row
    prefix: Row
    options: dict[str, Any]

    @property
    def is_greedy(self) -> bool:
        """Whether CTranslate2 searches without beams."""
        wide = self.options.get("prefix_bias_beta") or self.options.get("return_alternatives")
        return self.options["beam_size"] == 1 and not wide

    @property
    def parameters(self) -> dict[str, Any]:
        """The options as the backend takes them: lists are JSON texts."""
        return {
            name: json.dumps(value) if isinstance(value, list) else value
            for name, value in self.options.items()
        }


class MatrixModel:
    """A model in both engines."""

    def __init__(
        self, name: str, directory: Path, compute_type: str, beams: float = 0, device: str = "cpu"
    ) -> None:
        """Loads the model twice.

        Args:
            name: What to call it in results.
            directory: A CTranslate2 model.
            compute_type: CTranslate2's name of the type to compute in.
            beams: Share of the rows that are beam searches.
            device: CTranslate2's name of where to compute.
        """
        self.name, self.beams = name, beams
        self.compute_type = compute_type
        self.directory = directory
        self.map_options = {"use_vmap": True} if (directory / "vmap.txt").exists() else {}
        gpu = device == "cuda"
        self.loop_model = _core.LoopModel(str(directory), {"compute_type": compute_type}, gpu=gpu)
        self.translator = ctranslate2.Translator(
            str(directory), device=device, compute_type=compute_type, intra_threads=1
        )

    def _vocabulary(self, side: str) -> list[str]:
        own, shared = (self.directory / f"{name}_vocabulary.json" for name in (side, "shared"))
        return json.loads((own if own.exists() else shared).read_text())

    @cached_property
    def source_tokens(self) -> list[str]:
        """Token of each id of a source."""
        return self._vocabulary("source")

    @cached_property
    def target_tokens(self) -> list[str]:
        """Token of each id of a target."""
        return self._vocabulary("target")

    @cached_property
    def target_ids(self) -> dict[str, int]:
        """The first id of each token of a target."""
        return {token: i for i, token in reversed(list(enumerate(self.target_tokens)))}

    @cached_property
    def end(self) -> int:
        """The end token of targets."""
        config = json.loads((self.directory / "config.json").read_text())
        return self.target_ids[config["eos_token"]]

    @cached_property
    def least_prefix(self) -> int:
        """Ids that a prefix has at least: without a start token the first one is that."""
        config = json.loads((self.directory / "config.json").read_text())
        return 0 if config["decoder_start_token"] else 1

    @cached_property
    def choosable(self) -> list[int]:
        """Targets to draw from: those of the vocabulary map, where the model has one.

        No token that stands twice in the vocabulary: as an end token, the backend takes it by name,
        and CTranslate2 by id.
        """
        if self.map_options:
            line = (self.directory / "vmap.txt").read_text().strip("\n")
            return [self.target_ids[token] for token in line.split("\t")[1].split()]
        counts = Counter(self.target_tokens)
        return [i for i, token in enumerate(self.target_tokens) if i > 2 and counts[token] == 1]

    @cached_property
    def candidates(self) -> list[int]:
        """The tokens of the vocabulary map, with those that CTranslate2 adds to them."""
        config = json.loads((self.directory / "config.json").read_text())
        own = ("unk_token", "bos_token", "eos_token", "decoder_start_token")
        return sorted({*self.choosable, *(self.target_ids[config[name]] for name in own)})

    def truth(self, case: Case) -> dict[str, Any]:
        """What CTranslate2 answers to the row alone."""
        prefix = [[self.target_tokens[i] for i in case.prefix]] if case.prefix else None
        options = dict(case.options)
        if "suppress_sequences" in options:
            options["suppress_sequences"] = [
                [self.target_tokens[i] for i in ids] for ids in options["suppress_sequences"]
            ]
        options["return_attention"] = options.pop("return_alignments", False)
        [result] = self.translator.translate_batch(
            [[self.source_tokens[i] for i in case.source]], target_prefix=prefix, **options
        )
        ids = self.target_ids  # a source token in place of an unknown one may be unknown, too
        hypotheses = [[ids.get(token, ids["<unk>"]) for token in row] for row in result.hypotheses]
        return {
            "ids": hypotheses[0],
            "hypotheses": hypotheses,
            "scores": result.scores or [0.0] * len(hypotheses),
            "logits": result.logits[0] if result.logits else None,
            "attention": result.attention,
        }

    def draw(self, rng: random.Random) -> Case:
        """Makes a row: most with few options, so that each shows alone too."""
        tokens = range(3, len(self.source_tokens))
        source = [rng.choice(tokens) for _ in range(rng.choice([1, 2, rng.randint(3, 25)]))]
        length = max(self.least_prefix, rng.choice([0, 1, 1, 1, 2, rng.randint(0, 12)]))
        prefix = [rng.choice([*self.choosable[:400], self.end]) for _ in range(length)]
        options: dict[str, Any] = {
            "beam_size": 1,
            "max_decoding_length": rng.choice([1, 4, 10, 20, 32]),
            **self.map_options,
        }
        for name, make in _OPTIONS.items():
            if rng.random() < 0.25:
                options[name] = make(rng, self)
        if rng.random() < self.beams:
            options |= _beams(rng)
        least = options.get("min_decoding_length", 1)
        options["max_decoding_length"] = max(options["max_decoding_length"], least)
        return Case(source, prefix, options)


_OPTIONS: dict[str, Callable[[random.Random, MatrixModel], Any]] = {
    "min_decoding_length": lambda rng, _: rng.choice([0, 3, 12]),
    "repetition_penalty": lambda rng, _: rng.choice([1.2, 2.0, 0.8]),
    "no_repeat_ngram_size": lambda rng, _: rng.choice([1, 2, 3]),
    "suppress_sequences": lambda rng, model: _sequences(rng, model),
    "end_token": lambda rng, model: rng.sample(model.choosable, min(60, len(model.choosable))),
    "disable_unk": lambda rng, _: rng.random() < 0.8,
    "return_scores": lambda _rng, _: True,
    "length_penalty": lambda rng, _: rng.choice([0.0, 0.6, 2.0]),
    "return_end_token": lambda _rng, _: True,
}


def _beams(rng: random.Random) -> dict[str, Any]:
    """Options of a beam search; scores and all hypotheses are compared."""
    bias = rng.choice([0.05, 0.5, 0.9]) if rng.random() < 0.15 else 0.0
    beam_size = rng.choice([2, 2, 3, 4, 4, 5, 8, *[1] * (bias > 0)])
    patience = rng.choice([1, 1, 1, 0.5, 1.7, 2.5])
    # As CTranslate2 rounds: half away from zero.
    finished = int(beam_size * patience + 0.5)
    if rng.random() < 0.15:
        several = {"return_alternatives": True, "num_hypotheses": rng.choice([1, 3, 6])}
        return {"beam_size": rng.choice([1, 2, 4]), "return_scores": True, **several}
    return {
        "beam_size": beam_size,
        "prefix_bias_beta": bias,
        "patience": patience,
        "num_hypotheses": rng.choice([1, rng.randint(1, finished), finished]),
        "return_scores": True,
    }


def _sequences(rng: random.Random, model: MatrixModel) -> list[Row]:
    """Single tokens, and so many pairs of tokens that some are met."""
    singles = [[rng.choice(model.choosable)] for _ in range(rng.randint(0, 20))]
    pairs = [rng.choices(model.choosable, k=2) for _ in range(rng.choice([0, 200, 2000]))]
    return [*singles, *pairs, rng.choices(model.choosable, k=3)]


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
        ties: Rows that differ first where two logits are equal, nearly.
        different: Descriptions of the other rows that differ.
        score_error: Largest difference of scores, where the ids are equal.
    """

    rows: int = 0
    tokens: int = 0
    ties: int = 0
    different: list[str] = field(default_factory=list)
    score_error: float = 0.0

    def __str__(self) -> str:
        """Gives one line for people."""
        return (
            f"{self.rows} rows, {self.tokens} tokens: {len(self.different)} differ, "
            f"{self.ties} at a tie; scores differ by at most {self.score_error:.1e}"
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
        elif _is_tie(model, case, truth, found, scores):
            tally.ties += 1
        else:
            tally.different.append(
                f"{model.name}: {case}\n {truth['hypotheses']} {truth['scores']}\n {found} {scores}"
            )
    return tally


def _score_error(scores: list[float], expected: list[float]) -> float:
    """Gives the largest difference, relative to scores that are large."""
    return max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(scores, expected, strict=True))


def _is_tie(
    model: MatrixModel, case: Case, truth: dict[str, Any], found: list[Row], scores: list[float]
) -> bool:
    if case.is_greedy:
        return _tie(model, case, truth["ids"], found[0])
    # Beams that are as good as each other: the scores are the same, the hypotheses are not.
    return len(scores) == len(truth["scores"]) and _score_error(scores, truth["scores"]) < TIE


def _tie(model: MatrixModel, case: Case, truth: Row, answer: Row) -> bool:
    """Whether CTranslate2's logits hardly tell apart the tokens in which answers differ first."""
    if model.compute_type != "float32":
        return False
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
    return bool(abs(first - second) <= TIE * max(1.0, abs(first)))


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
