# SPDX-License-Identifier: Apache-2.0
"""Policies and the words they settle by: for any interims, committed text never changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ct2_triton.live import LiveOptions
from ct2_triton.live.cutting import StableSource
from ct2_triton.live.policies import (
    Agreement,
    Append,
    Draft,
    FinalOnly,
    Interim,
    Policy,
    Shown,
    tokens_of_start,
)
from ct2_triton.live.updates import SegmentUpdate
from ct2_triton.words import (
    begins_with,
    common_words,
    join_words,
    spliced,
    split_words,
    word_tokens,
    words_covered,
)
from live_replay import Retranslation

# Few letters, so that texts often begin alike; a Chinese one, a combining accent, odd spaces.
LETTERS = "ab 水\u0301\u00a0\n."
TEXTS = st.lists(st.text(LETTERS, max_size=12), max_size=12)


def decode(ids: tuple[int, ...] | list[int]) -> str:
    """A token for each letter."""
    return "".join(map(chr, ids))


def join_tokens(tokens: tuple[str, ...] | list[str]) -> str:
    """As of a model that takes text."""
    return "".join(tokens).lstrip()


def _forced(policy: Append) -> str:
    """What a final that begins otherwise is forced to begin with."""
    draft = policy.completion(Interim("~"))
    return decode(draft.start).rstrip() if draft else ""


POLICIES: dict[str, Callable[[], Policy]] = {
    "final": FinalOnly,
    "agreement": Agreement,
    "agreement of 3, 2 held": lambda: Agreement(agreeing_interims=3, hold=2),
    "tail": lambda: Agreement(tail_mask=0),
    "masked tail": lambda: Agreement(hold=1, tail_mask=2, bias=0.4),
    "append": lambda: Append(decode),
    "append words": lambda: Append(join_tokens),
    "append, forced": lambda: Append(decode, forces=True),
    "everything": lambda: Retranslation(mask=1),
}


@pytest.mark.parametrize("name", POLICIES)
@given(texts=TEXTS)
def test_committed_text_never_changes(name: str, texts: list[str]) -> None:
    policy, committed = POLICIES[name](), ""
    for text in texts:
        tokens = word_tokens(text) if "words" in name else tuple(map(ord, text))
        shown = policy.take(Interim(text, tokens))
        assert shown.committed.startswith(committed)
        committed = shown.committed


@given(texts=TEXTS)
def test_append_shows_no_tail_and_forces_what_it_has_committed(texts: list[str]) -> None:
    policy = Append(decode)
    for text in texts:
        shown = policy.take(Interim(text, tuple(map(ord, text))))
        assert shown.tail == ""
        assert _forced(policy) == shown.committed
        assert policy.draft().start == ()


@given(st.text())
def test_words_joined_give_the_text_again(text: str) -> None:
    words = split_words(text)
    assert "".join(words) == text.lstrip()
    assert join_words(words) == text.strip()
    assert common_words(words, words) == len(words)


def test_two_interims_settle_what_they_agree_on() -> None:
    policy = Agreement()
    assert policy.take(Interim("Der Hund lief")).committed == ""
    assert policy.take(Interim("Der Hund läuft schnell")).committed == "Der Hund"
    assert policy.take(Interim("Die Hunde laufen")).committed == "Der Hund"
    assert policy.take(Interim("Der Hund läuft weg")).committed == "Der Hund"
    assert policy.take(Interim("Der Hund läuft weg.")).committed == "Der Hund läuft"


def test_words_are_held_and_the_tail_is_masked() -> None:
    policy = Agreement(hold=1, tail_mask=2)
    first = policy.take(Interim("eins zwei drei vier fünf"))
    assert (first.committed, first.tail) == ("", "eins zwei drei")
    second = policy.take(Interim("eins zwei drei vier fünf sechs"))
    assert (second.committed, second.tail) == ("eins zwei drei vier", "")
    # An interim that says something else has no tail that fits what is committed.
    assert policy.take(Interim("uno due tre quattro cinque")).tail == ""


@given(TEXTS, st.integers(0, 5))
def test_of_no_interim_masked_words_are_shown(texts: list[str], mask: int) -> None:
    policy = Agreement(tail_mask=mask)
    for text in texts:
        shown = policy.take(Interim(text))
        if shown.tail:
            words = len(split_words(shown.committed + shown.tail))
            assert words <= len(split_words(text)) - mask


@pytest.mark.parametrize(("mask", "tail"), [(0, "a b c d e f g"), (6, "a"), (1000, "")])
def test_mode_steady_shows_a_masked_tail(mask: int, tail: str) -> None:
    options = LiveOptions(mask_words=mask)
    assert options.make_policy(decode).take(Interim("a b c d e f g")) == Shown("", tail)
    short = options.make_policy(decode).take(Interim("a b c"))
    assert short.tail == ("" if mask else "a b c")
    assert LiveOptions().mask_words == 6


def test_a_biased_interim_is_biased_towards_the_one_before() -> None:
    policy = Agreement(bias=0.4)
    assert policy.draft().start == ()
    policy.take(Interim("ab", (97, 98)))
    assert policy.draft() == Draft((), (97, 98), 0.4)


def test_chinese_settles_by_the_letter() -> None:
    policy = Agreement()
    policy.take(Interim("今天天气好"))
    assert policy.take(Interim("今天天气很好")).committed == "今天天气"


def test_ids_of_the_start_end_where_a_token_ends() -> None:
    pieces = {1: "Guten", 2: " Mor", 3: "gen", 4: " "}

    def spell(ids: tuple[int, ...] | list[int]) -> str:
        return "".join(pieces[i] for i in ids)

    assert tokens_of_start((1, 2, 3), "Guten", spell) == (1,)
    assert tokens_of_start((1, 4, 2, 3), "Guten", spell) == (1,)
    assert tokens_of_start((1, 2, 3), "Guten Morgen", spell) == (1, 2, 3)
    assert tokens_of_start((1, 2, 3), "Gut", spell) is None
    assert tokens_of_start((), "", spell) == ()


def test_the_source_is_what_two_updates_agree_on_or_what_the_recognizer_says() -> None:
    source = StableSource()
    assert source.take(SegmentUpdate("1", "I scream")) == ""
    assert source.take(SegmentUpdate("1", "I scream for")) == "I scream"
    assert source.take(SegmentUpdate("1", "ice cream")) == ""
    assert source.take(SegmentUpdate("1", "ice cream for all", stable_chars=9)) == "ice cream"
    assert source.take(SegmentUpdate("1", "ice cream for all", stable_chars=12)) == "ice cream"
    assert source.take(SegmentUpdate("1", "ice cream for all", stable_chars=0)) == ""
    assert StableSource(agreement=False).take(SegmentUpdate("1", " I scream ")) == "I scream"


@given(text=st.text(LETTERS), data=st.data())
def test_the_stable_part_is_never_longer_than_the_recognizer_says(
    text: str, data: st.DataObject
) -> None:
    stable = data.draw(st.integers(0, len(text)))
    found = StableSource().take(SegmentUpdate("1", text, stable_chars=stable))
    assert text.lstrip().startswith(found)
    assert len(found) <= stable


def test_append_commits_what_does_not_look_at_the_end() -> None:
    """Of what two interims agree on: whole words, up to the first that looks at the last two."""
    text = "Der Hund lief weg"
    ids = tuple(map(ord, text))

    def committed(*words_after: int, guard: int | None = 2) -> str:
        policy = Append(decode, agreeing_interims=2, hold=3, guard=guard)
        letters = [
            left for word, left in zip(split_words(text), words_after, strict=True) for _ in word
        ]
        for _ in range(2):
            shown = policy.take(Interim(text, ids, tuple(letters)))
        assert _forced(policy) == shown.committed
        return shown.committed

    assert committed(5, 4, 2, 1) == "Der Hund lief"
    assert committed(5, 1, 4, 4) == "Der"
    assert committed(5, 4, 3, 2) == text
    assert committed(0, 5, 5, 5) == ""
    assert committed(5, 4, 2, 1, guard=3) == "Der Hund"
    assert committed(5, 4, 2, 1, guard=None) == "Der"  # three words are held


def test_append_goes_on_where_an_interim_fits_what_viewers_have_seen() -> None:
    policy = Append(decode, agreeing_interims=2, guard=None, hold=1)
    shown = ""
    for text, wanted in (
        ("Der Zug von Rom ist spät", ""),
        ("Der Zug von Rom ist sehr spät", "Der Zug von Rom"),
        ("Der Zug aus Rom hat heute viel Verspätung.", "Der Zug von Rom"),
        ("Der Zug aus Rom hat heute viel", "Der Zug von Rom hat"),
        ("Der", "Der Zug von Rom hat"),  # what it does not reach stays
        ("Der Zug aus Rom hat heute viel Verspätung.", "Der Zug von Rom hat"),
        ("Der Zug aus Rom hat heute viel Verspätung.", "Der Zug von Rom hat heute"),
    ):
        shown = policy.take(Interim(text, tuple(map(ord, text)))).committed
        assert shown == wanted
    final = "Der Zug aus Rom hat heute viel Verspätung."
    draft = policy.completion(Interim(final, tuple(map(ord, final))))
    assert draft
    assert (decode(draft.start), decode(draft.rest)) == (shown, " viel Verspätung.")


def test_a_text_of_thousands_of_words_is_not_compared_word_by_word() -> None:
    one, other = (" ".join(f"{letter}{i}" for i in range(2000)) for letter in "ab")
    assert words_covered(f"x {one} {one}", f"x {other}") == 2001


def test_append_commits_whole_words_alone() -> None:
    policy = Append(decode, agreeing_interims=1)
    text = "Wir fahren"
    after = tuple(0 if i == 7 else 5 for i in range(len(text)))  # in the middle of a word
    assert policy.take(Interim(text, tuple(map(ord, text)), after)).committed == "Wir"


def test_the_end_of_what_was_shown_leans_towards_the_end_of_the_final() -> None:
    policy = Append(decode, agreeing_interims=1, guard=None, hold=0)
    shown = "Was für ein Tag"
    policy.take(Interim(shown, tuple(map(ord, shown))))
    final = "Wie warm ein Tag wird, fragt er."
    draft = policy.completion(Interim(final, tuple(map(ord, final))))
    assert draft
    assert decode(draft.start) == shown
    assert decode(draft.rest) == " wird, fragt er."
    assert 0 < draft.bias < 1
    assert policy.completion(Interim(f"{shown}, sagt er.", (1,))) is not None  # "Tag," is longer
    assert policy.completion(Interim(f"{shown} wird.", (1,))) is None


@pytest.mark.parametrize(
    ("shown", "final", "whole"),
    [
        ("Was für ein Tag", "Wie warm ein Tag wird.", "Was für ein Tag wird."),
        ("Das ist", "Es regnet in Oslo.", "Das ist in Oslo."),
        ("Un gran aplauso para", "¡Un gran aplauso para Kim!", "Un gran aplauso para Kim!"),
        ("今天天", "昨天天气好", "今天天气好"),
        ("eins zwei drei", "vier", "eins zwei drei"),
        # A common word much later is no reason to leave out the words before it.
        ("Der Zug von Rom ist", "Der Zug aus Rom hat Verspätung, nehmen Sie den von Gleis 3.",
         "Der Zug von Rom ist Verspätung, nehmen Sie den von Gleis 3."),
        ("eins", "", "eins"),
    ],
)  # fmt: skip
def test_a_final_is_spliced_to_what_was_shown(shown: str, final: str, whole: str) -> None:
    assert spliced(shown, final) == whole


@given(st.text("ab 水", max_size=9), st.text("ab 水", max_size=9))
def test_what_was_shown_stays_whole_and_a_final_that_begins_so_is_taken(a: str, b: str) -> None:
    shown, final = a.strip(), b.strip()
    assert begins_with(spliced(shown, final), shown)
    assert begins_with(f"{shown} {final}", shown)
    if begins_with(final, shown):
        assert final.startswith(shown)


@given(texts=TEXTS, left=st.lists(st.integers(0, 4), min_size=150, max_size=150))
def test_what_is_appended_stays_whatever_words_look_at(texts: list[str], left: list[int]) -> None:
    policy, committed = Append(decode, agreeing_interims=1), ""
    for text in texts:
        shown = policy.take(Interim(text, tuple(map(ord, text)), tuple(left[: len(text)])))
        assert shown.committed.startswith(committed)
        committed = shown.committed
