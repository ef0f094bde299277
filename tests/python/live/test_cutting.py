# SPDX-License-Identifier: Apache-2.0
"""Segments that go on and on: cut at the ends of sentences, else by length; no word is lost."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ct2_triton.errors import InvalidCallError
from ct2_triton.live import LiveInputError, LiveOptions, SegmentUpdate, cutting
from ct2_triton.live.cutting import Cuts, Piece, sentence_ends
from ct2_triton.words import split_words
from python.live.scripted import AT_ONCE, ScriptedClient, collect, each, live, texts

TALK = (
    "Dr. Smith came late, at 3.30. It rains in Oslo! Will it stop? "
    "Nobody knows, and the bus has gone."
)
SENTENCES = [
    "Dr. Smith came late, at 3.30.",
    "It rains in Oslo!",
    "Will it stop?",
    "Nobody knows, and the bus has gone.",
]
WORDS = st.lists(st.sampled_from(["a", "b,", "c", "d.", "E", "水", "e.g."]), max_size=40)


def growing(text: str, step: int = 1) -> list[SegmentUpdate]:
    words = split_words(text)
    ends = [*range(step, len(words), step), len(words)]
    return texts("1", *("".join(words[:end]).rstrip() for end in ends))


def over(pieces: list[Piece]) -> list[str]:
    return [piece.update.text for piece in pieces if piece.update.final]


@given(WORDS, st.integers(1, 4), st.integers(2, 9), st.booleans())
def test_the_pieces_are_the_text(words: list[str], step: int, longest: int, cut: bool) -> None:
    cuts = Cuts("eng_Latn", sentences=cut, max_words=longest)
    pieces = [piece for one in growing(" ".join(words), step) for piece in cuts.take(one)]
    finals = over(pieces)
    assert split_words(" ".join(finals)) == split_words(" ".join(words))
    assert all(len(split_words(text)) <= longest for text in finals)
    names = [piece.update.segment for piece in pieces if piece.update.final]
    assert names == ["1", *(f"1~{number}" for number in range(2, len(names) + 1))]
    for piece in pieces:
        assert piece.update.text.startswith(piece.stable)


@pytest.mark.core
@pytest.mark.parametrize("step", [1, 2, 5, 100])
def test_running_text_is_cut_as_the_segmenter_cuts_it(step: int) -> None:
    cuts = Cuts("eng_Latn", max_words=60)
    pieces = [piece for update in growing(TALK, step) for piece in cuts.take(update)]
    assert over(pieces) == SENTENCES


@pytest.mark.core
def test_an_end_waits_for_stable_words_after_it() -> None:
    cuts = Cuts("eng_Latn", max_words=60)
    heard = ["It rains.", "It rains. Will", "It rains. Will it stop", "It rains. Will it stop now"]
    assert [over(cuts.take(SegmentUpdate("1", text))) for text in heard] == [
        [], [], [], ["It rains."],  # two updates agree on three words
    ]  # fmt: skip
    said = SegmentUpdate("2", heard[-1], stable_chars=len("It rains. Will it stop"))
    [first, rest] = Cuts("eng_Latn", max_words=60).take(said)
    assert first.update.text == "It rains."
    assert (rest.stable, rest.update.stable_chars) == ("Will it stop", len("Will it stop"))
    assert rest.update.segment == "2~2"


def test_without_the_segmenter_and_without_ends_text_is_cut_by_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cutting, "_segmenter", lambda: None)
    cuts = Cuts("eng_Latn", max_words=8)
    pieces = [piece for update in growing(TALK) for piece in cuts.take(update)]
    assert over(pieces) == [
        "Dr. Smith came late, at 3.30. It rains",
        "in Oslo! Will it stop? Nobody knows,",  # a clause ends in the second half
        "and the bus has gone.",
    ]


@pytest.mark.core
def test_text_that_was_revised_before_a_cut_loses_no_word_and_doubles_none() -> None:
    cuts = Cuts("eng_Latn", max_words=60)
    said = "The rain in Oslo has stopped. Now the sun is out"
    revised = "So the rain in Oslo has stopped. Now the sun is out again."
    for _ in range(2):
        cuts.take(SegmentUpdate("1", said))
    assert over(cuts.take(SegmentUpdate("1", revised, final=True))) == ["Now the sun is out again."]
    shrunk = Cuts("eng_Latn", max_words=60)
    for _ in range(2):
        shrunk.take(SegmentUpdate("1", said))
    assert over(shrunk.take(SegmentUpdate("1", "The", final=True))) == [""]


def test_two_names_that_are_as_long_as_may_be_have_pieces_of_their_own() -> None:
    names = set()
    for end in "ab":
        update = SegmentUpdate("x" * 99 + end, "a b c d e f", final=True)
        names |= {piece.update.segment for piece in Cuts(max_words=2).take(update)}
    assert len(names) == 2 * 3
    assert "x" * 99 + "b~3" in names


@pytest.mark.parametrize("first", ["the piece", "its namesake"])
async def test_no_segment_has_the_name_of_another_ones_piece(first: str) -> None:
    """Such a name is refused; one that is only like it is taken."""
    long = SegmentUpdate("1", "a b c d", final=True)
    namesake = SegmentUpdate("1~2", "mine", final=True)
    alike = [SegmentUpdate(name, "x", final=True) for name in ("1#2", "1~", "1~2 ", "~2b")]
    updates = [long, namesake] if first == "the piece" else [namesake, long]
    refused: list[str] = []
    run = live(ScriptedClient(), options=replace(AT_ONCE, max_words=2)).run(
        each([*updates, *alike]), on_refused=lambda _, error: refused.append(str(error))
    )
    said = {one.segment: one.transcript async for one in run if one.final}
    assert said.pop("1") == "A B"
    assert said.pop("1~2") == "C D"
    assert said == {one.segment: "X" for one in alike}
    assert [message[:40] for message in refused] == ["segment '1~2' ends with ~ and digits, as"]


@pytest.mark.core
def test_scripts_without_spaces_and_text_without_ends() -> None:
    words = split_words("今日は雨です。明日は晴れます。")
    assert sentence_ends(words, "jpn_Jpan") == [7]
    assert sentence_ends(split_words("version 3.5 is here"), "eng_Latn") == []


async def test_a_segment_that_never_ends_goes_on() -> None:
    """Longer than any update may be; what is too long at once is refused, and harms nothing."""
    words = [f"w{number}" for number in range(300)]
    updates = [SegmentUpdate("1", " ".join(words[:end])) for end in range(5, 301, 5)]
    options = replace(AT_ONCE, max_chars=100, max_words=10)
    refused: list[str] = []
    too_long = SegmentUpdate("1", "x" * 10_000_000)
    run = live(ScriptedClient(), options=options).run(
        each([*updates[:30], too_long, *updates[30:]]),
        on_refused=lambda _, error: refused.append(str(error)),
    )
    captions = [caption async for caption in run]
    assert len(refused) == 1
    assert "100 are allowed" in refused[0]
    said = [one.transcript for one in captions if one.final]
    assert " ".join(filter(None, said)) == " ".join(words).upper()
    assert max(len((text or "").split()) for text in said) == 10


async def test_pieces_wait_for_room_like_any_final() -> None:
    options = replace(AT_ONCE, max_waiting_finals=2, max_words=2)
    translator = live(ScriptedClient(), options=options)
    async with translator:
        pushed = asyncio.create_task(
            translator.push(SegmentUpdate("1", "a b c d e f g h", final=True))
        )
        await asyncio.sleep(0.01)
        assert not pushed.done()
        with pytest.raises(LiveInputError, match="segment '1' is final already"):
            await translator.push(SegmentUpdate("1", "x", final=True))
        captions = translator.captions()
        seen = [(await anext(captions)).transcript for _ in range(4)]
        assert seen == ["A B", "C D", "E F", "G H"]
        assert [one.segment for one in await pushed] == ["1", "1~2", "1~3", "1~4"]
        await captions.aclose()


async def test_cutting_can_be_turned_off() -> None:
    options = replace(AT_ONCE, cut_sentences=False)
    captions = await collect(live(ScriptedClient(), options=options), growing(TALK, 5))
    assert [one.transcript for one in captions if one.final] == [TALK.upper()]
    with pytest.raises(InvalidCallError, match="max_words is 1"):
        LiveOptions(max_words=1)
