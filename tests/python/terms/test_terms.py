# SPDX-License-Identifier: Apache-2.0
"""Terms: found, replaced by placeholders, put back, or told to be lost."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ct2_triton.client import Hypothesis, Translation
from ct2_triton.errors import InvalidCallError
from ct2_triton.terms import TermTranslation, translate_terms
from ct2_triton.terms.finding import PATTERNS, Terms, occurrences, places
from ct2_triton.terms.placeholders import KINDS, mark, restore


def _texts(text: str, **arguments: object) -> list[str]:
    return [term.text for term in Terms(**arguments).find(text).terms]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "arguments", "terms"),
    [
        ("Ask <dnt>Ada Bell</dnt>, not <dnt>Bo</dnt>.", {}, ["Ada Bell", "Bo"]),
        ("York and New York, Yorker", {"keep": ["York", "New York"]}, ["York", "New York"]),
        ("the cat and <dnt>the cat</dnt>", {"glossary": {"cat": "Katze"}}, ["Katze", "the cat"]),
        ("See https://a.example/b?c=1.", {"patterns": ["urls", "numbers"]}, ["https://a.example/b?c=1"]),
        ("At 5:45, 1,000.5 of X2", {"patterns": ["numbers"]}, ["5:45", "1,000.5"]),
        ("Write to a.b@c.example!", {"patterns": ["emails"]}, ["a.b@c.example"]),
        ("Good \U0001f44d\U0001f3fd \U0001f1e9\U0001f1ea \u2764\ufe0f", {"patterns": ["emoji"]},
         ["\U0001f44d\U0001f3fd", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f"]),
        ("我喜欢GitHub的", {"keep": ["GitHub", "喜"]}, ["喜", "GitHub"]),
        ("GitHub를 서울에서", {"keep": ["GitHub", "서울"]}, ["GitHub", "서울"]),
        ("который кот, он", {"keep": ["он"], "glossary": {"кот": "cat"}}, ["cat", "он"]),
        ("Việt, Vi\u0301, Vi², Vi\u0661, Vi", {"keep": ["Vi"]}, ["Vi"]),
        ("हिन्दी हिन", {"keep": ["हिन"]}, ["हिन"]),
        ("\u2764\ufe0fAda", {"keep": ["Ada", "\u2764\ufe0f"]}, ["\u2764\ufe0f", "Ada"]),
        ("ab abc ab-c xab", {"keep": ["ab"]}, ["ab", "ab"]),
        ("12 <dnt>a 34 b</dnt> 5", {"patterns": ["numbers"]}, ["12", "a 34 b", "5"]),
    ],
)  # fmt: skip
def test_terms_are_found(text: str, arguments: dict[str, object], terms: list[str]) -> None:
    assert _texts(text, **arguments) == terms


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("a <dnt>b", {}, "<dnt> before 'b' has no </dnt>"),
        ("a", {"keep": "bc"}, "keep and patterns are collections: one phrase is ['phrase']"),
        ("a</dnt>", {}, "</dnt> at character 1 has no <dnt> before it"),
        ("<dnt>a<dnt>b</dnt></dnt>", {}, "<dnt> at character 6 is inside another one"),
        ("<dnt> </dnt>", {}, "</dnt> at character 6 ends a term without a visible character"),
        ("a", {"keep": ["b", ""]}, "'' cannot be a term: it has no visible character"),
        ("a", {"glossary": {"a": " "}}, "' ' cannot be a term: it has no visible character"),
        ("a", {"patterns": ["dates"]}, f"no pattern is named 'dates'; there is {list(PATTERNS)}"),
    ],
)
def test_terms_that_cannot_be(text: str, arguments: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidCallError) as error:
        Terms(**arguments).find(text)  # type: ignore[arg-type]
    assert str(error.value) == said


def _work(terms: Terms, text: str) -> int:
    """Count the calls of Python and C that finding the terms of a text takes."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    terms.find(text)  # the first text compiles them
    sys.setprofile(count)
    try:
        terms.find(text)
    finally:
        sys.setprofile(None)
    return calls


def test_a_line_takes_the_same_work_whatever_the_size_of_the_glossary() -> None:
    text = "Ask term 7 of Ada, not term 70, in the office."
    few, many = ({f"term {n}": f"Wort {n}" for n in range(count)} for count in (80, 10_000))
    assert _work(Terms(glossary=few), text) == _work(Terms(glossary=many), text) < 200
    assert [term.text for term in Terms(glossary=many).find(text).terms] == ["Wort 7", "Wort 70"]


_LETTERS = st.text("ab \u4e2d\uac00.\u0301", min_size=1, max_size=4)


@given(st.text("ab \u4e2d\uac00.\u0301", max_size=30), st.sets(_LETTERS, max_size=8))
def test_one_scan_finds_what_a_search_for_each_phrase_finds(text: str, phrases: set[str]) -> None:
    keep = [phrase for phrase in phrases if phrase.strip()]
    found = {(start, start + len(phrase)) for phrase in keep for start in places(phrase, text)}
    wanted: list[tuple[int, int]] = []
    for start, end in sorted(found, key=lambda place: (place[0], -place[1])):
        if not wanted or start >= wanted[-1][1]:
            wanted.append((start, end))
    assert [(term.start, term.end) for term in Terms(keep).find(text).terms] == wanted


async def test_terms_are_given_once_or_in_parts_and_not_both() -> None:
    with pytest.raises(InvalidCallError, match="terms holds keep, glossary and patterns"):
        await translate_terms(None, "a", terms=Terms(["a"]), keep=["b"])  # type: ignore[arg-type]


def test_a_term_inside_of_a_word_can_be_lost_too() -> None:
    found = Terms().find("pre<dnt>fix</dnt>es")
    assert found.lost_in("Vorsilben") == ("fix",)
    assert found.lost_in("prefixes") == ()


def test_a_placeholder_is_never_in_the_text_before() -> None:
    found = Terms().find("X1 and x 2 for <dnt>Ada</dnt>")
    marked = mark(found, "X{}")
    assert marked is not None
    assert marked.text == "X1 and x 2 for X3"
    assert mark(found, ["Bo"]) is not None
    assert mark(Terms().find("Bo and <dnt>Ada</dnt>"), ["Bo"]) is None
    with pytest.raises(InvalidCallError, match="'X' is not a kind of placeholder"):
        mark(found, "X")


@pytest.mark.parametrize(
    ("translation", "restored"),
    [
        ("Fragen Sie x 1, nicht X2.", "Fragen Sie Ada, nicht Bo."),
        ("Nicht X2, sondern X1.", "Nicht Bo, sondern Ada."),
        ("Fragen Sie X1.", None),
        ("X1, X1 und X2", None),
        ("X1 und X22", None),
        ("Ada, X1 und X2", None),  # the model has one of its own
    ],
)
def test_terms_come_back_once_or_not_at_all(translation: str, restored: str | None) -> None:
    found = Terms().find("Ask <dnt>Ada</dnt>, not <dnt>Bo</dnt>.")
    marked = mark(found, "X{}")
    assert marked is not None
    assert restore(found, marked, translation) == restored


def test_long_texts_take_time_in_proportion() -> None:
    """With the square of their length, none of these would end."""
    assert _texts("a" * 3_000_000, patterns=["emails"]) == []
    assert _texts("ab" * 1_000_000, keep=["ab", "aba"]) == []
    count = 100_000
    found = Terms(patterns=["numbers"]).find("<dnt>a</dnt> 1 " * count)
    assert len(found.terms) == 2 * count
    marked = mark(found, "X{}")
    assert marked is not None
    assert restore(found, marked, marked.text) == found.text


def test_placeholders_that_share_a_sign_are_each_found() -> None:
    found = Terms().find("#-1-#-2-# <dnt>Ada</dnt>")
    marked = mark(found, "#-{}-#")
    assert marked is not None
    assert marked.placeholders == ("#-3-#",)


class Echo:
    """Translates nothing."""

    async def translate(self, text: str, **_: Any) -> Translation:
        return Translation("", None, None, (Hypothesis(text),))


class Unread(Sequence[str]):
    """Names that nobody may look at."""

    def __getitem__(self, _: Any) -> Any:
        raise AssertionError

    def __len__(self) -> int:
        raise AssertionError


async def test_placeholders_are_made_only_where_a_term_is_lost() -> None:
    text = "Ask <dnt>Ada</dnt>."
    echo: Any = Echo()
    kept = await translate_terms(echo, text, targets="de", placeholders=[Unread()])
    assert kept == TermTranslation("Ask Ada.", "de")
    with pytest.raises(InvalidCallError, match="'X' is not a kind of placeholder"):
        await translate_terms(echo, text, targets="de", placeholders=["X"])


WORDS = st.sampled_from(
    ["a", "X1", "12", "#1", "[2]", "Ada", "Ada Bell", "é", ".", " ", "x 1", "中"]
)


@given(
    st.lists(st.tuples(WORDS.filter(str.strip), st.booleans()), max_size=6),
    st.sampled_from(KINDS),
    st.randoms(use_true_random=False),
)
def test_whatever_comes_back_has_each_term_as_often_as_the_text(
    words: list[tuple[str, bool]], kind: str, random: object
) -> None:
    """The model here drops, doubles and moves what it is given."""
    found = Terms().find(" ".join(f"<dnt>{word}</dnt>" if kept else word for word, kept in words))
    marked = mark(found, kind)
    assert marked is not None
    answer = marked.text.split(" ")
    answer = random.choices(answer, k=random.randint(0, 8)) if answer else []  # type: ignore[attr-defined]
    for translation in (marked.text, " ".join(answer)):
        restored = restore(found, marked, translation)
        if restored is None:
            assert translation != marked.text or not found.terms or found.lost_in(found.text)
            continue
        for word, kept in words:
            if kept:
                assert occurrences(word, restored) == occurrences(word, found.text)
