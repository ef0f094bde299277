# SPDX-License-Identifier: Apache-2.0
"""Rows with their right answers, computed beforehand by CTranslate2 itself, one row at a time."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from server.helpers import END, LANGUAGES, Ids, Reference

Options = dict[str, Any]

PAD = 1
DEFAULT_LENGTH = 24  # max_decoding_length of every model the fuzzer serves
SHORT_INPUT = 48  # max_input_length of the model `plain`
_ENDS = list(range(4, 1400, 40))  # so that a random model ends rows at very different lengths

# What CTranslate2 is asked for, in its own words. Ours are the same, but for lists.
OPTION_SETS: list[Options] = [
    {},
    {"beam_size": 1},
    {"beam_size": 1, "max_decoding_length": 3},
    {"beam_size": 1, "max_decoding_length": 40},
    {"beam_size": 1, "max_decoding_length_multiple": 1.5},
    {"beam_size": 1, "end_token": _ENDS},
    {"beam_size": 1, "end_token": _ENDS, "min_decoding_length": 6},
    {"beam_size": 1, "repetition_penalty": 1.5, "no_repeat_ngram_size": 2},
    {"beam_size": 1, "suppress_sequences": [["▁"], ["s", "e"]], "disable_unk": True},
    {"beam_size": 1, "replace_unknowns": True, "max_decoding_length": 10},
    {"max_decoding_length_multiple": 0.7},
    {"end_token": _ENDS},
    {"end_token": _ENDS, "return_end_token": True},
    {"length_penalty": 0.3, "end_token": _ENDS},
    {"coverage_penalty": 0.3, "max_decoding_length": 9},
    {"beam_size": 3, "num_hypotheses": 3, "max_decoding_length": 12, "end_token": _ENDS},
    {"beam_size": 4, "patience": 1.5, "num_hypotheses": 5, "max_decoding_length": 8},
    {"beam_size": 5, "min_decoding_length": 8, "end_token": _ENDS},
    {"prefix_bias_beta": 0.4, "max_decoding_length": 10},
    {"return_alternatives": True, "num_hypotheses": 3, "max_decoding_length": 9},
    {"truncate_input": True, "beam_size": 1, "max_decoding_length": 11},
]


LEAST_GAP = 1e-4  # between the best two logits; they differ by 1e-6 from batch to batch
_COMPANIONS = ([[300, 77, END]], [[300, *range(50, 90), END], [300, 5, 6, END]])


@dataclass(frozen=True)
class Row:
    """A sentence as it goes on the wire."""

    source: tuple[int, ...]
    prefix: tuple[int, ...]


@dataclass(frozen=True)
class Truth:
    """The right answer to a row."""

    hypotheses: list[Ids]
    scores: list[float]
    finish: list[str]


@dataclass
class Case:
    """Rows that share a set of options, with their answers."""

    options: Options
    rows: list[tuple[Row, Truth]] = field(default_factory=list)


def make_cases(folder: Path, rows_per_case: int, seed: int) -> list[Case]:
    """Cases for every set of options; the rows differ from set to set."""
    solver = _Solver(folder)
    chooser = random.Random(seed)
    cases = []
    for options in OPTION_SETS:
        case = Case(options)
        while len(case.rows) < rows_per_case:
            row = _row(chooser, solver.reference, len(case.rows), options)
            if solver.is_decided(row, options):
                case.rows.append((row, solver.solve(row, options)))
        cases.append(case)
    return cases


def _row(chooser: random.Random, reference: Reference, index: int, options: Options) -> Row:
    language = reference.id(LANGUAGES[index % len(LANGUAGES)])
    prefixes: list[list[int]] = [[language], [language], [language, chooser.randrange(4, 1100)]]
    if "prefix_bias_beta" not in options:
        prefixes += [[], [language, *chooser.sample(range(4, 1100), 3)]]
    prefix = tuple(chooser.choice(prefixes))
    if index % 11 == 10:
        return Row(chooser.choice([(), (END,)]), prefix)
    length = min(SHORT_INPUT - 2, max(1, round(chooser.lognormvariate(2.2, 0.8))))
    if options.get("truncate_input") and index % 2:
        length = chooser.randrange(SHORT_INPUT, 3 * SHORT_INPUT)
    pieces = (chooser.randrange(4, 1100) for _ in range(length))
    return Row((reference.id("eng_Latn"), *pieces, END), prefix)


def gap(logits: np.ndarray[Any, Any]) -> float:
    """How far the best logit of a step is above the second."""
    second, best = np.partition(logits, -2)[-2:]
    return float(best - second)


def _reads_attention(options: Options) -> bool:
    """Searches that CTranslate2 itself answers differently among other rows."""
    return "coverage_penalty" in options or "replace_unknowns" in options


class _Solver:
    """Asks CTranslate2 for the truth of one row."""

    def __init__(self, folder: Path) -> None:
        self.reference = Reference(folder)

    def _among(self, row: Row, others: Sequence[Ids], **options: Any) -> list[Ids]:
        """The hypotheses of a row that shares its call with others."""
        reference = self.reference
        rows = [(row.source, row.prefix), *((ids, row.prefix) for ids in others)]
        result = reference.run_together(rows, **options)[0]
        return [[reference.id(token) for token in h] for h in result.hypotheses]

    def solve(self, row: Row, options: Options) -> Truth:
        wanted = self._engine_options(row, options)
        result = self.reference.run(row.source, row.prefix, return_scores=True, **wanted)
        hypotheses = [[self.reference.id(t) for t in h] for h in result.hypotheses]
        scores = [float(score) for score in result.scores]
        if row.source in {(), (END,)}:
            return Truth(hypotheses, scores, ["empty"] * len(hypotheses))
        if options.get("truncate_input") and len(row.source) > SHORT_INPUT:
            return Truth(hypotheses, scores, ["cut"] * len(hypotheses))
        wanted["return_end_token"] = True
        ended = self.reference.hypotheses(row.source, row.prefix, **wanted)
        ends = options.get("end_token", [END])
        finish = ["stop" if h[-1] in ends else "length" for h in ended]
        return Truth(hypotheses, scores, finish)

    def is_decided(self, row: Row, options: Options) -> bool:
        """Whether no two tokens tie. A random model has ties, which rounding decides.

        Greedy searches tell the gap between the best two at each step. For the others, CTranslate2
        must give the same answer when other rows share the call.
        """
        wanted = self._engine_options(row, options)
        if row.source in {(), (END,)} or _reads_attention(options):
            return True
        if options.get("beam_size") == 1:
            result = self.reference.run(row.source, row.prefix, return_logits_vocab=True, **wanted)
            return all(gap(np.array(step)) > LEAST_GAP for step in result.logits[0])
        alone = self._among(row, [], **wanted)
        return all(self._among(row, others, **wanted) == alone for others in _COMPANIONS)

    @staticmethod
    def _engine_options(row: Row, options: Options) -> Options:
        wanted = {"max_decoding_length": DEFAULT_LENGTH, **options}
        multiple = wanted.pop("max_decoding_length_multiple", 0)
        if multiple:
            wanted["max_decoding_length"] = max(1, math.floor(multiple * len(row.source)))
        wanted["max_input_length"] = SHORT_INPUT if wanted.pop("truncate_input", False) else 0
        return wanted


def as_parameters(options: Options, chooser: random.Random) -> dict[str, Any]:
    """Options as request parameters: lists as JSON, some of the others as strings."""
    parameters: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, list):
            parameters[name] = json.dumps(value)
        elif chooser.random() < 0.3:
            parameters[name] = json.dumps(value)  # as text: 2, 0.5, true
        else:
            parameters[name] = value
    return parameters
