# SPDX-License-Identifier: Apache-2.0
"""The grammar of the demo model: complete, right in what a machine can check, and split."""

from __future__ import annotations

import random
import statistics
from pathlib import Path
from typing import Any

import pytest
import yaml
from babel import Locale

from train_demo.corpus import (
    HELD_OUT_SHARE,
    held_out_sentences,
    is_held_out,
    training_sentences,
)
from train_demo.grammar import Grammar, check_samples, read_grammar
from train_demo.kinds import GrammarError, number_kind
from train_demo.languages import CLDR, LANGUAGES

ROOT = Path(__file__).resolve().parents[2]
COMMENTARY = ROOT / "tools" / "commentary.txt"
COMMENTARY_SEED = 2  # python demo_model/train_demo sample --held-out --count 240 --seed 2


@pytest.fixture(scope="module")
def grammar() -> Grammar:
    return read_grammar()


def test_its_size_and_its_lengths(grammar: Grammar) -> None:
    assert len(grammar.templates) >= 150
    assert set(grammar.domains) == {
        "cycling",
        "departures",
        "football",
        "keynote",
        "studio",
        "traffic",
        "weather",
    }
    rng = random.Random(0)
    words = [len(t.draw(rng).texts["eng"].split()) for t in grammar.templates for _ in range(20)]
    assert 10 <= statistics.median(words) <= 14
    assert sum(length > 30 for length in words) > 0.05 * len(words)


def test_no_sample_has_a_mistake_that_a_machine_sees(grammar: Grammar) -> None:
    assert check_samples(grammar, 60) == []


@pytest.mark.parametrize(
    ("kind", "table"),
    [("country", "territories"), ("language", "languages"), ("month", "months")],
)
def test_names_are_those_of_cldr(grammar: Grammar, kind: str, table: str) -> None:
    for language in LANGUAGES:
        locale = Locale.parse(CLDR[language])
        if table == "months":
            known = list(locale.months["format"]["wide"].values())
        else:
            known = list(getattr(locale, table).values())
        names = [value.forms[language]["nom"] for value in grammar.kinds[kind].values]
        known = [name.replace("\u2019", "'").lower() for name in known]
        unknown = [n for n in names if not any(n.lower().endswith(name) for name in known)]
        inflected = ["die Vereinigten Staaten", "das Vereinigte Königreich"]
        assert set(unknown) <= set(inflected), language


NUMBERS = """
int 4404..4404   | 4,404  | 4.404   | 4 404   | 4404    | 4.404   | 4404    | 4.404
int 14404..14404 | 14,404 | 14.404  | 14 404  | 14.404  | 14.404  | 14 404  | 14.404
percent 40..40   | 40%    | 40 %    | 40 %    | 40 %    | 40%     | 40%     | 40%
money 1199..1199 | €1,199 | 1.199 € | 1 199 € | 1199 €  | 1.199 € | 1199 €  | € 1.199
score 2..2       | 2-2    | 2:2     | 2-2     | 2-2     | 2-2     | 2-2     | 2-2
"""


@pytest.mark.parametrize("line", NUMBERS.strip().splitlines())
def test_numbers_are_written_as_each_language_does(line: str) -> None:
    kind, *expected = (cell.strip() for cell in line.split("|"))
    made = number_kind(kind)
    assert made is not None
    forms = made.draw(random.Random(0)).forms
    assert [forms[language]["nom"] for language in LANGUAGES] == expected


def test_training_never_sees_a_held_out_combination(grammar: Grammar) -> None:
    trained = {(s.template, s.key) for s in training_sentences(grammar, 6000, seed=1)}
    trained_texts = {s.texts["eng"] for s in training_sentences(grammar, 6000, seed=1)}
    held_out = held_out_sentences(grammar, 1000, seed=1)
    assert len(held_out) == 1000
    assert not {(s.template, s.key) for s in held_out} & trained
    assert not {s.texts["eng"] for s in held_out} & trained_texts
    assert {s.template for s in held_out} == {t.id for t in grammar.templates}


def test_about_a_tenth_is_held_out_whatever_the_seed(grammar: Grammar) -> None:
    rng = random.Random(3)
    drawn = [t.draw(rng) for t in grammar.templates for _ in range(20)]
    share = sum(map(is_held_out, drawn)) / len(drawn)
    assert abs(share - HELD_OUT_SHARE) < 0.03


def test_the_commentary_of_the_demo_is_held_out(grammar: Grammar) -> None:
    lines = COMMENTARY.read_text(encoding="utf-8").splitlines()
    expected = held_out_sentences(grammar, len(lines), COMMENTARY_SEED)
    assert len(set(lines)) == len(lines) >= 200
    assert lines == [sentence.texts["eng"] for sentence in expected]


def _entry(**changes: Any) -> dict[str, Any]:
    texts = dict.fromkeys(LANGUAGES, "All is well in {place.in} at {time}.")
    return {"id": "one", "slots": {"place": "place", "time": "time"}, **texts, **changes}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (_entry(slots={"place": "planet", "time": "time"}), "one: no kind is called 'planet'"),
        (_entry(deu="Alles gut {place.in}."), r"one, deu: uses \['place'\], slots are"),
        (_entry(deu="Um {time} in {place.dat}."), "one, deu: place = Bonn has no 'dat'"),
        (_entry(deu="Um {time} {place?m:x}."), "one, deu: place = Bonn has no 'agr'"),
        (_entry(deu="Um {time} {place.in}}."), "one, deu: a brace that is no slot"),
        (_entry(deu="Um {time} {place?m}."), "one, deu: a choice without a colon"),
        (_entry(slots={"place": "place", "time": "int 5"}), r"int 5: expected A\.\.B"),
        (_entry(slots={"place": "place", "time": "unit"}), r"unit: expected A\.\.B"),
        (_entry(slots={"place": "place", "time": "place"}), "more slots of the kind 'place'"),
        ({"id": "one", "slots": {}, "eng": "Hello."}, "one: unknown .* missing .*deu"),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path: Path, entry: dict[str, Any], said: str) -> None:
    place = {"all": {"nom": "Bonn", "in": "in Bonn"}}
    (tmp_path / "shared.yaml").write_text(yaml.safe_dump({"values": {"place": [place]}}))
    (tmp_path / "domain.yaml").write_text(yaml.safe_dump({"templates": [entry]}))
    with pytest.raises(GrammarError, match=said):
        read_grammar(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Alles ist gut…", "NFKC"),
        ("alles ist gut.", "begins or ends oddly"),
        ("Alles  ist gut.", "has '  '"),
    ],
)
def test_a_text_that_reads_oddly_is_found(tmp_path: Path, text: str, said: str) -> None:
    entry = {"id": "one", "slots": {"n": "int 1..30"}, **dict.fromkeys(LANGUAGES, "All well, {n}.")}
    entry["deu"] = f"{text} {{n}}."
    (tmp_path / "shared.yaml").write_text("values: {}")
    (tmp_path / "domain.yaml").write_text(yaml.safe_dump({"templates": [entry]}))
    found = check_samples(read_grammar(tmp_path), 2)
    assert any(said in line for line in found), found
