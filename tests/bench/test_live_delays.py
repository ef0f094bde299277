# SPDX-License-Identifier: Apache-2.0
"""Metrics against values worked out by hand, and the simulated recognizer."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from live_delays import (
    average_lagging,
    erased_words,
    first_delays,
    length_adaptive_lagging,
    settled_delays,
)
from recognizer_simulator import RecognizerSimulator

SHOWN = [text.split() for text in ("a", "a b c", "a x c d", "a x")]
WORDS = st.lists(st.sampled_from("abc"), max_size=4)
SENTENCES = ["Next week in Stockholm: fog.", "Gate C19 closes in 6 minutes!"] * 5


def test_erasure_counts_what_was_taken_back() -> None:
    assert erased_words(SHOWN) == 0 + 2 + 2


def test_a_word_is_settled_when_all_up_to_it_stands_and_shown_when_there_is_one() -> None:
    assert settled_delays(SHOWN, [1, 2, 3, 4]) == [1, 3]
    assert first_delays(SHOWN, [1, 2, 3, 4]) == [1, 2]
    assert settled_delays([["a"], ["b"], ["a"]], [1, 2, 3]) == [3]
    assert settled_delays([], []) == first_delays([], []) == []


def test_lagging_is_that_of_the_papers() -> None:
    """Wait-3 on five words each: the lag is 3. A translation twice as long is not rewarded."""
    assert average_lagging([3, 4, 5, 5, 5], 5, 5) == 3
    assert average_lagging([5, 5, 5], 5, 3) == 5
    delays = [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert average_lagging(delays, 5, 5) == pytest.approx((1 + 0 + 0 - 1 - 1 - 2 - 2 - 3 - 3) / 9)
    assert length_adaptive_lagging(delays, 5, 5) == pytest.approx(
        sum(d - i / 2 for i, d in enumerate(delays[:9])) / 9
    )
    assert average_lagging([], 5, 5) == average_lagging([1], 0, 5) == 0


@given(steps=st.lists(WORDS, min_size=1, max_size=6))
def test_text_that_only_grows_has_no_erasure(steps: list[list[str]]) -> None:
    assert erased_words(list(accumulate(steps))) == 0


@given(shown=st.lists(WORDS, min_size=1, max_size=6))
def test_no_word_is_settled_before_it_is_shown(shown: list[list[str]]) -> None:
    delays = [float(i) for i in range(len(shown))]
    settled, first = settled_delays(shown, delays), first_delays(shown, delays)
    assert len(settled) == len(first) == len(shown[-1])
    assert all(one <= other for one, other in zip(first, settled, strict=True))
    assert settled == sorted(settled)
    assert length_adaptive_lagging(settled, 3, 2) >= average_lagging(settled, 3, 2)


def test_the_simulated_recognizer_is_seeded_makes_mistakes_and_ends_right() -> None:
    first = list(RecognizerSimulator("s", 1).updates(SENTENCES, 30))
    assert first == list(RecognizerSimulator("s", 1).updates(SENTENCES, 30))
    assert first != list(RecognizerSimulator("s", 2).updates(SENTENCES, 30))
    assert [u.text for u in first if u.final] == SENTENCES[: sum(u.final for u in first)]
    times = [u.time or 0 for u in first]
    assert times == sorted(times)
    partials = [u for u in first if not u.final]
    assert not any(u.text.endswith((".", "!")) for u in partials)
    assert any(len(u.text.split()) != len(set(u.text.split())) for u in partials)


def test_without_errors_words_grow_and_the_stable_part_is_said() -> None:
    speaker = RecognizerSimulator("s", 1, error_rate=0, says_stable=True, lower_case=True)
    updates = list(speaker.updates(SENTENCES[:1], 30))
    assert [u.text for u in updates] == [
        "next", "next week", "next week in", "next week in stockholm",
        "next week in stockholm: fog", SENTENCES[0],
    ]  # fmt: skip
    assert [u.stable_chars for u in updates] == [0, 0, 4, 9, 12, None]
