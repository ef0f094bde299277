# SPDX-License-Identifier: Apache-2.0
"""What the baselines compute, without a server: the answers of CTranslate2, in any mixture."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from ct2_triton.bench.models.engine import EngineTranslator
from ct2_triton.bench.models.hugging_face import HuggingFaceTranslator
from ct2_triton.bench.models.translator import Settings
from ct2_triton.bench.setup import Ids, Row, Setup
from ct2_triton.bench.workload import SENTENCES, text_workload
from ct2_triton.client import Tokenizer
from ct2_triton.prepare.verification import reference
from ct2_triton.prepare.verification.comparison import NEAR_TIE
from ct2_triton.prepare.verification.probes import Probe
from support.tiny import tiny_checkpoint, tiny_engine_model

LIMIT = 20
PREFIXES = {"nllb": [(1205,), (1210,), (1220,)], "m2m100": [(1203,), (1210,)], "marian": [()]}


def mixed_rows(prefixes: Sequence[Ids], end: int, count: int = 24) -> list[Row]:
    """Rows of 2 to 61 tokens, in no order, whose languages take turns."""
    chooser = random.Random(7)
    rows = []
    for i in range(count):
        length = min(60, max(1, round(chooser.lognormvariate(2.4, 0.8))))
        pieces = [chooser.randrange(4, 1100) for _ in range(length)]
        rows.append(Row((*pieces, end), prefixes[i % len(prefixes)]))
    return rows


def hugging_face(family: str = "nllb", **settings: int | str) -> HuggingFaceTranslator:
    checkpoint = str(tiny_checkpoint(family))
    return HuggingFaceTranslator(Settings(checkpoint, max_decoding_length=LIMIT, **settings))


def engine(family: str = "nllb", **settings: int | str) -> EngineTranslator:
    folder = str(tiny_engine_model(family))
    return EngineTranslator(Settings(folder, max_decoding_length=LIMIT, **settings))


@pytest.mark.parametrize("family", PREFIXES)
def test_generate_answers_mixed_rows_as_the_engine_does(family: str) -> None:
    """These weights never end an answer, so that the limits are compared as well."""
    config = json.loads((tiny_checkpoint(family) / "config.json").read_text())
    rows = mixed_rows(PREFIXES[family], config["eos_token_id"])
    answers = hugging_face(family, rows_per_call=7).translate(rows)
    assert answers == engine(family).translate(rows)
    assert {len(ids) for ids in answers} == {LIMIT}


def test_an_answer_does_not_depend_on_its_call() -> None:
    rows = mixed_rows([(1205,), (), (1210, 300)], 2)
    alone = hugging_face(rows_per_call=1).translate(rows)
    assert hugging_face(rows_per_call=64).translate(rows) == alone
    assert engine(rows_per_call=1).translate(rows) == alone
    assert engine(rows_per_call=5, workers=2).translate(rows) == alone


def test_nothing_is_translated_into_nothing() -> None:
    rows = [Row((), (1205,)), Row((300, 301, 2), (1205,)), Row(())]
    answers = hugging_face().translate(rows)
    assert answers == engine().translate(rows)
    assert [len(ids) for ids in answers] == [1, LIMIT, 0]


@pytest.mark.parametrize("load", [hugging_face, engine])
@pytest.mark.parametrize("row", [Row((4, 9999, 2)), Row((4, -1, 2)), Row((4, 2), (9999,))])
def test_an_unknown_id_is_refused(
    load: type[HuggingFaceTranslator | EngineTranslator], row: Row
) -> None:
    with pytest.raises(ValueError, match=r"id (9999|-1) is outside the vocabulary of \d+ tokens"):
        load().check(row)


def test_a_source_longer_than_the_positions_is_refused() -> None:
    translator = hugging_face()
    translator.check(Row((4,) * 512))
    with pytest.raises(ValueError, match="the source has 513 tokens; the model has 512 positions"):
        translator.check(Row((4,) * 513))


def test_int8_quantizes_every_linear_layer() -> None:
    import torch

    translator = hugging_face(precision="int8")
    modules = list(translator._model.modules())
    quantized = [module for module in modules if "quantized.dynamic" in type(module).__module__]
    assert not any(type(module) is torch.nn.Linear for module in modules)
    assert len(quantized) == 2 * 6 + 2 * 10 + 1  # encoder layers, decoder layers, projection
    rows = mixed_rows([(1205,)], 2, count=3)
    assert [len(ids) for ids in translator.translate(rows)] == [LIMIT] * 3


def test_sentences_that_end_by_themselves_are_answered_alike(tmp_path: Path) -> None:
    """The demo model, into four languages at once: rows of a call end at different steps."""
    setup = Setup("demo", tmp_path)
    prepared = setup.prepared("float32")
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()[:6]
    targets = ["deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn"]
    tokenizer = Tokenizer(prepared.tokenizer_folder)
    workload = text_workload(lines, "sentences.txt", setup, tokenizer, "eng_Latn", targets)
    rows = [row for sentence in workload.sentences for row in sentence.rows]
    answers = HuggingFaceTranslator(Settings(str(setup.checkpoint()))).translate(rows)
    truth = EngineTranslator(Settings(str(prepared.model_folder))).translate(rows)
    differing = [i for i in range(len(rows)) if answers[i] != truth[i]]
    assert len(differing) <= len(rows) / 10
    for i in differing:
        assert is_near_tie(setup.checkpoint(), rows[i], answers[i], truth[i])
    assert len({len(ids) for ids in truth}) > 5


def is_near_tie(checkpoint: Path, row: Row, one: list[int], other: list[int]) -> bool:
    """Whether two answers part where the checkpoint has two equally good tokens."""
    prefix = len(row.target_prefix)
    asked = reference.Row(Probe(str(row)), row.input_ids, row.target_prefix)
    end = 2
    answer = reference.ReferenceModel(checkpoint, ()).greedy(asked, 256 - prefix, [end])
    pairs = enumerate(zip([*one, end], [*other, end], strict=False))
    place = next(i for i, (here, there) in pairs if here != there)
    gaps = [answer.gap(place - prefix, [*ids, end][place]) for ids in (one, other)]
    largest = max(map(abs, answer.candidates[place - prefix].values()))
    return max(map(abs, gaps)) <= NEAR_TIE * largest
