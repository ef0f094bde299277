# SPDX-License-Identifier: Apache-2.0
"""What is translated: sentences in the package, other text, rows of random ids."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from ct2_triton.bench.errors import BenchError
from ct2_triton.bench.setup import Setup
from ct2_triton.bench.workload import SENTENCES, random_workload, text_workload
from ct2_triton.client import Tokenizer
from ct2_triton.errors import UnknownLanguageError
from train_demo.corpus import held_out_sentences
from train_demo.grammar import read_grammar

TARGETS = ("de", "fr", "it")
SEED = 11  # python demo_model/train_demo sample --held-out --count 2000 --seed 11


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("bench")
    return Tokenizer(Setup("demo", folder).prepared("int8").tokenizer_folder)


def test_the_sentences_are_those_that_the_grammar_gives() -> None:
    drawn = held_out_sentences(read_grammar(), 2000, SEED)
    expected = [sentence.texts["eng"] for sentence in drawn]
    assert SENTENCES.read_text(encoding="utf-8").splitlines() == expected
    assert len(set(expected)) == 2000


def test_a_sentence_has_a_row_for_each_language(tokenizer: Tokenizer) -> None:
    setup = Setup("demo", Path("unused"))
    lines = ["A ticket to Oslo.", "", "A ticket to Rome.", "A ticket to Oslo."]
    workload = text_workload(lines, "text", setup, tokenizer, "en", TARGETS)
    assert workload.targets == ("deu_Latn", "fra_Latn", "ita_Latn")
    assert len(workload.sentences) == 2  # no blank one, none twice
    first = workload.sentences[0]
    assert first.words == 4
    assert len({row.input_ids for row in first.rows}) == 1
    targets = [tokenizer.targets(code)[0] for code in TARGETS]
    prefixes = [tuple(tokenizer.rules.target_prefix(target)) for target in targets]
    assert [row.target_prefix for row in first.rows] == prefixes
    assert len(set(prefixes)) == 3
    assert tokenizer.decode(first.rows[0].input_ids[1:-1]) == "A ticket to Oslo."


def test_rows_are_spread_over_the_models(tokenizer: Tokenizer) -> None:
    setup = Setup("demo", Path("unused"), models=("a", "b", "c", "d"))
    one = text_workload(["A ticket."], "text", setup, tokenizer, "en", ["de"]).sentences[0]
    assert [row.model for row in one.rows] == ["a", "b", "c", "d"]
    two = text_workload(["A ticket."], "text", setup, tokenizer, "en", ["de", "fr"]).sentences[0]
    assert [row.target_prefix for row in two.rows[:2]] == [
        row.target_prefix for row in two.rows[2:]
    ]
    assert two.rows[0].target_prefix != two.rows[1].target_prefix


def test_random_rows_have_the_lengths_of_sentences(tokenizer: Tokenizer) -> None:
    setup = Setup("demo", Path("unused"))
    workload = random_workload(2000, 5, setup, tokenizer, "en", TARGETS)
    rows = [sentence.rows[0].input_ids for sentence in workload.sentences]
    lengths = [len(row) - 2 for row in rows]  # without language and end
    assert (min(lengths), max(lengths)) == (3, 80)
    assert 17 <= statistics.median(lengths) <= 19
    assert len(set(rows)) == 2000
    rules = tokenizer.rules
    used = {i for row in rows for i in row[1:-1]}
    assert not used & {*rules.special_ids, *rules.end_ids, rules.unk_id, rules.pad_id}
    assert max(used) < rules.tokenizer_size
    assert random_workload(2000, 5, setup, tokenizer, "en", TARGETS) == workload
    assert random_workload(2000, 6, setup, tokenizer, "en", TARGETS) != workload


def test_text_without_a_sentence_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(BenchError, match=r"there is no sentence in empty\.txt"):
        text_workload(["", "  "], "empty.txt", Setup("demo", Path("x")), tokenizer, "en", ["de"])


def test_a_language_that_the_model_does_not_have_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(UnknownLanguageError, match="no target language 'kl'"):
        text_workload(["Hello."], "text", Setup("demo", Path("x")), tokenizer, "en", ["kl"])
