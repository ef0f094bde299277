# SPDX-License-Identifier: Apache-2.0
"""Verdicts on translations: what raises each flag, what does not, and the statistics they need."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from ct2_triton import _core

FLAGS = [
    "repeats", "uncovered", "invented", "values", "copied", "language", "length", "unsure",
]  # fmt: skip
ALWAYS = {"repeats", "values", "copied"}
STATISTICS = {
    "version": 1,
    "languages": {
        "de": {
            "words": {"der": 0.03, "das": 0.02, "ist": 0.02, "in": 0.01},
            "length": [-0.4, 0.4],
            "least_score": -1.5,
        },
        "fr": {"words": {"le": 0.03, "est": 0.02, "de": 0.03, "in": 0.0005}},
    },
}
JUDGE = _core.Judge(json.dumps(STATISTICS))
SOURCE = "The train to the old harbour leaves in five minutes."
GERMAN = "Der Zug zum alten Hafen ist in fünf Minuten weg."


def flags(source: str, target: str, *args: Any, judge: Any = JUDGE) -> list[str]:
    found: list[str] = judge.judge(source, target, *args)["flags"]
    return found


def test_a_good_translation_has_no_flag() -> None:
    verdict = JUDGE.judge(SOURCE, GERMAN, "de", -0.2)
    assert verdict["flags"] == []
    assert verdict["not_computed"] == ["uncovered", "invented"]
    assert set(verdict["doubts"]) == set(FLAGS) - {"uncovered", "invented"}
    assert 0.5 < verdict["quality"] <= 1


@pytest.mark.parametrize(
    ("source", "target", "looped"),
    [
        ("Hello", "der der der der", False),
        ("Hello", "der der der der der", True),
        ("Hello", "ein Zug ein Zug ein Zug", True),
        ("Hello", "ein Zug ein Zug", False),
        ("Hello", "so ein schöner Tag war das heute hier " * 2, True),
        ("Hello", "Toooooooooor", True),
        ("Goooooooooal", "Toooooooooor", False),
        ("Go go go go go go", "Los los los los los los", False),
        ("Go go go", "Los los los los los los los los los los los los", True),
        ("one train one train one train one train", "ein Zug " * 4, False),
        ("快快", "快快快快快快快快", True),
    ],
)
def test_loops_that_the_source_does_not_explain(source: str, target: str, looped: bool) -> None:
    assert ("repeats" in flags(source, target)) == looped


@pytest.mark.parametrize(
    ("source", "target", "wrong"),
    [
        ("at 5:45 pm", "um 17.45 Uhr", False),
        ("at 05:45", "um 5 h 45", False),
        ("10,000 people in 2019", "10 000 Menschen im Jahr 2019", False),
        ("two goals", "2 Tore", False),
        ("2 goals", "zwei Tore", False),
        ("2 goals", "3 Tore", True),
        ("25 goals", "Tore", True),
        ("goals", "25 Tore", True),
        ("١٢٣ goals", "123 Tore", False),
        ("see https://a.example/b?c=1.", "siehe https://a.example/b?c=1!", False),
        ("see https://a.example/b?c=1.", "siehe https://a.example/b", True),
        ("mail me@a.example", "schreibe", True),
        ("Hi {name}", "Hallo {name}", False),
        ("Hi {name}", "Hallo {Name}", True),
        ("Hi %s", "Hallo", True),
        ("9" * 400, "9" * 400, False),
        ("9" * 400, "8" * 400, True),
    ],
)
def test_values_are_kept(source: str, target: str, wrong: bool) -> None:
    assert ("values" in flags(source, target)) == wrong


def test_small_numbers_count_where_the_statistics_say_so() -> None:
    strict = _core.Judge(json.dumps({"version": 1, "least_number": 0}))
    assert flags("2 goals", "Tore", judge=strict) == ["values"]
    assert flags("2 goals", "Tore") == []


@pytest.mark.parametrize(
    ("source", "target", "copied"),
    [
        (SOURCE, SOURCE, True),
        (SOURCE, SOURCE.lower().replace(".", ""), True),
        (SOURCE, GERMAN, False),
        ("Real Madrid, Ajax", "Real Madrid, Ajax", False),
        ("GOAL FOR THE GUESTS", "GOAL FOR THE GUESTS", True),
        ("The NATO, the UN, the EU", "Die NATO, die UN, die EU", False),
        ("see https://a.example/one/two/three", "siehe https://a.example/one/two/three", False),
    ],
)
def test_a_source_that_came_back(source: str, target: str, copied: bool) -> None:
    assert ("copied" in flags(source, target)) == copied


def test_words_that_the_target_has_too_are_not_copied() -> None:
    source, target = "Now live in das Haus in das!", "Nu live in das Haus in das!"
    assert flags(source, target) == ["copied"]
    assert flags(source, target, "de") == []


def test_another_language() -> None:
    french = "Le train de cinq heures est parti."
    assert flags(SOURCE, french, "de") == ["language"]
    assert flags(SOURCE, french, "fr") == []
    assert "language" in JUDGE.judge(SOURCE, french, "it")["not_computed"]
    one = {"version": 1, "languages": {"de": STATISTICS["languages"]["de"]}}  # type: ignore[index]
    assert "language" in _core.Judge(json.dumps(one)).judge(SOURCE, french, "de")["not_computed"]


def test_lengths_and_scores_outside_the_usual() -> None:
    assert flags(SOURCE, "Zug.", "de") == ["length"]
    assert flags(SOURCE, GERMAN + " Und vieles mehr, was niemand hören will.", "de") == ["length"]
    assert flags(SOURCE, GERMAN, "de", -1.6) == ["unsure"]
    assert flags(SOURCE, GERMAN, "de", math.nan) == ["unsure"]
    assert flags(SOURCE, GERMAN, "de", -math.inf) == ["unsure"]
    assert "unsure" in JUDGE.judge(SOURCE, GERMAN, "de")["not_computed"]
    assert _core.quality_length("ab cd", "ab  cd") == 0


@pytest.mark.parametrize("target", [GERMAN, SOURCE, "der " * 9, "Zug", "", "99", "\0", "\ud7ff"])
def test_the_quality_is_below_half_exactly_where_a_flag_is_raised(target: str) -> None:
    for judge in (JUDGE, _core.Judge()):
        verdict = judge.judge(SOURCE, target, "de", -0.1)
        assert (verdict["quality"] < 0.5) == bool(verdict["flags"])
        assert 0 <= verdict["quality"] <= 1
        missing = verdict["not_computed"]
        wanted = verdict["flags"] + ([{"not_computed": missing}] if missing else [])
        assert json.loads(verdict["json"]) == wanted


def test_without_statistics_three_flags_are_computed() -> None:
    assert set(_core.Judge().judge(SOURCE, GERMAN, "de", -9)["doubts"]) == ALWAYS


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, 'quality.json: version: the value "2" is not allowed; give 1'),
        ({"lengths": 1}, 'unknown key "lengths"; known are version, least_number, languages'),
        ({"least_number": -1}, 'least_number: the value "-1" is not allowed; give an integer'),
        ({"least_number": 1.5}, 'least_number: the value "1.5" is not allowed'),
        ({"languages": []}, 'languages: the value "[]" is not allowed; give an object'),
        ({"languages": {"de": 1}}, 'languages."de": the value "1" is not allowed'),
        ({"languages": {"de": {"score": 1}}}, "; known are words, length, least_score"),
        ({"languages": {"de": {"words": {"der": 2}}}}, "give a share above 0, at most 1"),
        ({"languages": {"de": {"words": {"der": 0}}}}, "give a share above 0, at most 1"),
        ({"languages": {"de": {"words": {"der": "x"}}}}, "give a share above 0, at most 1"),
        ({"languages": {"de": {"length": [0.5, -0.5]}}}, "the lower bound first"),
        ({"languages": {"de": {"length": [0.5]}}}, "two numbers from -20 to 20"),
        ({"languages": {"de": {"least_score": 1}}}, "give a number from -1000 to -0.001"),
        ({"languages": {"de": {"least_score": None}}}, 'least_score: the value "null"'),
        ({"languages": {"de": {"least_score": math.nan}}}, "quality.json: no JSON: "),
        ({"languages": {"de": {"least_score": -math.inf}}}, "quality.json: no JSON: "),
    ],
)
def test_statistics_that_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(_core.Error) as caught:
        _core.Judge(json.dumps({"version": 1, **change}))
    assert caught.value.code == "invalid_argument"
    assert said in str(caught.value)
    assert flags(SOURCE, GERMAN, "de", judge=_core.Judge(json.dumps(STATISTICS))) == []


@pytest.mark.parametrize("text", ["[]", "{", "3", "{}"])
def test_statistics_that_are_no_object_of_version_1(text: str) -> None:
    with pytest.raises(_core.Error, match=r"^quality\.json: "):
        _core.Judge(text)


def test_words() -> None:
    assert _core.quality_words("L'eau, 東京 5a!") == ["l", "eau", "東", "京", "5a"]
    assert _core.quality_words("") == []


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["eng_Latn", "▁The", "▁go", "al", ".", "</s>"], " The goal."),
        (["__de__", "▁Tor", "<0xE2>", "<0x82>", "<0xAC>", "<pad>"], " Tor€"),
        ([">>deu<<", "▁a"], " a"),
        (["en_XX", "▁a", "de_DE"], " a"),
        (["Fahr@@", "karten@@", "schalter", "zu"], "Fahrkartenschalter zu"),
        (["Hello", "￭,", "you", "￭", "!"], "Hello, you!"),
        (["<0xZZ>", "<unk>", "a"], "a"),
        ([], ""),
    ],
)
def test_text_of_tokens(tokens: list[str], text: str) -> None:
    assert _core.token_text(tokens) == text


def test_the_metric_has_each_flag_in_its_order() -> None:
    [metric] = [one for one in _core.metrics() if one["name"] == "ct2_quality_flags_total"]
    assert metric["label_values"] == FLAGS
