# SPDX-License-Identifier: Apache-2.0
"""ALIGNMENTS on the wire: CTranslate2's attention says where each token comes from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from server import configs
from server.conftest import LoadFailure, LoadModel
from server.helpers import END, Connection, Ids, Reference, padded, sentences

pytestmark = pytest.mark.server

MODEL = "nllb"
OUTPUTS = ["OUTPUT_IDS", "OUTPUT_LENGTHS", "ALIGNMENTS"]
LIMIT: dict[str, Any] = {"max_decoding_length": 12}
ALIGNMENTS = configs.entry("output", "ALIGNMENTS", "TYPE_INT32", "[-1]")


def expected(reference: Reference, row: tuple[Ids, Ids], **options: Any) -> Ids:
    """-1 for the prefix, then the first position with the most attention."""
    result = reference.run(*row, return_attention=True, **options)
    forced = len(row[1])
    return [-1] * forced + [int(np.argmax(weights)) for weights in result.attention[0][forced:]]


def aligned(
    connection: Connection, row: tuple[Ids, Ids], model: str = MODEL, **options: Any
) -> Ids:
    source, prefix = row
    answer = connection.infer(model, [source], [prefix], outputs=OUTPUTS, **options)
    assert answer["ALIGNMENTS"].dtype == np.int32
    assert answer["ALIGNMENTS"].shape == answer["OUTPUT_IDS"].shape
    [positions] = answer["ALIGNMENTS"].tolist()
    return positions


@pytest.mark.parametrize(
    "options",
    [{"beam_size": 1}, {"beam_size": 4}, {"beam_size": 2, "return_end_token": True}],
    ids=str,
)
def test_in_loops_and_calls(
    options: dict[str, Any], load: LoadModel, connection: Connection, reference: Reference
) -> None:
    calls = load(configs.full(more=ALIGNMENTS, decoding="calls"))
    for row in sentences(reference, 3):
        truth = expected(reference, row, **LIMIT, **options)
        assert aligned(connection, row, **LIMIT, **options) == truth
        assert aligned(connection, row, calls, **LIMIT, **options) == truth


def test_rows_of_one_request_are_filled_up(connection: Connection, reference: Reference) -> None:
    rows = [*sentences(reference, 3), ([END], sentences(reference, 1)[0][1])]
    answer = connection.infer(
        MODEL,
        padded([source for source, _ in rows]),
        [prefix for _, prefix in rows],
        outputs=OUTPUTS,
        beam_size=1,
        **LIMIT,
    )
    assert answer["OUTPUT_LENGTHS"].reshape(-1).tolist()[-1] == 1  # nothing to translate
    for row, length, positions in zip(
        rows, answer["OUTPUT_LENGTHS"].reshape(-1), answer["ALIGNMENTS"].tolist(), strict=True
    ):
        truth = [-1] if row[0] == [END] else expected(reference, row, beam_size=1, **LIMIT)
        assert positions[:length] == truth
        assert set(positions[length:]) <= {-1}


def test_they_belong_to_the_best_hypothesis(connection: Connection, reference: Reference) -> None:
    row, *_ = sentences(reference, 1)
    options = {"beam_size": 3, **LIMIT}
    answer = connection.infer(MODEL, [row[0]], [row[1]], outputs=None, num_hypotheses=3, **options)
    assert answer["ALIGNMENTS"].tolist() == [expected(reference, row, **options)]


def test_a_search_that_is_left_to_calls(connection: Connection, reference: Reference) -> None:
    row, *_ = sentences(reference, 1)
    options = {"beam_size": 2, "coverage_penalty": 0.2, **LIMIT}
    assert aligned(connection, row, **options) == expected(reference, row, **options)


def test_other_heads(load: LoadModel, connection: Connection, reference: Reference) -> None:
    """They change positions, and no answer."""
    row, *_ = sentences(reference, 1)
    model = load(configs.full(more=ALIGNMENTS, alignment_layer=0))
    own = expected(reference, row, beam_size=1, **LIMIT)
    assert aligned(connection, row, model, beam_size=1, **LIMIT) != own
    assert connection.translate(model, *row, **LIMIT) == reference.translate(*row, **LIMIT)


def test_other_heads_are_a_default_like_any(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    """A request without parameters has the answer of one that names all of them."""
    defaults: dict[str, Any] = {"replace_unknowns": True, "return_alignments": True, **LIMIT}
    model = load(configs.full(more=ALIGNMENTS, alignment_layer=0, **defaults))
    for source, prefix in sentences(reference, 3):
        named = connection.infer(model, [source], [prefix], outputs=OUTPUTS, **defaults)
        answer = connection.infer(model, [source], [prefix], outputs=OUTPUTS)
        for output in OUTPUTS:
            assert answer[output].tolist() == named[output].tolist()


def test_what_cannot_be(
    load_failure: LoadFailure, load: LoadModel, connection: Connection, reference: Reference
) -> None:
    row, *_ = sentences(reference, 1)
    assert "return_alignments" in connection.refusal(
        MODEL, [row[0]], [row[1]], return_alignments="perhaps"
    )
    plain = load(configs.plain())
    with pytest.raises(Exception, match="ALIGNMENTS"):
        connection.infer(plain, [row[0]], [row[1]], outputs=["ALIGNMENTS"])
    assert "the decoder has no layer 9" in load_failure(configs.full(alignment_layer=9), "other")
    assert aligned(connection, row, beam_size=1, **LIMIT) == expected(
        reference, row, beam_size=1, **LIMIT
    )
