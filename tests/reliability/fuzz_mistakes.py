# SPDX-License-Identifier: Apache-2.0
"""Valid requests made invalid, with the error that the protocol promises for each mistake."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from reliability.fuzz_request import Answer, Draft, Request, Tensor, encode, is_greedy
from reliability.truths import Row

VOCABULARY = 1406
REFUSED = "INVALID_ARGUMENT"

Mistake = Callable[[Draft, random.Random], tuple[Request, Answer]]


def _refused(pattern: str) -> Answer:
    return Answer(REFUSED, pattern)


def _with_rows(draft: Draft) -> Draft:
    """At least one row, for mistakes that are made inside one."""
    return draft if draft.rows else replace(draft, rows=[Row((300, 50, 2), (9,))])


def _change_row(draft: Draft, index: int, row: Row) -> Draft:
    return replace(draft, rows=[*draft.rows[:index], row, *draft.rows[index + 1 :]])


def _insert(ids: tuple[int, ...], position: int, wrong: int) -> tuple[int, ...]:
    return (*ids[:position], wrong, *ids[position:])


def wrong_source_id(draft: Draft, chooser: random.Random) -> tuple[Request, Answer]:
    """One id of one row is none of the vocabulary's."""
    draft = _with_rows(draft)
    i = chooser.randrange(len(draft.rows))
    row = draft.rows[i]
    source = row.source[: draft.model.longest_row - 1] or (50,)
    position = chooser.randrange(len(source))
    wrong = chooser.choice((-1, -(2**31), VOCABULARY, 2**31 - 1))
    changed = Row(_insert(source, position, wrong), row.prefix)
    request = encode(_change_row(draft, i, changed), chooser)
    return request, _refused(f"INPUT_IDS, row {i}: id {wrong} at position {position} ")


def wrong_prefix_id(draft: Draft, chooser: random.Random) -> tuple[Request, Answer]:
    """One id of one prefix is none of the vocabulary's."""
    draft = _with_rows(draft)
    i = chooser.randrange(len(draft.rows))
    row = draft.rows[i]
    position = chooser.randint(0, len(row.prefix))
    wrong = chooser.choice((-1, VOCABULARY, 2**31 - 1))
    changed = Row(row.source, (*_insert(row.prefix, position, wrong), 9))
    request = encode(_change_row(draft, i, changed), chooser)
    return request, _refused(f"TARGET_PREFIX, row {i}: id {wrong} at position {position} ")


def bad_draft(draft: Draft, chooser: random.Random) -> tuple[Request, Answer]:
    """A draft with an id that is none of the vocabulary's, or for a search that is not greedy."""
    if not draft.model.drafts:
        return unknown_input(draft, chooser)
    draft = _with_rows(draft)
    request = encode(draft, chooser)
    request.tensors = [tensor for tensor in request.tensors if tensor.name != "DRAFT_IDS"]
    ids = np.full((len(draft.rows), 2), 9, draft.model.id_type.lower())
    pattern = "a draft is for a greedy search of one hypothesis"
    if is_greedy(draft):
        ids[0, 1] = VOCABULARY
        pattern = f"id {VOCABULARY} at position 1 "
    shape = list(ids.shape) if draft.model.batched else [2]
    request.tensors.append(Tensor("DRAFT_IDS", draft.model.id_type, shape, ids))
    chooser.shuffle(request.tensors)
    return request, _refused("DRAFT_IDS, row 0: " + pattern)


def bias_without_draft(draft: Draft, chooser: random.Random) -> tuple[Request, Answer]:
    """A bias towards a draft that is not there."""
    draft.parameters.clear()
    draft.parameters["draft_bias"] = chooser.choice((0.001, 0.5, "0.25"))
    request = encode(_with_rows(draft), chooser)
    return request, _refused("draft_bias 0.* (needs a draft|needs a decode loop)")


def long_row(draft: Draft, chooser: random.Random) -> tuple[Request, Answer]:
    """One row is longer than the model takes."""
    draft = _with_rows(draft)
    draft.parameters.pop("truncate_input", None)
    cut_rows = [replace(row, source=row.source[: draft.model.longest_row]) for row in draft.rows]
    i = chooser.randrange(len(cut_rows))
    length = draft.model.longest_row + chooser.choice((1, 2, 100, 3000))
    cut_rows[i] = Row((300, *[50] * (length - 1)), draft.rows[i].prefix)
    request = encode(replace(draft, rows=cut_rows), chooser)
    return request, _refused(f"INPUT_IDS, row {i}: it has {length} ids")


def too_many_rows(draft: Draft, chooser: random.Random) -> tuple[Request, Answer]:
    """More rows than max_batch_size; a model without batching takes no matrix at all."""
    rows = [Row((300, 50, 2), (9,))] * 257
    if draft.model.batched:
        return encode(replace(draft, rows=rows), chooser), _refused("batch-size must be <= 256")
    request = encode(replace(draft, rows=rows[:1], lengths=False), chooser)
    tensor = request.tensors[0]
    tensor.shape = [1, *tensor.shape]
    return request, _refused("shape")


@cache
def _request_parameters() -> list[dict[str, Any]]:
    from ct2_triton import _core

    table: list[dict[str, Any]] = _core.parameters()
    return [entry for entry in table if entry["scope"] == "request"]


def wrong_option_value(draft: Draft, chooser: random.Random) -> tuple[Request, Answer]:
    """An option outside its range, or of another type."""
    entry = chooser.choice(_request_parameters())
    wrong: list[Any] = ["", "nonsense", "1e", "{}", "\x00", "NaN", "1" * 400]
    if entry["type"] in {"integer", "number"}:
        wrong += [entry["min"] - 1, entry["max"] + 1, -(2**62), 2**63 - 1, str(10**30), True]
        wrong += [float("inf"), float("nan"), float("-inf"), 1e300]
    if entry["type"] == "integer":
        wrong += [1.5, "2.5"]
    if entry["type"] == "boolean":
        wrong += [2, -1, 0.5, "yes"]
    if entry["type"].startswith("list"):
        wrong = ["", "[", "{}", "[[[1]]]", "[null]", "[1.5]", "[-1]", f"[{VOCABULARY}]", True, 1.0]
        wrong += ["[" * 1000, '["no such token"]', '[["no such token"]]', '{"a": [1]}']
    draft.parameters[entry["name"]] = value = chooser.choice(wrong)
    if isinstance(value, float) and entry["type"] == "number" and value != value:
        draft.parameters[entry["name"]] = value
    return encode(draft, chooser), _refused(re.escape(entry["name"]))


def unknown_option(draft: Draft, chooser: random.Random) -> tuple[Request, Answer]:
    """A name that is no option, or one that only the operator may set."""
    from ct2_triton import _core

    names = ["beam_sise", "nonsense", "beam_size ", "BEAM_SIZE", "ж", "x" * 3000, "a\nb"]
    names += [entry["name"] for entry in _core.parameters() if entry["scope"] == "model"]
    name = chooser.choice(names)
    draft.parameters[name] = chooser.choice((1, "1", True, 0.5))
    return encode(draft, chooser), _refused("parameter")


def bad_combination(draft: Draft, chooser: random.Random) -> tuple[Request, Answer]:
    """Options that CTranslate2 refuses, or dies of."""
    options, named = chooser.choice(_COMBINATIONS)
    draft.parameters.clear()
    draft.parameters.update(options)
    return encode(_with_rows(draft), chooser), _refused(named)


_COMBINATIONS: list[tuple[dict[str, Any], str]] = [
    ({"num_hypotheses": 3, "beam_size": 2}, "num_hypotheses 3 is more"),
    ({"num_hypotheses": 33, "beam_size": 1, "sampling_topk": 5}, "max_num_hypotheses"),
    ({"beam_size": 33}, "max_beam_size"),
    ({"max_decoding_length": 4097}, "decoding_length_limit"),
    ({"min_decoding_length": 21, "max_decoding_length": 20}, "min_decoding_length"),
    ({"coverage_penalty": 0.2, "beam_size": 1}, "coverage_penalty"),
    ({"beam_size": 4, "sampling_topk": 5}, "sampling_topk"),
    ({"beam_size": 1, "sampling_topk": VOCABULARY + 1}, "sampling_topk"),
    ({"return_alternatives": True, "min_alternative_expansion_prob": 0.5}, "min_alternative"),
    ({"return_alternatives": True, "prefix_bias_beta": 0.5}, "prefix_bias_beta"),
    ({"return_alternatives": True, "draft_bias": 0.5}, "draft_bias"),
    ({"prefix_bias_beta": 0.5, "draft_bias": 0.5}, "draft_bias"),
    ({"sampling_temperature": 0.001}, "sampling_temperature"),
    ({"end_token": f"[{VOCABULARY}]", "min_decoding_length": 2}, "end_token"),
]


def wrong_type(draft: Draft, chooser: random.Random) -> tuple[Request, Answer]:
    """A tensor of another type than the model declares."""
    request = encode(_with_rows(draft), chooser)
    tensor = chooser.choice(request.tensors)
    others = [
        t for t in ("INT32", "INT64", "UINT8", "FP32", "FP64", "BOOL") if t != tensor.datatype
    ]
    tensor.datatype = chooser.choice(others)
    numpy_types = {"FP32": "float32", "FP64": "float64", "BOOL": "bool"}
    tensor.data = np.ones(
        tensor.data.shape, numpy_types.get(tensor.datatype, tensor.datatype.lower())
    )
    # Typed contents exist for the declared type only; half raw, half typed is refused first.
    return request, _refused("data-type|contents field")


def wrong_rank(draft: Draft, chooser: random.Random) -> tuple[Request, Answer]:
    """A dimension too many, or one too few."""
    request = encode(_with_rows(draft), chooser)
    tensor = chooser.choice(request.tensors)
    if chooser.random() < 0.5:
        tensor.shape = [*tensor.shape, 1]
    elif draft.model.batched:
        tensor.shape = [int(np.prod(tensor.shape))]
    else:
        tensor.shape = [1, 1, *tensor.shape]
    return request, _refused("shape|batch.size|dimension")


def other_row_count(draft: Draft, chooser: random.Random) -> tuple[Request, Answer]:
    """One tensor has a row more than the others."""
    if not draft.model.batched:
        return unknown_input(draft, chooser)
    draft = replace(_with_rows(draft), lengths=False)
    longer = [*draft.rows, draft.rows[0]]
    request = encode(draft, chooser)
    prefix = np.full((len(longer), 1), 9, draft.model.id_type.lower())
    tensors = [tensor for tensor in request.tensors if tensor.name == "INPUT_IDS"]
    tensors.append(Tensor("TARGET_PREFIX", draft.model.id_type, list(prefix.shape), prefix))
    chooser.shuffle(tensors)
    return replace(request, tensors=tensors), _refused("batch size does not match")


def lengths_that_lie(draft: Draft, chooser: random.Random) -> tuple[Request, Answer]:
    """A length that is negative, or beyond its row."""
    if not draft.model.lengths:
        return unknown_input(draft, chooser)
    draft = replace(_with_rows(draft), lengths=True)
    request = encode(draft, chooser)
    names = [t.name for t in request.tensors if t.name.endswith("_LENGTHS")]
    name = chooser.choice(names)
    (tensor,) = [t for t in request.tensors if t.name == name]
    row = chooser.randrange(len(draft.rows))
    tensor.data[row, 0] = wrong = chooser.choice((-1, -(2**31), 2**31 - 1, 5000))
    return request, _refused(f"{name}, row {row}: length {wrong} does not fit")


def missing_input(draft: Draft, chooser: random.Random) -> tuple[Request, Answer]:
    """A required tensor is not there."""
    request = encode(draft, chooser)
    wanted = ["INPUT_IDS", "TARGET_PREFIX"] if draft.model.prefix_required else ["INPUT_IDS"]
    name = chooser.choice(wanted)
    request.tensors = [tensor for tensor in request.tensors if tensor.name != name]
    if not request.tensors:
        other = np.array([[9]], draft.model.id_type.lower())
        shape = [1, 1] if draft.model.batched else [1]
        request.tensors = [Tensor("TARGET_PREFIX", draft.model.id_type, shape, other)]
    return request, _refused(name + "|expected .* inputs")


def unknown_input(draft: Draft, chooser: random.Random) -> tuple[Request, Answer]:
    """A tensor too many."""
    request = encode(draft, chooser)
    name = chooser.choice(("SOURCE", "input_ids", "OUTPUT_IDS", "ж"))
    extra = np.ones((max(1, len(draft.rows)), 1), np.int32)
    request.tensors.append(Tensor(name, "INT32", list(extra.shape), extra))
    return request, _refused("input")


def unknown_output(draft: Draft, chooser: random.Random) -> tuple[Request, Answer]:
    """An output that the model does not declare."""
    name = chooser.choice(("LOGITS", "output_ids", "INPUT_IDS"))
    outputs = [*(draft.outputs or [draft.model.outputs[0]]), name]
    chooser.shuffle(outputs)
    return encode(replace(draft, outputs=outputs), chooser), _refused(f"'{name}'")


def unknown_model(draft: Draft, chooser: random.Random) -> tuple[Request, Answer]:
    """A model, or a version, that is not served."""
    request = encode(draft, chooser)
    if chooser.random() < 0.5:
        request.version = chooser.choice(("2", "99"))
    else:
        request.model = chooser.choice(("nllb", "Full", "full2"))
    return request, Answer("NOT_FOUND", "unknown model")


MISTAKES: list[Mistake] = [
    wrong_source_id,
    wrong_prefix_id,
    bad_draft,
    bias_without_draft,
    long_row,
    too_many_rows,
    wrong_option_value,
    unknown_option,
    bad_combination,
    wrong_type,
    wrong_rank,
    other_row_count,
    lengths_that_lie,
    missing_input,
    unknown_input,
    unknown_output,
    unknown_model,
]
