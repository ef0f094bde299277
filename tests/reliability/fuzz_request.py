# SPDX-License-Identifier: Apache-2.0
"""A generated request, whatever transport it takes, and valid ones made from known cases."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reliability.truths import PAD, Case, Row, Truth, as_parameters

ALL_OUTPUTS = (
    "OUTPUT_IDS",
    "OUTPUT_LENGTHS",
    "HYPOTHESES",
    "HYPOTHESIS_LENGTHS",
    "SCORES",
    "FINISH_REASON",
    "ALIGNMENTS",
)
_JUNK = (PAD, 0, -1, 2**31 - 1, 700)


@dataclass(frozen=True)
class Served:
    """A model of the fuzzer's server, as far as its clients must know it."""

    name: str
    batched: bool = True
    lengths: bool = True  # declares INPUT_LENGTHS and PREFIX_LENGTHS
    prefix_required: bool = False
    outputs: tuple[str, ...] = ALL_OUTPUTS
    id_type: str = "INT32"
    drafts: bool = True  # declares DRAFT_IDS
    longest_row: int = 512
    extra_parameter: str = ""  # a name the operator allows


SERVED = (
    Served("full"),
    Served(
        "plain",
        lengths=False,
        prefix_required=True,
        outputs=("OUTPUT_IDS",),
        drafts=False,
        longest_row=48,
    ),
    Served("single", batched=False),
    Served("wide", id_type="INT64", extra_parameter="x-request-id"),
)


@dataclass
class Tensor:
    """An input tensor; `data` in row-major order."""

    name: str
    datatype: str
    shape: list[int]
    data: np.ndarray[Any, Any]


@dataclass
class Request:
    """What is sent."""

    model: str
    tensors: list[Tensor]
    parameters: dict[str, Any]
    outputs: list[str] | None  # None: all that the model declares
    version: str = ""


@dataclass
class Draft:
    """A request before its rows are written into tensors."""

    model: Served
    rows: list[Row]
    truths: list[Truth]
    parameters: dict[str, Any]
    outputs: list[str] | None
    loops: bool = True  # the model takes a bias towards drafts
    lengths: bool = False  # send the true lengths, with junk behind the rows


@dataclass(frozen=True)
class Answer:
    """What must come back: the answers to rows, or an error."""

    code: str = "OK"
    pattern: str = ""
    truths: list[Truth] = field(default_factory=list)
    batched: bool = True
    outputs: tuple[str, ...] = ()


def make_draft(chooser: random.Random, cases: Sequence[Case]) -> Draft:
    """A valid request for rows of one case."""
    model = chooser.choice(SERVED)
    case = chooser.choice(cases)
    if model.name != "plain":
        while "truncate_input" in case.options:
            case = chooser.choice(cases)
    count = _row_count(chooser) if model.batched else 1
    chosen = [chooser.choice(case.rows) for _ in range(count)]
    parameters = as_parameters(case.options, chooser)
    if model.extra_parameter and chooser.random() < 0.3:
        parameters[model.extra_parameter] = "anything"
    outputs = None
    if chooser.random() < 0.7:
        outputs = chooser.sample(model.outputs, chooser.randint(1, len(model.outputs)))
    return Draft(
        model=model,
        rows=[row for row, _ in chosen],
        truths=[truth for _, truth in chosen],
        parameters=parameters,
        outputs=outputs,
        # Triton refuses [0, 1]: it counts the bytes of one row.
        lengths=model.lengths and count > 0 and chooser.random() < 0.5,
    )


def _row_count(chooser: random.Random) -> int:
    luck = chooser.random()
    if luck < 0.02:
        return 0
    if luck < 0.7:
        return 1
    return chooser.randint(2, 6) if luck < 0.97 else chooser.randint(7, 40)


def expected_answer(draft: Draft) -> Answer:
    """The right answer to a draft."""
    outputs = tuple(draft.outputs or draft.model.outputs)
    return Answer(truths=draft.truths, batched=draft.model.batched, outputs=outputs)


def encode(draft: Draft, chooser: random.Random) -> Request:
    """Writes a draft's rows into tensors, in any order of the tensors."""
    sources = [row.source for row in draft.rows]
    prefixes = [row.prefix for row in draft.rows]
    tensors = _tensors(draft, chooser, "INPUT", sources)
    if draft.model.prefix_required or any(prefixes):
        tensors += _tensors(draft, chooser, "PREFIX", prefixes)
    parameters = dict(draft.parameters)
    has_truths = len(draft.truths) == len(draft.rows)
    if draft.model.drafts and has_truths and is_greedy(draft) and chooser.random() < 0.5:
        answers = [
            list(truth.hypotheses[0][len(row.prefix) :])
            for row, truth in zip(draft.rows, draft.truths, strict=True)
        ]
        drafts = [_expected(answer, chooser) for answer in answers]
        if any(answers) and _keeps_its_answer(draft) and chooser.random() < 0.4:
            drafts = answers
            parameters["draft_bias"] = chooser.choice((0.001, 0.3, 0.99))
        tensors += _tensors(draft, chooser, "DRAFT", drafts)
    if draft.outputs is not None and chooser.random() < 0.1:
        parameters["on_doubt"] = chooser.choice(("none", "flag"))  # retry may change the answer
        parameters["quality"] = chooser.choice((True, "true"))  # for metrics: no output is named
    chooser.shuffle(tensors)
    return Request(draft.model.name, tensors, parameters, draft.outputs)


def is_greedy(draft: Draft) -> bool:
    """Whether the search may have drafts."""
    options = draft.parameters
    ones = ("beam_size", "num_hypotheses", "sampling_topk")
    return (
        "beam_size" in options
        and all(str(options.get(name, 1)) == "1" for name in ones)
        and not options.keys() & {"prefix_bias_beta", "return_alternatives"}
    )


def _keeps_its_answer(draft: Draft) -> bool:
    """Whether a bias towards the right answer changes nothing that is looked at."""
    if not draft.loops:
        return False
    no_scores = draft.outputs is not None and "SCORES" not in draft.outputs
    return no_scores and "replace_unknowns" not in draft.parameters


def _expected(answer: list[int], chooser: random.Random) -> list[int]:
    """A draft: the answer, with a mistake somewhere, or none."""
    at = chooser.randint(0, len(answer))
    return chooser.choice([answer, [*answer[:at], 9, *answer[at + 1 :]], [9] * 400, []])


def _tensors(
    draft: Draft, chooser: random.Random, kind: str, rows: Sequence[Sequence[int]]
) -> list[Tensor]:
    name = {"INPUT": "INPUT_IDS", "PREFIX": "TARGET_PREFIX", "DRAFT": "DRAFT_IDS"}[kind]
    longest = max((len(row) for row in rows), default=0)
    lengths = draft.lengths and kind != "DRAFT"
    surplus = chooser.randint(0, 4) if lengths and rows else 0
    fill = [chooser.choice(_JUNK) if lengths else PAD for _ in rows]
    matrix = np.empty((len(rows), longest + surplus), draft.model.id_type.lower())
    for i, row in enumerate(rows):
        matrix[i] = [*row, *[fill[i]] * (longest + surplus - len(row))]
    tensors = [Tensor(name, draft.model.id_type, list(matrix.shape), matrix)]
    if lengths:
        counts = np.array([[len(row)] for row in rows], np.int32).reshape(-1, 1)
        tensors.append(Tensor(f"{kind}_LENGTHS", "INT32", list(counts.shape), counts))
    if not draft.model.batched:
        for tensor in tensors:
            del tensor.shape[0]
    return tensors
