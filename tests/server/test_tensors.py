# SPDX-License-Identifier: Apache-2.0
"""The tensors of the protocol: names, types, shapes and contents of inputs and outputs."""

from __future__ import annotations

import numpy as np
import pytest

from server import configs
from server.conftest import LoadFailure, LoadModel
from server.helpers import Connection, Reference, padded, sentences, tensor

pytestmark = pytest.mark.server

MODEL = "nllb"
ALL_OUTPUTS = {
    "OUTPUT_IDS", "OUTPUT_LENGTHS", "HYPOTHESES", "HYPOTHESIS_LENGTHS", "SCORES", "FINISH_REASON",
    "DRAFT_TOKENS_KEPT", "ALIGNMENTS",
}  # fmt: skip
BEAM = {"beam_size": 3, "num_hypotheses": 3, "max_decoding_length": 12}


@pytest.mark.parametrize("data_type", ["INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64"])
def test_every_integer_type_wide_enough(
    data_type: str, load: LoadModel, connection: Connection, reference: Reference
) -> None:
    model = load(configs.full(f"TYPE_{data_type}"))
    array_type = np.dtype(data_type.lower())
    for row, prefix in sentences(reference, 3):
        answer = connection.infer(
            model,
            np.array([row], array_type),
            np.array([prefix], array_type),
            outputs=["OUTPUT_IDS", "HYPOTHESES"],
            max_decoding_length=10,
        )
        expected = reference.translate(row, prefix, max_decoding_length=10)
        assert answer["OUTPUT_IDS"].dtype == array_type
        assert answer["OUTPUT_IDS"].tolist() == [expected]
        assert answer["HYPOTHESES"].tolist() == [[expected]]


@pytest.mark.parametrize("data_type", ["TYPE_INT8", "TYPE_UINT8"])
def test_a_type_too_narrow_for_the_vocabulary_fails_the_load(
    data_type: str, load_failure: LoadFailure
) -> None:
    assert f"INPUT_IDS: data_type {data_type} is too narrow" in load_failure(
        configs.full(data_type)
    )


def test_a_pad_id_too_large_for_the_type_fails_the_load(load_failure: LoadFailure) -> None:
    assert "pad_id" in load_failure(configs.full("TYPE_INT16", pad_id=40000))


def test_all_declared_outputs_where_none_is_named(
    connection: Connection, reference: Reference
) -> None:
    (row, prefix), *_ = sentences(reference, 1)
    answer = connection.infer(MODEL, [row], [prefix], outputs=None, max_decoding_length=5)
    assert set(answer) == ALL_OUTPUTS


def test_only_the_outputs_asked_for(connection: Connection, reference: Reference) -> None:
    (row, prefix), *_ = sentences(reference, 1)
    for name in sorted(ALL_OUTPUTS):
        answer = connection.infer(MODEL, [row], [prefix], outputs=[name], max_decoding_length=5)
        assert set(answer) == {name}


def test_only_the_outputs_declared(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    model = load(configs.plain(max_decoding_length=5))
    (row, prefix), *_ = sentences(reference, 1)
    assert set(connection.infer(model, [row], [prefix], outputs=None)) == {"OUTPUT_IDS"}
    assert "SCORES" in connection.refusal(model, [row], [prefix], outputs=["SCORES"])


def test_hypotheses_scores_and_lengths(connection: Connection, reference: Reference) -> None:
    rows = sentences(reference, 5)
    ends = list(range(4, 1400, 60))
    answer = connection.infer(
        MODEL,
        padded([row for row, _ in rows]),
        [prefix for _, prefix in rows],
        outputs=None,
        **BEAM,
        end_token=str(ends),
    )
    results = [
        reference.run(row, prefix, **BEAM, end_token=ends, return_scores=True)
        for row, prefix in rows
    ]
    expected = [[[reference.id(t) for t in h] for h in r.hypotheses] for r in results]
    lengths = [[len(h) for h in hypotheses] for hypotheses in expected]
    assert len({length for row in lengths for length in row}) > 2
    assert answer["HYPOTHESIS_LENGTHS"].tolist() == lengths
    longest = max(max(row) for row in lengths)
    filled = [[h + [1] * (longest - len(h)) for h in hypotheses] for hypotheses in expected]
    assert answer["HYPOTHESES"].tolist() == filled
    np.testing.assert_allclose(answer["SCORES"], [r.scores for r in results], rtol=1e-4)
    best = padded([hypotheses[0] for hypotheses in expected])
    assert answer["OUTPUT_IDS"].tolist() == best.tolist()
    assert answer["OUTPUT_LENGTHS"].tolist() == [[row[0]] for row in lengths]


def test_finish_reasons(connection: Connection, reference: Reference) -> None:
    (row, prefix), *_ = sentences(reference, 1)
    unlimited = reference.translate(row, prefix, beam_size=1, max_decoding_length=20)
    for options, reason, expected in [
        ({"max_decoding_length": 6}, b"length", unlimited[:6]),
        ({"end_token": f"[{unlimited[4]}]"}, b"stop", unlimited[: unlimited.index(unlimited[4])]),
    ]:
        answer = connection.infer(MODEL, [row], [prefix], outputs=None, beam_size=1, **options)
        assert answer["FINISH_REASON"].tolist() == [[reason]]
        assert answer["OUTPUT_IDS"].tolist() == [expected]


def test_outputs_are_padded_with_the_models_pad_id(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    """An id outside the vocabulary will do: Marian's <pad> is one."""
    model = load(configs.full(pad_id=70000))
    rows = [row for row, _ in sentences(reference, 2)]
    answer = connection.infer(model, padded(rows, 70000), max_decoding_length_multiple=1.0)
    expected = [reference.translate(row, beam_size=2, max_decoding_length=len(row)) for row in rows]
    assert len(expected[0]) != len(expected[1])
    assert answer["OUTPUT_IDS"].tolist() == padded(expected, 70000).tolist()


def test_inputs_are_found_by_name(connection: Connection, reference: Reference) -> None:
    rows = sentences(reference, 2)
    inputs = [
        tensor("PREFIX_LENGTHS", [[1], [1]]),
        tensor("TARGET_PREFIX", [[*prefix, 0] for _, prefix in rows]),
        tensor("INPUT_LENGTHS", [[len(row)] for row, _ in rows]),
        tensor("INPUT_IDS", padded([row for row, _ in rows])),
    ]
    for order in (inputs, inputs[::-1]):
        answer = connection.raw.infer(MODEL, order, parameters={"max_decoding_length": 9})
        expected = [reference.translate(*row, max_decoding_length=9) for row in rows]
        assert answer.as_numpy("OUTPUT_IDS").tolist() == expected


def test_prefixes_of_several_lengths_and_none(connection: Connection, reference: Reference) -> None:
    rows = [row for row, _ in sentences(reference, 4)]
    language = reference.id("deu_Latn")
    prefixes = [[], [language], [language, 44, 91], [language, 571]]
    expected = [
        reference.translate(row, prefix, max_decoding_length=9)
        for row, prefix in zip(rows, prefixes, strict=True)
    ]
    for more in ({}, {"PREFIX_LENGTHS": [[len(prefix)] for prefix in prefixes]}):
        answer = connection.infer(
            MODEL, padded(rows), padded(prefixes), more=more, max_decoding_length=9
        )
        assert answer["OUTPUT_IDS"].tolist() == expected
