# SPDX-License-Identifier: Apache-2.0
"""Every decoding option, through the server, against CTranslate2 itself: equal ids at float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ct2_triton import _core
from server import configs
from server.conftest import LoadModel
from server.helpers import Connection, Ids, Reference, sentences, tensor

pytestmark = pytest.mark.server

MODEL = "nllb"
LIMIT = {"max_decoding_length": 24}
GREEDY = {"beam_size": 1}
ENDS = list(range(4, 1400, 60))

# Options as CTranslate2 takes them; lists go over the wire as JSON.
OPTIONS: list[dict[str, Any]] = [
    {},
    GREEDY,
    {"beam_size": 5},
    {"beam_size": 2, "patience": 2.5, "end_token": ENDS},
    {"beam_size": 4, "length_penalty": 0.0, "end_token": ENDS},
    {"beam_size": 4, "length_penalty": 2.0, "end_token": ENDS},
    {"beam_size": 4, "coverage_penalty": 0.5},
    {"repetition_penalty": 1.8},
    {**GREEDY, "repetition_penalty": 1.8},
    {**GREEDY, "no_repeat_ngram_size": 1},
    {"no_repeat_ngram_size": 3},
    {"disable_unk": True},
    {**GREEDY, "end_token": ENDS},
    {**GREEDY, "end_token": ENDS, "return_end_token": True},
    {"end_token": ENDS, "return_end_token": True},
    {"prefix_bias_beta": 0.001},
    {"beam_size": 1, "prefix_bias_beta": 0.001},
    {"max_decoding_length": 3},
    {"end_token": ENDS, "min_decoding_length": 12},
    {**GREEDY, "end_token": ENDS, "min_decoding_length": 12},
    {"min_decoding_length": 0, "end_token": ENDS},
    {"beam_size": 4, "num_hypotheses": 4},
    {"num_hypotheses": 3, "return_alternatives": True},
    {**GREEDY, "num_hypotheses": 5, "return_alternatives": True},
    {"replace_unknowns": True},
    {"use_vmap": True},
    {**GREEDY, "sampling_topk": 10, "sampling_temperature": 0.0},
    {"return_scores": True},
]


def rows_with_long_prefixes(reference: Reference, count: int) -> list[tuple[Ids, Ids]]:
    """Prefixes that no model would choose, so that forcing and biasing them differ."""
    return [(row, [*prefix, 44, 571]) for row, prefix in sentences(reference, count)]


def on_the_wire(options: dict[str, Any]) -> dict[str, Any]:
    return {name: str(v) if isinstance(v, list) else v for name, v in options.items()}


def hypotheses_of(answer: dict[str, Any]) -> list[Ids]:
    lengths = answer["HYPOTHESIS_LENGTHS"][0]
    rows = answer["HYPOTHESES"][0]
    return [ids[:length].tolist() for ids, length in zip(rows, lengths, strict=True)]


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_as_request_parameters(
    connection: Connection, reference: Reference, options: dict[str, Any]
) -> None:
    options = {**LIMIT, **options}
    for row, prefix in rows_with_long_prefixes(reference, 6):
        answer = connection.infer(MODEL, [row], [prefix], outputs=None, **on_the_wire(options))
        expected = reference.run(row, prefix, **{**options, "return_scores": True})
        ids = [[reference.id(token) for token in h] for h in expected.hypotheses]
        assert hypotheses_of(answer) == ids
        np.testing.assert_allclose(answer["SCORES"][0], expected.scores, rtol=1e-4)


@pytest.mark.parametrize("options", [o for o in OPTIONS if o], ids=repr)
def test_as_defaults_of_the_model(
    load: LoadModel, connection: Connection, reference: Reference, options: dict[str, Any]
) -> None:
    options = {**LIMIT, **options}
    model = load(configs.plain(**options))
    for row, prefix in rows_with_long_prefixes(reference, 3):
        expected = reference.translate(row, prefix, **options)
        assert connection.translate(model, row, prefix) == expected


def test_the_options_make_a_difference(reference: Reference) -> None:
    """Parity would say little if most options left these sentences alone."""
    rows = rows_with_long_prefixes(reference, 6)
    plain = [reference.hypotheses(*row, **LIMIT) for row in rows]
    idle = [
        options
        for options in OPTIONS
        if [reference.hypotheses(*row, **{**LIMIT, **options}) for row in rows] == plain
    ]
    # No <unk> comes up, the model has no vocabulary map, and scores change no ids.
    named = {name for options in idle for name in options}
    assert named <= {"disable_unk", "replace_unknowns", "use_vmap", "return_scores"}


def test_suppressed_sequences_by_id_and_by_token(
    connection: Connection, reference: Reference
) -> None:
    row, prefix = sentences(reference, 1)[0]
    for options in (GREEDY, {"beam_size": 3}):
        free = reference.translate(row, prefix, **LIMIT, **options)
        banned = [[free[3]], [free[5], free[6]]]
        tokens = [reference.tokens(sequence) for sequence in banned]
        expected = reference.translate(row, prefix, **LIMIT, **options, suppress_sequences=tokens)
        assert expected != free
        quoted = str(tokens).replace("'", '"')
        for written in (str(banned), quoted):
            got = connection.translate(
                MODEL, row, prefix, **LIMIT, **options, suppress_sequences=written
            )
            assert got == expected


def test_end_token_by_token(connection: Connection, reference: Reference) -> None:
    row, prefix = sentences(reference, 1)[0]
    free = reference.translate(row, prefix, **LIMIT, **GREEDY)
    token = reference.vocabulary[free[6]]
    expected = reference.translate(row, prefix, **LIMIT, **GREEDY, end_token=[free[6]])
    got = connection.translate(MODEL, row, prefix, **LIMIT, **GREEDY, end_token=f'["{token}"]')
    assert got == expected != free


def test_a_request_overrides_the_model(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    model = load(configs.plain(beam_size=4, max_decoding_length=5, repetition_penalty=1.5))
    row, prefix = sentences(reference, 1)[0]
    expected = reference.translate(
        row, prefix, beam_size=1, max_decoding_length=9, repetition_penalty=1.5
    )
    assert connection.translate(model, row, prefix, beam_size=1, max_decoding_length=9) == expected
    unchanged = reference.translate(
        row, prefix, beam_size=4, max_decoding_length=5, repetition_penalty=1.5
    )
    assert connection.translate(model, row, prefix) == unchanged


def test_values_may_come_as_strings(connection: Connection, reference: Reference) -> None:
    row, prefix = sentences(reference, 1)[0]
    options = {"beam_size": "3", "length_penalty": "0.5", "return_scores": "true"}
    expected = reference.translate(row, prefix, **LIMIT, beam_size=3, length_penalty=0.5)
    assert connection.translate(MODEL, row, prefix, **LIMIT, **options) == expected


def test_a_seed_repeats_what_was_drawn(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    """Whatever else is decoded; where calls decode, a seed is refused."""
    row, prefix = sentences(reference, 1)[0]
    drawn = {"beam_size": 1, "sampling_topk": 0, "sampling_temperature": 3.0, "sampling_seed": 5}
    expected = connection.translate(MODEL, row, prefix, **LIMIT, **drawn)
    rows = [[*row[-2::-1], row[-1]], *[row] * 5]
    together = connection.infer(MODEL, rows, [prefix] * 6, **LIMIT, **drawn)["OUTPUT_IDS"]
    assert [ids[: len(expected)] for ids in together.tolist()[1:]] == [expected] * 5

    calls = load(configs.plain(**LIMIT, decoding="calls"))
    assert "sampling_seed 5 needs a decode loop" in connection.refusal(
        calls, [row], [prefix], **drawn
    )
    assert connection.translate(calls, row, prefix) == reference.translate(row, prefix, **LIMIT)


def test_parameters_an_operator_allows_are_ignored(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    model = load(configs.plain(max_decoding_length=6, allowed_parameters=["x_request_id", "b3_*"]))
    row, prefix = sentences(reference, 1)[0]
    expected = reference.translate(row, prefix, max_decoding_length=6)
    allowed = {"x_request_id": "7", "X_Request_ID": "8", "b3_trace": "9", "b3_": True}
    assert connection.translate(model, row, prefix, **allowed) == expected
    assert "x_other" in connection.refusal(model, [row], [prefix], x_other="1")


def test_options_of_triton_itself_pass(connection: Connection, reference: Reference) -> None:
    row, prefix = sentences(reference, 1)[0]
    expected = reference.translate(row, prefix, **LIMIT)
    result = connection.raw.infer(
        MODEL,
        [tensor("INPUT_IDS", [row]), tensor("TARGET_PREFIX", [prefix])],
        priority=0,
        timeout=60_000_000,
        request_id="x1",
        sequence_id=7,
        sequence_start=True,
        sequence_end=True,
        parameters=LIMIT,
    )
    assert result.as_numpy("OUTPUT_IDS").tolist() == [expected]


def test_the_table_of_this_file_is_complete() -> None:
    """Each parameter that a request may set is tried here or in the tests of its own subject."""
    elsewhere = {
        "max_decoding_length_multiple",  # test_batching
        "truncate_input",  # test_unusual_inputs
        "suppress_sequences",
        "sampling_topk",  # core/test_loop_sampling
        "sampling_topp",  # the same
        "return_alignments",  # test_alignments
        "quality",  # test_quality
        "on_doubt",  # test_on_doubt
        "sampling_seed",  # test_a_seed_repeats_what_was_drawn
        "min_alternative_expansion_prob",  # must be 0: test_hostile_options
    }
    tried = {name for options in OPTIONS for name in options} | elsewhere
    settable = {p["name"] for p in _core.parameters() if p["scope"] == "request"}
    assert settable <= tried
    # test_draft_bias, test_supersede, test_text_model, test_text_stream, test_deadlines
    assert {p["name"] for p in _core.parameters() if p["scope"] == "request only"} == {
        "draft_bias", "supersede_key", "split", "stream", "timeout",
    }  # fmt: skip
