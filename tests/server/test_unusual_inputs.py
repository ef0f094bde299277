# SPDX-License-Identifier: Apache-2.0
"""What each unusual input gives: the second table of docs/protocol.md, row by row."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from server import configs
from server.conftest import LoadModel
from server.helpers import END, Connection, Reference, padded, sentences

pytestmark = pytest.mark.server

MODEL = "nllb"
SHORT = {"max_decoding_length": 9}
EVERYTHING = {"outputs": None, **SHORT}


def test_a_request_of_no_rows(connection: Connection) -> None:
    for prefix in (None, padded([])):
        answer = connection.infer(MODEL, padded([]), prefix, **EVERYTHING)
        assert {name: array.shape for name, array in answer.items()} == {
            "OUTPUT_IDS": (0, 0),
            "OUTPUT_LENGTHS": (0, 1),
            "HYPOTHESES": (0, 0, 0),
            "HYPOTHESIS_LENGTHS": (0, 0),
            "SCORES": (0, 0),
            "FINISH_REASON": (0, 0),
            "DRAFT_TOKENS_KEPT": (0, 1),
            "ALIGNMENTS": (0, 0),
        }


def test_a_row_of_length_0(connection: Connection, reference: Reference) -> None:
    prefix = [reference.id("deu_Latn"), 44]
    answer = connection.infer(MODEL, padded([[]]), [prefix], **EVERYTHING)
    assert reference.translate([], prefix) == prefix
    assert answer["OUTPUT_IDS"].tolist() == [prefix]
    assert answer["FINISH_REASON"].tolist() == [[b"empty"]]


def test_a_row_of_only_the_end_token(connection: Connection, reference: Reference) -> None:
    prefix = [reference.id("deu_Latn")]
    answer = connection.infer(MODEL, [[END]], [prefix], **EVERYTHING)
    assert answer["OUTPUT_IDS"].tolist() == [reference.translate([END], prefix)] == [prefix]
    assert answer["FINISH_REASON"].tolist() == [[b"empty"]]


def test_a_row_of_only_special_tokens(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    """CTranslate2 itself would translate the language token of an empty text."""
    english, prefix = reference.id("eng_Latn"), [reference.id("deu_Latn")]
    model = load(configs.full(special_ids=[0, 1, END, 3, english]))
    for row in ([english, END], [END, english], [english], [1, END]):
        answer = connection.infer(model, [row], [prefix], **EVERYTHING)
        assert answer["OUTPUT_IDS"].tolist() == [prefix]
        assert answer["FINISH_REASON"].tolist() == [[b"empty"]]
    row = [english, 50, END]
    expected = reference.translate(row, prefix, **SHORT)
    assert connection.translate(model, row, prefix, **SHORT) == expected


def test_empty_rows_among_others(connection: Connection, reference: Reference) -> None:
    """CTranslate2 renumbers the rows that are left: the answers must not slip."""
    (a, prefix_a), (b, prefix_b) = sentences(reference, 2)
    rows, prefixes = [[], a, [], [END], b], [prefix_b, prefix_a, [], prefix_a, prefix_b]
    answer = connection.infer(
        MODEL,
        padded(rows),
        padded(prefixes),
        more={
            "INPUT_LENGTHS": [[len(row)] for row in rows],
            "PREFIX_LENGTHS": [[len(prefix)] for prefix in prefixes],
        },
        **EVERYTHING,
    )
    expected = [
        prefix_b,
        reference.translate(a, prefix_a, **SHORT),
        [],
        prefix_a,
        reference.translate(b, prefix_b, **SHORT),
    ]
    assert answer["OUTPUT_LENGTHS"].tolist() == [[len(row)] for row in expected]
    assert answer["OUTPUT_IDS"].tolist() == padded(expected).tolist()
    reasons = [reason for (reason,) in answer["FINISH_REASON"].tolist()]
    assert reasons == [b"empty", b"length", b"empty", b"empty", b"length"]


def test_a_row_above_max_input_length(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    model = load(configs.full(max_input_length=8))
    (row, prefix) = next(s for s in sentences(reference, 30) if len(s[0]) == 10)
    message = connection.refusal(model, [row], [prefix])
    assert "row 0: it has 10 ids, more than the 8 that max_input_length" in message
    answer = connection.infer(model, [row], [prefix], truncate_input=True, **EVERYTHING)
    expected = reference.run(row, prefix, max_input_length=8, **SHORT)
    assert answer["OUTPUT_IDS"].tolist() == [[reference.id(t) for t in expected.hypotheses[0]]]
    assert answer["FINISH_REASON"].tolist() == [[b"cut"]]


def test_a_row_beyond_the_models_positions(
    load: LoadModel, connection: Connection, reference: Reference
) -> None:
    """The tiny model has 512: CTranslate2 itself throws, and fails the whole call."""
    model = load(configs.full(max_input_length=0))
    (row, prefix) = sentences(reference, 1)[0]
    long_row = [row[0], *[50] * 511, END]
    message = connection.refusal(model, [long_row], [prefix])
    assert "it has 513 ids, more than the 512 that the positions of the model" in message
    answer = connection.infer(model, [long_row], [prefix], truncate_input=True, **EVERYTHING)
    assert answer["FINISH_REASON"].tolist() == [[b"cut"]]


def test_an_answer_ends_at_the_models_positions(
    connection: Connection, reference: Reference
) -> None:
    """A larger limit is cut to what the model can do."""
    (row, prefix) = sentences(reference, 1)[0]
    ids = connection.translate(MODEL, row, prefix, beam_size=1, max_decoding_length=4000)
    expected = reference.translate(row, prefix, beam_size=1, max_decoding_length=512)
    assert ids == expected
    assert len(ids) == 512


@pytest.fixture
def startless_model(nllb_engine_model: Path, tmp_path: Path) -> Path:
    """A model like mBART-25: the target prefix takes the place of the decoder's start token."""
    folder = tmp_path / "startless"
    shutil.copytree(nllb_engine_model, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "decoder_start_token": None}))
    return folder


def test_no_prefix_where_the_model_has_no_start_token(
    load: LoadModel, connection: Connection, startless_model: Path, reference: Reference
) -> None:
    model = load(configs.full(), engine_model=startless_model)
    (row, prefix) = sentences(reference, 1)[0]
    message = connection.refusal(model, [row, row], padded([prefix, []]))
    assert "TARGET_PREFIX, row 1: it is empty" in message
    assert "decoder start token" in connection.refusal(model, [row])
    expected = Reference(startless_model).translate(row, [END, *prefix], **SHORT)
    assert connection.translate(model, row, [END, *prefix], **SHORT) == expected


def test_a_malformed_row_fails_its_own_request_alone(
    connection: Connection, reference: Reference
) -> None:
    """The others of the same batch are answered: all are in flight at once."""
    rows = sentences(reference, 24)
    bad = {5, 11, 17}
    pending = [
        connection.start(MODEL, [[*row, -1] if i in bad else row], [prefix], **SHORT)
        for i, (row, prefix) in enumerate(rows)
    ]
    for i, (answer, (row, prefix)) in enumerate(zip(pending, rows, strict=True)):
        if i in bad:
            with pytest.raises(Exception, match="id -1 at position"):
                answer.get_result()
        else:
            expected = reference.translate(row, prefix, **SHORT)
            assert answer.get_result().as_numpy("OUTPUT_IDS").tolist() == [expected]


class TestWithoutBatchDimension:
    """max_batch_size 0: a tensor of rank 1 is one row, and so is the answer."""

    CONFIG = configs.full(batching="max_batch_size: 0\n")

    def test_one_row(self, load: LoadModel, connection: Connection, reference: Reference) -> None:
        model = load(self.CONFIG)
        options = {"beam_size": 2, "num_hypotheses": 2, **SHORT}
        for row, prefix in sentences(reference, 4):
            answer = connection.infer(model, row, prefix, outputs=None, **options)
            expected = reference.hypotheses(row, prefix, **options)
            assert answer["OUTPUT_IDS"].tolist() == expected[0]
            assert answer["OUTPUT_LENGTHS"].tolist() == [len(expected[0])]
            assert answer["HYPOTHESES"].tolist() == expected
            assert answer["HYPOTHESIS_LENGTHS"].tolist() == [len(ids) for ids in expected]
            assert answer["SCORES"].shape == (2,)
            assert answer["FINISH_REASON"].tolist() == [b"length", b"length"]

    def test_lengths_and_no_prefix(
        self, load: LoadModel, connection: Connection, reference: Reference
    ) -> None:
        model = load(self.CONFIG)
        (row, _) = sentences(reference, 1)[0]
        answer = connection.infer(model, [*row, 1, 1], more={"INPUT_LENGTHS": [len(row)]}, **SHORT)
        assert answer["OUTPUT_IDS"].tolist() == reference.translate(row, **SHORT)

    def test_an_empty_row(self, load: LoadModel, connection: Connection) -> None:
        model = load(self.CONFIG)
        answer = connection.infer(model, np.zeros(0, np.int32), [7, 8], **EVERYTHING)
        assert answer["OUTPUT_IDS"].tolist() == [7, 8]
        assert answer["FINISH_REASON"].tolist() == [b"empty"]
