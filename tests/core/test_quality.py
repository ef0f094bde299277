# SPDX-License-Identifier: Apache-2.0
"""Verdicts on translations: what raises each flag, what does not, and the statistics they need."""

from __future__ import annotations

import json
import math
import re
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
            "from": {"en": {"length": [-0.4, 0.4], "least_score": -1.5}},
        },
        "fr": {"words": {"le": 0.03, "est": 0.02, "de": 0.03, "in": 0.0005}},
        "da": {"words": {"jeg": 0.03, "og": 0.02}, "from": {"nb": {"copied": 1.2}}},
        "es": {"words": {"la": 0.03, "de": 0.04, "los": 0.02, "real": 0.001}},
    },
}
JUDGE = _core.Judge(json.dumps(STATISTICS))
SOURCE = "The train to the old harbour leaves in five minutes."
GERMAN = "Der Zug zum alten Hafen ist in fünf Minuten weg."


def flags(source: str, target: str, *args: Any, judge: Any = JUDGE) -> list[str]:
    found: list[str] = judge.judge(source, target, *args)["flags"]
    return found


@pytest.mark.parametrize(
    ("one", "other", "better"),
    [
        ({"repeats": 0.2}, {"repeats": 2.0}, True),
        ({"repeats": 2.0}, {"repeats": 0.2}, False),
        ({"repeats": 2.0}, {"repeats": 2.0}, False),
        ({"repeats": 2.0}, {"repeats": 3.0}, True),
        ({"repeats": 9.0, "length": 0.1}, {"repeats": 2.0, "length": 2.0}, True),  # fewer flags
        ({"repeats": 0.1, "values": 2.0}, {"repeats": 3.0, "values": 0.0}, True),
        ({"repeats": 0.0}, {"repeats": 0.0, "unsure": 2.0}, False),  # only one has it
        ({"repeats": 0.0}, {"repeats": 2.0, "unsure": 2.0}, True),
        ({}, {}, False),
    ],
)
def test_the_better_of_two_verdicts(
    one: dict[str, float], other: dict[str, float], better: bool
) -> None:
    assert _core.better_verdict(one, other) == better


def test_a_good_translation_has_no_flag() -> None:
    verdict = JUDGE.judge(SOURCE, GERMAN, "de", -0.2, "en")
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
        ("hahahahaha that is funny", "哈哈哈哈哈很好笑", False),
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
        ("{name}'s team", "Das Team von {name}", False),
        ("See https://a.example for more", "详情请访问https://a.example。", False),
        ("See “https://a.example” (now)", "Siehe „https://a.example“ jetzt", False),
        ("see example.com/a_(b).", "siehe example.com/a_(b)!", False),
        ("see example.com/live/4", "siehe example.com/life/4", True),
        ("<b>Hello</b> world", "<b>Hallo</b> Welt", False),
        ("<b>Hello</b> world", "Hallo Welt", True),
        ("the <your name> field", "das Feld <Ihr Name>", False),
        ("write to <me@a.example>", "schreib an <me@a.example>", False),
        ("Hi <x id=4/> you", "Hallo du", True),
        ("Hi {{name}}", "Hallo {{ name }}", False),
        ("Hi {{ name }}", "Hallo", True),
        ("Hi ${name}", "Hallo", True),
        ("Hi [[name]]", "Hallo", True),
        ("%(name)s and %(id)s", "%(name)s und %(id)s", False),
        ("%(id)s people", "Leute", True),
        ("Hi %NAME%", "Hallo", True),
        ("Hi __NAME__ there", "Hallo", True),
        ("5% and 6%d", "5 % und 6 % d", False),
    ],
)
def test_values_are_kept(source: str, target: str, wrong: bool) -> None:
    assert ("values" in flags(source, target)) == wrong


@pytest.mark.parametrize(
    ("source", "target", "wrong"),
    [
        ("In 2024 500 people came", "2024 kamen 500 Leute", False),
        ("100,000 people", "1,00,000 लोग", False),
        ("12,34,567 people", "1234567 Leute", False),
        ("10 000 people", "10,000 Leute", False),
        ("10 000 people", "10.001 Leute", True),
        ("10 000 people", "Leute", True),
        ("10 million people", "1000万人", False),
        ("10 million people", "2000万人", True),
        ("10 million people", "20 Millionen Leute", True),
        ("3.5 million people", "350万人", False),
        ("3.5 million people", "3,5 miljoonaa", False),
        ("120 million people", "1億2000万人", False),
        ("10,000 people", "1万人", False),
        ("one billion people", "1000000000 Menschen", False),
        ("twenty-five people", "25 Personen", False),
        ("two hundred people", "200 Personen", False),
        ("the 19th century", "le XIXe siècle", False),
        ("the nineteenth century", "das 19. Jahrhundert", False),
        ("the 19th century", "le XXe siècle", True),
        ("5 goals", "17 Tore", True),
        ("12 goals", "24 Tore", True),
        ("at 5 pm", "um 17 Uhr", False),
        ("at 5:45", "17.45 Uhr", False),
        ("open at 12:30 am", "offen um 0:30 Uhr", False),
        ("for 5.45 dollars", "für 17,45 Dollar", True),
    ],
)
def test_numbers_in_other_forms(source: str, target: str, wrong: bool) -> None:
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
        ("See you in Cologne!", "See you in Cologne!", True),
        ("See you in Cologne!", "see you in cologne", True),
        ("See you in Cologne!", "See you in Köln!", False),
        ("iPhone 15 pro", "iPhone 15 pro", False),
        ("Universidad Nacional de Córdoba", "Universidad Nacional de Córdoba", False),
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


def test_close_languages_share_their_words() -> None:
    norwegian = "jeg kan ikke komme i morgen fordi toget er forsinket"
    danish = "jeg kan ikke komme i morgen, fordi toget er forsinket"
    assert flags(norwegian, danish, "da", None, "nb") == []
    assert flags(norwegian, danish, "da", None, "sv") == ["copied"]
    assert _core.quality_copied("eins zwei drei vier", "drei vier fünf sechs") == 0.5


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Los Angeles", "Los Angeles"),
        ("Real Sociedad de La Coruña", "Real Sociedad de La Coruña"),
        ("Go!", "Los!"),
        ("Go, go!", "Los, los!"),
    ],
)
def test_names_are_of_no_language(source: str, target: str) -> None:
    assert flags(source, target, "de") == []


@pytest.mark.parametrize("target", ["", " ", ".", "…"])
def test_words_that_became_nothing(target: str) -> None:
    for judge in (JUDGE, _core.Judge()):
        assert flags("Hello world", target, judge=judge) == ["length"]
    assert flags("…", target) == []


def test_lengths_and_scores_are_of_a_pair() -> None:
    source, target = "她昨天买了三本书", "Sie hat gestern drei Bücher gekauft."
    assert flags(source, target, "de", -9.0, "zh") == []
    missing = JUDGE.judge(source, target, "de", -9.0, "zh")["not_computed"]
    assert {"length", "unsure"} <= set(missing)


def test_of_long_texts_the_beginning_is_judged() -> None:
    text = "eins zwei drei vier fünf sechs " * 3000
    verdict = JUDGE.judge(text, text + "der der der der der der", "de", -9.0, "en")
    assert verdict["flags"] == ["unsure"]
    assert {"values", "copied", "language"} <= set(verdict["not_computed"])


def _aligned(source: str, target: str, pairs: list[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Alignments of words, by their places, in the order of the translation."""
    both = [[match.span() for match in re.finditer(r"\S+", text)] for text in (source, target)]
    in_order = sorted(pairs, key=lambda pair: pair[1])
    return [both[0][one] + both[1][other] for one, other in in_order]


@pytest.mark.parametrize(
    ("source", "target", "pairs", "doubts"),
    [
        ("a b c d e f g", "a b c d e f g", [(i, i) for i in range(7)], (0, 0)),
        ("a b c d e f g", "g f e d c b a", [(i, 6 - i) for i in range(7)], (0, 0)),
        ("a b c d e f g", "a b c", [(i, i) for i in range(3)], (4 / 3, 0)),
        ("a b c d e f g", "a b f g", [(0, 0), (1, 1), (5, 2), (6, 3)], (1, 0)),
        ("a b c", "a b c d e f g", [(min(i, 2), i) for i in range(7)], (0, 4 / 3)),
        ("a b c", "a b d e f g c", [(0, 0), (1, 1), (2, 6)], (0, 4 / 3)),
        ("a b c d e f g", "a b", [], (7 / 3, 1)),
        ("https://a.example/b/c/d b", "x b", [(1, 1)], (0, 1 / 2)),  # a URL is no word
        ("", "a b", [], (0, 1)),
        ("a b", "", [], (1, 0)),
    ],
)
def test_words_without_a_counterpart(
    source: str, target: str, pairs: list[tuple[int, int]], doubts: tuple[float, float]
) -> None:
    bounds = {"uncovered": 1, "invented": 1}
    statistics = {"version": 1, "languages": {"de": {"from": {"en": bounds}}}}
    judge = _core.Judge(json.dumps(statistics))
    aligned = _aligned(source, target, pairs)
    found = judge.judge(source, target, "de", None, "en", aligned)["doubts"]
    assert (found["uncovered"], found["invented"]) == pytest.approx(doubts)


def test_gaps_need_alignments_and_bounds() -> None:
    assert {"uncovered", "invented"}.isdisjoint(JUDGE.judge("a", "a", "de", 0, "en", [])["doubts"])
    bounds = {"version": 1, "languages": {"de": {"from": {"en": {"invented": 1}}}}}
    judge = _core.Judge(json.dumps(bounds))
    assert "invented" not in judge.judge("a", "a", "de", 0, "en")["doubts"]
    found = judge.judge("a", "a", "de", 0, "en", [(0, 1, 0, 1)])
    assert (found["doubts"]["invented"], found["flags"]) == (0, [])
    assert "uncovered" in found["not_computed"]


def test_gaps_of_tokens() -> None:
    source = ["eng_Latn", "▁one", "▁t", "wo", "▁three", "▁four", "</s>"]
    target = ["deu_Latn", "▁eins", "▁z", "wei", "▁x", "▁y"]
    positions = [-1, 1, 2, 3, 6, 6]  # the last ones have the end token
    assert _core.quality_gaps(source, target, positions) == pytest.approx((2 / 6**0.5, 2 / 6**0.5))


def test_another_language() -> None:
    french = "Le train de cinq heures est parti."
    assert flags(SOURCE, french, "de") == ["language"]
    assert flags(SOURCE, french, "fr") == []
    assert "language" in JUDGE.judge(SOURCE, french, "it")["not_computed"]
    one = {"version": 1, "languages": {"de": STATISTICS["languages"]["de"]}}  # type: ignore[index]
    assert "language" in _core.Judge(json.dumps(one)).judge(SOURCE, french, "de")["not_computed"]


def test_lengths_and_scores_outside_the_usual() -> None:
    more = GERMAN + " Und vieles mehr, was niemand hören will."
    assert flags(SOURCE, "Zug.", "de", None, "en") == ["length"]
    assert flags(SOURCE, more, "de", None, "en") == ["length"]
    for score in (-1.6, math.nan, -math.inf):
        assert flags(SOURCE, GERMAN, "de", score, "en") == ["unsure"]
    assert "unsure" in JUDGE.judge(SOURCE, GERMAN, "de", None, "en")["not_computed"]
    assert _core.quality_length("ab cd", "ab  cd") == 0


@pytest.mark.parametrize("target", [GERMAN, SOURCE, "der " * 9, "Zug", "", "99", "\0", "\ud7ff"])
def test_the_quality_is_below_half_exactly_where_a_flag_is_raised(target: str) -> None:
    for judge in (JUDGE, _core.Judge()):
        verdict = judge.judge(SOURCE, target, "de", -0.1, "en")
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
        ({"languages": {"de": {"score": 1}}}, "; known are words, from"),
        (
            {"languages": {"de": {"from": {"en": {"x": 1}}}}},
            "; known are length, least_score, copied, uncovered, invented",
        ),
        ({"languages": {"de": {"from": {"en": {"copied": 0}}}}}, "give a number from 0.01"),
        ({"languages": {"de": {"from": {"en": {"uncovered": 0}}}}}, "give a number from 0.01"),
        ({"languages": {"de": {"from": {"en": {"invented": "1"}}}}}, "give a number from 0.01"),
        ({"languages": {"de": {"words": {"der": 2}}}}, "give a share above 0, at most 1"),
        ({"languages": {"de": {"words": {"der": 0}}}}, "give a share above 0, at most 1"),
        ({"languages": {"de": {"words": {"der": "x"}}}}, "give a share above 0, at most 1"),
        ({"languages": {"de": {"from": {"en": {"length": [0.5, -0.5]}}}}}, "the lower bound first"),
        ({"languages": {"de": {"from": {"en": {"length": [0.5]}}}}}, "two numbers from -20 to 20"),
        (
            {"languages": {"de": {"from": {"en": {"least_score": 1}}}}},
            "give a number from -1000 to -0.001",
        ),
        (
            {"languages": {"de": {"from": {"en": {"least_score": None}}}}},
            'least_score: the value "null"',
        ),
        (
            {"languages": {"de": {"from": {"en": {"least_score": math.nan}}}}},
            "quality.json: no JSON: ",
        ),
        (
            {"languages": {"de": {"from": {"en": {"least_score": -math.inf}}}}},
            "quality.json: no JSON: ",
        ),
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
