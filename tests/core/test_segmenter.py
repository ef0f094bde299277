# SPDX-License-Identifier: Apache-2.0
"""Texts cut into sentences: what is right, and that nothing is ever lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.hard_texts import HARD_TEXTS
from ct2_triton import _core

CLEAN: dict[str, list[str]] = json.loads(
    (Path(__file__).parent / "data" / "udhr_sentences.json").read_text(encoding="utf-8")
)
UNSPACED = {"cmn", "jpn"}
LANGUAGES = ["", "en", "deu_Latn", "fr_XX", "el", "zh", "tr-TR", "xx"]
SPLITS = ["sentences", "lines", "none"]
SPACES = " \t\n\v\f\r\x85\xa0\u1680\u2000\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
# Signs that a segmenter looks at, between letters, so that many cuts and near-cuts come up.
TRICKY = st.text(
    alphabet=st.sampled_from([*"aB.?!…。।;:'\"()[]«»„“”「」-— \n\t\xa0\u2028é日Дз10"]), max_size=80
)
ANY_BYTES = st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode))


def _pieces(text: str, language: str, split: str = "sentences") -> list[str]:
    data = text.encode()
    return [data[begin:end].decode() for begin, end in _core.segment(data, language, split)]


def _check_cover(text: bytes, ranges: list[tuple[int, int]]) -> None:
    """Nothing but white space lies outside the pieces, and none of it at their ends."""
    at = 0
    for begin, end in ranges:
        assert at <= begin < end <= len(text)
        assert _is_space(text[at:begin])
        assert text[begin:end].decode("utf-8", "replace").strip(SPACES) == (
            text[begin:end].decode("utf-8", "replace")
        )
        at = end
    assert _is_space(text[at:])


def _is_space(gap: bytes) -> bool:
    return gap.decode().strip(SPACES) == ""  # decode is strict: no cut lies within a character


@pytest.mark.parametrize(("language", "text"), HARD_TEXTS)
def test_hard_texts(language: str, text: str) -> None:
    wanted = [piece.strip() for piece in text.split("|")]
    assert _pieces(text.replace("|", ""), language) == wanted


def test_there_are_as_many_as_were_asked_for() -> None:
    assert len(HARD_TEXTS) >= 40
    assert len(CLEAN) >= 42


@pytest.mark.parametrize("language", sorted(CLEAN))
def test_clean_text(language: str) -> None:
    joined = ("" if language in UNSPACED else " ").join(CLEAN[language])
    assert _pieces(joined, language) == CLEAN[language]


@settings(max_examples=400)
@given(TRICKY, st.sampled_from(LANGUAGES), st.sampled_from(SPLITS))
def test_pieces_joined_are_the_text(text: str, language: str, split: str) -> None:
    _check_cover(text.encode(), _core.segment(text.encode(), language, split))


@settings(max_examples=400)
@given(ANY_BYTES, st.sampled_from(LANGUAGES))
def test_no_byte_of_any_text_is_lost(text: bytes, language: str) -> None:
    at = 0
    for begin, end in _core.segment(text, language):
        assert at <= begin < end <= len(text)
        assert _is_space(text[at:begin])
        at = end
    assert _is_space(text[at:])


@settings(max_examples=400)
def _first(most: int) -> Callable[[bytes], int]:
    """Fits so many characters."""
    return lambda begin: len(begin.decode()[:most].encode())


@given(TRICKY.filter(lambda text: text.strip(SPACES) != ""), st.integers(1, 30))
def test_parts_of_a_long_piece_fit_and_are_all_there(text: str, most: int) -> None:
    data = text.strip(SPACES).encode()
    parts = _core.cut_to_fit(data, 1, _first(most))
    _check_cover(data, parts)
    assert all(len(data[begin:end].decode()) <= most for begin, end in parts)


def test_a_part_has_one_character_even_if_that_does_not_fit() -> None:
    assert _core.cut_to_fit("日本".encode(), 100, lambda begin: 0) == [(0, 3), (3, 6)]


@pytest.mark.parametrize(
    ("text", "most", "wanted"),
    [
        ("one two, three four five", 16, ["one two,", "three four five"]),
        ("one two three four", 9, ["one two", "three", "four"]),
        ("一二三，四五六七", 5, ["一二三，", "四五六七"]),
        ("สวัสดี\u200bครับผม", 8, ["สวัสดี\u200b", "ครับผม"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("at 3,500 metres", 8, ["at 3,500", "metres"]),
    ],
)
def test_where_a_long_piece_is_cut(text: str, most: int, wanted: list[str]) -> None:
    data = text.encode()
    parts = _core.cut_to_fit(data, 100, _first(most))
    assert [data[begin:end].decode() for begin, end in parts] == wanted


def test_a_long_piece_is_asked_about_in_windows() -> None:
    """Of a megabyte without a space, each byte is looked at twice at most."""
    asked: list[int] = []

    def fitting(begin: bytes) -> int:
        asked.append(len(begin))
        return min(len(begin), 1000)

    parts = _core.cut_to_fit(b"x" * 1_000_000, 2000, fitting)
    assert len(parts) == 1000
    assert max(asked) == 2000
    assert sum(asked) <= 2_000_000


@pytest.mark.parametrize(
    ("gap", "target", "wanted"),
    [
        (" ", "deu_Latn", " "),
        (" ", "zho_Hans", ""),
        (" ", "ja", ""),
        (" ", "tha_Thai", " "),
        ("", "eng_Latn", " "),
        ("", "jpn_Jpan", ""),
        ("\n\n", "zh", "\n\n"),
        ("  ", "zh-CN", "  "),
        (" ", "jap", ""),  # of OPUS-MT
        (" ", "zt", ""),  # of Argos
        (" \r\n\t", "fr", " \r\n\t"),
    ],
)
def test_what_stands_between_translations(gap: str, target: str, wanted: str) -> None:
    assert _core.gap_in_target(gap.encode(), target) == wanted.encode()


def test_lines_and_none() -> None:
    text = " One. Two.\r\nThree.\n\n Four "
    assert _pieces(text, "en") == ["One.", "Two.", "Three.", "Four"]
    assert _pieces(text, "en", "lines") == ["One. Two.", "Three.", "Four"]
    assert _pieces(text, "en", "none") == ["One. Two.\r\nThree.\n\n Four"]
    assert _pieces(" \n ", "en", "none") == []


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(_core.Error, match='split "words" is not known; give one of sentences'):
        _core.segment(b"x", "en", "words")


def test_hostile_texts_take_no_longer_than_plain_ones() -> None:
    """Each shape would take minutes if a cut cost the whole line."""
    shapes = ['"a" ' * 60_000, "dr. " * 60_000, "-" * 100_000 + "dr. X" * 30_000, "(" * 200_000]
    for text in [*shapes, "x." * 100_000, ". " * 100_000, "“" * 70_000 + "a. B " * 20_000]:
        _check_cover(text.encode(), _core.segment(text.encode(), "en"))
